# The lines of samples.tsv as tables; as JSON (-v json=FILE); as medians for the picture
# (-v medians=FILE: section, case, program, metric, median).
#   machine KEY VALUE
#   value   SECTION CASE PROGRAM TURN METRIC VALUE
#   compare SECTION CASE METRIC A B TARGET HOW      HOW: pairs (by turn) or medians
#   remark  SECTION CASE TEXT
BEGIN { FS = OFS = "\t" }
$1 == "machine" {
    print "machine: " $2 ": " $3
    append("machine", text($2) ": " text($3))
    next
}
{ group = $2 FS $3 }
$1 == "value" {
    key = group FS $4 FS $6
    list("group", group)
    list("program" FS group, $4)
    list("metric" FS group, $6)
    all[key, ++count[key]] = by_turn[key, $5] = $7
    next
}
{ list("group", group); list($1 FS group, $0) }

END {
    for (g = 1; g <= length_of["group"]; g++) {
        group = item["group", g]
        printf "\n%s\n", title(group)
        print_table(group)
        for (i = 1; i <= length_of["remark" FS group]; i++) print_remark(item["remark" FS group, i])
        for (i = 1; i <= length_of["compare" FS group]; i++)
            print_ratio(item["compare" FS group, i])
    }
    printf "{\"machine\": {%s},\n\"medians\": [\n%s],\n\"ratios\": [\n%s],\n\"remarks\": [\n%s]}\n",
        joined["machine"], joined["medians"], joined["ratios"], joined["remarks"] >json
}

# ---- lists --------------------------------------------------------------------------------------

# Puts `what` at the end of a list, once.
function list(name, what) {
    if ((name, what) in listed) return
    listed[name, what]
    item[name, ++length_of[name]] = what
}

# Items of a JSON list.
function append(name, what) {
    joined[name] = joined[name] (joined[name] == "" ? "" : ",\n") what
}

function text(string) {
    gsub(/[\\"]/, "\\\\&", string)
    return "\"" string "\""
}

function title(group,    part) {
    split(group, part, FS)
    return part[1] ": " part[2]
}

# ---- statistics ---------------------------------------------------------------------------------

# Sorts numbers[1..n]; their median.
function median(numbers, n,    i, j, keep) {
    for (i = 2; i <= n; i++) {
        keep = numbers[i]
        for (j = i - 1; j >= 1 && numbers[j] + 0 > keep + 0; j--) numbers[j + 1] = numbers[j]
        numbers[j + 1] = keep
    }
    return n % 2 ? numbers[(n + 1) / 2] : (numbers[n / 2] + numbers[n / 2 + 1]) / 2
}

# Of a key's values, also their range in low and high; empty if there are none.
function middle(key,    i, sorted, result) {
    if (!count[key]) return ""
    for (i = 1; i <= count[key]; i++) sorted[i] = all[key, i]
    result = median(sorted, count[key])
    low = sorted[1]
    high = sorted[count[key]]
    return result
}

function number(x) {
    if (x == "") return "-"
    return sprintf(x >= 1000 || x <= -1000 || x == int(x) ? "%.0f" : "%.4g", x)
}

# ---- output -------------------------------------------------------------------------------------

function print_table(group,    p, m, programs, columns, name, middle_value) {
    programs = length_of["program" FS group]
    columns = length_of["metric" FS group]
    if (!programs) return
    printf "  %-22s", ""
    for (m = 1; m <= columns; m++) printf "  %16s", item["metric" FS group, m]
    printf "\n"
    for (p = 1; p <= programs; p++) {
        name = item["program" FS group, p]
        printf "  %-22s", name
        for (m = 1; m <= columns; m++) print_cell(group, name, item["metric" FS group, m])
        printf "\n"
    }
}

function print_cell(group, program, metric,    key, value, part) {
    key = group FS program FS metric
    value = middle(key)
    printf "  %16s", number(value)
    if (value == "") return
    print group, program, metric, value >medians
    split(group, part, FS)
    append("medians", sprintf("{\"section\": %s, \"case\": %s, \"program\": %s, \"metric\": %s, " \
        "\"median\": %s, \"low\": %s, \"high\": %s, \"turns\": %d}", text(part[1]), text(part[2]),
        text(program), text(metric), value, low, high, count[key]))
}

function print_remark(line,    part) {
    split(line, part, FS)
    print "  " part[4]
    append("remarks", sprintf("{\"section\": %s, \"case\": %s, \"text\": %s}", text(part[2]),
        text(part[3]), text(part[4])))
}

# Median and range of A / B over the turns that have both, or the ratio of their medians.
function ratio_of(a, b, how,    i, n, ratios, result) {
    if (how == "medians") {
        if (!count[a] || !count[b]) return ""
        result = middle(a) / middle(b)
        low = high = result
        return result
    }
    for (i = 1; i <= 1000; i++)
        if ((a, i) in by_turn && (b, i) in by_turn) ratios[++n] = by_turn[a, i] / by_turn[b, i]
    if (!n) return ""
    result = median(ratios, n)
    low = ratios[1]
    high = ratios[n]
    return result
}

function print_ratio(line,    part, group, ratio, range, verdict) {
    split(line, part, FS)
    group = part[2] FS part[3] FS
    ratio = ratio_of(group part[5] FS part[4], group part[6] FS part[4], part[8])
    if (ratio == "") return
    if (part[7] != "")
        verdict = ", target " part[7] (ratio >= part[7] + 0 ? ": reached" : ": MISSED")
    if (low < high) range = sprintf(" (%.3f to %.3f)", low, high)
    printf "  %s: %s / %s = %.3f%s%s\n", part[4], part[5], part[6], ratio, range, verdict
    append("ratios", sprintf("{\"section\": %s, \"case\": %s, \"metric\": %s, " \
        "\"a\": %s, \"b\": %s, \"ratio\": %.4f, \"low\": %.4f, \"high\": %.4f, \"target\": %s}",
        text(part[2]), text(part[3]), text(part[4]), text(part[5]), text(part[6]),
        ratio, low, high, part[7] == "" ? "null" : part[7]))
}
