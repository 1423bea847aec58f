# Tables of one run, from its metrics.jsonl, for plot.sh: BASE.train (step, wall, loss, lr,
# samples/s), BASE.eval (step, wall, loss, metric), BASE.best (the best line of BASE.eval),
# BASE.staleness (staleness, gradients), BASE.name, BASE.metric. Of records with one kind and step
# the last counts, and what was recorded after the step of a later start is dropped; a torn line has
# no closing brace. base: path; name: of the run; metric: what judges it, or empty.
function value(key) {
    if (!match($0, "\"" key "\": *[^,}]*")) return ""
    text = substr($0, RSTART, RLENGTH)
    sub(/^[^:]*: */, "", text)
    gsub(/"/, "", text)
    return text == "null" ? "NaN" : text
}
function number(key) { text = value(key); return text == "" ? "NaN" : text }
!/}$/ { next }
{ kind = value("kind"); step = value("step") + 0 }
kind == "start" {
    mode = value("mode"); workers = value("workers")
    for (s in train) if (s + 0 > step) delete train[s]
    for (s in eval) if (s + 0 > step) delete eval[s]
    # Evaluations of other rows than those held out from here on are no longer the best.
    if (value("best_era") != era) for (s in eval) passed[s]
    era = value("best_era")
}
kind == "train" {
    measured = number("loss") " " number("lr") " " number("samples_per_sec")
    train[step] = number("wall_secs") " " measured
}
kind == "eval" && value("set") == "" {
    if (metric == "" || metric == "auto") metric = value("accuracy") != "" ? "accuracy" : "rmse"
    eval[step] = number("wall_secs") " " number("loss") " " number(metric)
    delete passed[step]
}
kind == "final" && match($0, /"staleness_histogram": *\[[^\]]*/) {
    histogram = substr($0, RSTART, RLENGTH)
    sub(/.*\[/, "", histogram)
}
END {
    printf "" >(base ".train"); printf "" >(base ".eval"); printf "" >(base ".best")
    for (step in train) print step, train[step] >(base ".train")
    less = metric == "loss" || metric ~ /^(rmse|mae|mape|brier|ece)$/
    for (step in eval) {
        print step, eval[step] >(base ".eval")
        split(eval[step], field, " ")
        v = field[3] + 0
        if (field[3] == "NaN" || step in passed) continue
        # Of equal ones the one with the lower loss, else the first.
        l = field[2] == "NaN" ? 1e300 : field[2] + 0
        beats = less ? v < best : v > best
        is_first = l < least || (l == least && step + 0 < at)
        if (best == "" || beats || (v == best && is_first)) {
            best = v
            least = l
            at = step + 0
        }
    }
    if (best != "") print at, eval[at] >(base ".best")
    n = split(histogram, bar, ",")
    for (i = 1; i <= n; i++) print i - 1, bar[i] >(base ".staleness")
    print metric >(base ".metric")
    print name " (" mode ", " workers " worker" (workers == 1 ? "" : "s") ")" >(base ".name")
}
