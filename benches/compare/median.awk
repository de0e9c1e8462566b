# The median of a field over the rounds of a case, for the reports.

function median(case, field,    list, n, i, j, swap) {
    n = 0
    for (i = 1; i <= rounds[case]; i++) list[++n] = value[case, field, i]
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
            swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap
        }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
