# Medians of the rounds as a table. Fields: case, base, answers/s, p50, p99 (µs), and the
# processor's time per answer (µs) of the proxy, the upstream and the load generator.

function ratio(case, other) {
    return other in rounds ? sprintf("%.2f", median(case, 3) / median(other, 3)) : "–"
}

{
    if (!($1 in rounds)) order[++cases] = $1
    rounds[$1]++
    base[$1] = $2
    for (field = 3; field <= NF; field++) value[$1, field, rounds[$1]] = $field + 0
}

END {
    print "| case | answers/s | × direct | × nginx | p50 ms | p99 ms | proxy µs | upstream µs | wrk µs |"
    print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= cases; i++) {
        case = order[i]
        suffix = base[case] == "post" ? "-post" : ""
        printf "| %s | %.0f | %s | %s | %.2f | %.2f | %.1f | %.1f | %.1f |\n", case,
            median(case, 3), ratio(case, "direct" suffix), ratio(case, "nginx" suffix),
            median(case, 4) / 1000, median(case, 5) / 1000,
            median(case, 6), median(case, 7), median(case, 8)
    }
}
