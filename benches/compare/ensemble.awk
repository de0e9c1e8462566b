# Medians of the rounds as a table. Fields: case, keys/s, p50, p99 (µs).

function ratio(case, other) {
    if (case !~ /^gateways?$/ || !(other in rounds)) return "–"
    return sprintf("%.2f", median(case, 2) / median(other, 2))
}

# What the gateway adds to the upstream's own time, in times of the bare client's.
function added(case) {
    if (case != "gateway-1" || !("bare-1" in rounds) || !("direct-1" in rounds)) return "–"
    return sprintf("%.2f", (median(case, 3) - median("direct-1", 3)) / median("bare-1", 3))
}

{
    if (!($1 in rounds)) order[++cases] = $1
    rounds[$1]++
    for (field = 2; field <= NF; field++) value[$1, field, rounds[$1]] = $field + 0
}

END {
    print "| case | keys/s | × bare | × bare-read | p50 ms | p99 ms | added p50 × bare-1 |"
    print "|---|--:|--:|--:|--:|--:|--:|"
    for (i = 1; i <= cases; i++) {
        case = order[i]
        printf "| %s | %.0f | %s | %s | %.2f | %.2f | %s |\n", case, median(case, 2),
            ratio(case, "bare"), ratio(case, "bare-read"),
            median(case, 3) / 1000, median(case, 4) / 1000, added(case)
    }
}
