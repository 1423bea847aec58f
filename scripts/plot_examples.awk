# What predictions of held-out rows are, for plot_examples.sh: prints `classes`, `fields` or
# `numbers`, and writes tables into the directory t. points: numbers of a field, 1 without.
#   cells      true class, predicted class, rows
#   names      the classes' names
#   truth      true, predicted
#   order      the order in which rows are shown
function number(key) {
    if (!match($0, "\"" key "\":[-0-9.e+]+")) return ""
    return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
}
function list(key, into) {
    if (!match($0, "\"" key "\":\\[[^]]*")) return 0
    return split(substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4), into, ",")
}
BEGIN {
    getline line <(t "/columns")
    while (match(line, /^("([^"]|"")*"|[^,"]+),?/)) {
        title = substr(line, 1, RLENGTH)
        line = substr(line, RLENGTH + 1)
        gsub(/^"|"?,?$/, "", title)
        if (sub(/^probabilities /, "", title)) name[names++] = title
    }
}
/"class":/ {
    said = number("class") + 0; is = number("target") + 0
    if (said > last) last = said
    if (is > last) last = is
    cell[is, said]++
    n = list("probabilities", p)
    sure = 0
    for (i = 1; i <= n; i++) if (p[i] > sure) sure = p[i] + 0
    # wrong ones by falling, right ones by rising sureness
    printf "%d %.7f %d %d %d\n", said == is, said == is ? sure : -sure, NR, said, is >(t "/order")
    next
}
/"value":/ { print number("target"), number("value") >(t "/truth"); next }
/"values":/ {
    n = list("values", v); m = list("target", w)
    if (!m) { m = 1; w[1] = number("target") }
    error = 0
    one = n == points && m == n
    for (i = 1; i <= n; i++) {
        error += (v[i] - w[i]) ^ 2
        # Of quantiles there are several a target.
        if (!one) print w[int((i - 1) * m / n) + 1], v[i] >(t "/truth")
    }
    if (one) {
        field = 1
        printf "0 %.9g %d\n", -sqrt(error / n), NR >(t "/order")
    }
}
END {
    for (pair in cell) { split(pair, at, SUBSEP); print at[1], at[2], cell[pair] >(t "/cells") }
    for (c = 0; c <= last; c++) {
        text = c in name ? name[c] : c
        gsub(/[\\\047"`@{}^_]/, "", text)
        print c, substr(text, 1, 14) >(t "/names")
    }
    print field ? "fields" : last ? "classes" : "numbers"
}
