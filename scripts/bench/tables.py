#!/usr/bin/python3
"""Tables of Debian's packages: the program's defaults beside other programs'.

  scripts/bench/tables.py OUT [--tables A,B] [--splits 1,2] [--programs dtrain,XGBoost]
                              [--peers FILE] [--dtrain PROGRAM] [KEY=VALUE ...]

Each table is split by `numpy.random.default_rng(split).permutation`; the first fifth is the test.
Test log loss or RMSE, and CPU seconds of one process on one core, reading included for dtrain
alone. dtrain gets label and task, a tenth of the training rows to choose by, and KEY=VALUE. What
other programs came to is kept in FILE. Leaves tables.txt, tables.tsv and, with gnuplot, tables.png
in OUT.

Settings of the preset are chosen on the half `chosen`; the half `unseen` shows what they are worth.
Peers see texts as 0/1 columns (HistGradientBoosting as numbers of the texts), missing numbers as
NaN (linear and perceptron: the mean and a column of gaps); linear and perceptron get standardised
columns, and targets if they are numbers. Of many texts, linear is dtrain's model.kind=linear.
"""
import argparse
import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# name: package/table, label, columns left out, half. Kinds are balanced: numbers from few and from
# many rows, two classes from numbers and from texts, several classes, many texts.
TABLES = {
    "concrete": ("modeldata/concrete", "compressive_strength", (), "chosen"),
    "house": ("spdata/house", "price", ("avalue",), "chosen"),
    "attrition": ("modeldata/attrition", "Attrition", (), "chosen"),
    "churn": ("modeldata/mlc_churn", "churn", (), "chosen"),
    "spam": ("kernlab/spam", "type", (), "chosen"),
    "Satellite": ("mlbench/Satellite", "classes", (), "chosen"),
    "glosses": ("wordnet", "file", (), "chosen"),
    "ames": ("modeldata/ames", "Sale_Price", (), "unseen"),
    "diamonds": ("ggplot2/diamonds", "price", (), "unseen"),
    "credit": ("modeldata/credit_data", "Status", (), "unseen"),
    "wa_churn": ("modeldata/wa_churn", "churn", (), "unseen"),
    "cells": ("modeldata/cells", "class", ("case",), "unseen"),
    "hpc": ("modeldata/hpc_data", "class", (), "unseen"),
    "movies": ("dslabs/movielens", "liked", ("rating", "title", "timestamp"), "unseen"),
}
REGRESS = ("concrete", "house", "ames", "diamonds")
TEXTS = ("movies", "glosses")
PROGRAMS = ("dtrain", "XGBoost", "HistGradientBoosting", "linear", "perceptron", "constant",
            "XGBoost 30")
# dtrain's commands, and what they get besides label and task. More programs, for --programs.
OWN = {"dtrain": ("train", "data.eval_fraction=0.1"),
       "search": ("search",),
       "5 folds": ("search", "search.folds=5", "search.trials=1"),
       "10 folds": ("search", "search.folds=10", "search.trials=1")}
OTHERS = ("perceptron 5 folds", "perceptron search")
# Of many texts: a network of 0/1 columns takes scikit-learn an hour.
NOT_MEASURED = {(table, program) for table in TEXTS for program in ("perceptron", "XGBoost 30")}
TRIALS = 30


# ---- data ---------------------------------------------------------------------------------------

def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return rows[0], rows[1:]


def write_csv(path, names, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def with_texts(path, name):
    """movielens: whether a user liked a film, numbers of both as texts."""
    names, rows = read_csv(path)
    at = {column: i for i, column in enumerate(names)}
    for row in rows:
        row[at["movieId"]] = "m" + row[at["movieId"]]
        row[at["userId"]] = "u" + row[at["userId"]]
        row.append("yes" if float(row[at["rating"]]) >= 4 else "no")
    write_csv(path, names + ["liked"], rows)


def glosses(path):
    """WordNet: the first eight words of what a word means, to the one of 45 files that it is in."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = "/usr/share/wordnet"
        if not os.path.exists(folder + "/data.noun"):
            os.chmod(scratch, 0o755)
            subprocess.run("apt-get -q download wordnet-base && dpkg-deb -x *.deb .", shell=True,
                           cwd=scratch,
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            folder = scratch + folder
        rows = []
        for part in ("adj", "adv", "noun", "verb"):
            with open("%s/data.%s" % (folder, part), encoding="latin-1") as file:
                for line in file:
                    words = line[line.find("|") + 1:].split()[:8]
                    if not line.startswith(" "):
                        rows.append(["_" + w.strip('();:,."').lower() for w in words]
                                    + ["_"] * (8 - len(words))
                                    + ["file" + line.split()[1]])
    write_csv(path, ["word%d" % i for i in range(1, 9)] + ["file"], rows)


def load(name, folder):
    """(names of columns, rows) of a table, the label last."""
    source, label, ignored, _ = TABLES[name]
    path = "%s/%s.csv" % (folder, name)
    if not os.path.exists(path):
        made = path + ".new"
        if source == "wordnet":
            glosses(made)
        else:
            subprocess.run([HERE + "/../recipes/r-data.py", source, made], check=True,
                           stdout=subprocess.DEVNULL)
        if name == "movies":
            with_texts(made, name)
        os.rename(made, path)
    names, rows = read_csv(path)
    kept = [i for i, column in enumerate(names) if column not in ignored and column != label]
    kept.append(names.index(label))
    return [names[i] for i in kept], [[row[i] for i in kept] for row in rows
                                      if row[kept[-1]] not in ("NA", "")]


def split_of(rows, number):
    import numpy
    order = numpy.random.default_rng(number).permutation(len(rows))
    count = len(rows) // 5
    return [rows[i] for i in order[count:]], [rows[i] for i in order[:count]]


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return text == "NA"


class Features:
    """Columns as arrays: numbers with NaN, and texts as numbers of their sorted order (-1:
    unseen)."""

    def __init__(self, train, test):
        import numpy
        from scipy import sparse
        numbers, codes, dummies = [], [], []
        for column in range(len(train[0]) - 1):
            texts = [row[column] for row in train], [row[column] for row in test]
            if all(map(is_number, texts[0])):
                numbers.append([numpy.array([numpy.nan if x == "NA" else float(x) for x in part])
                                for part in texts])
                continue
            place = {text: i for i, text in enumerate(sorted(set(texts[0])))}
            codes.append([numpy.array([place.get(x, -1) for x in part], dtype=float)
                          for part in texts])
            dummies.append([self.dummy(numpy, sparse, part, len(place)) for part in codes[-1]])
        parts = range(2)
        shapes = [(len((train, test)[p]), len(numbers)) for p in parts]
        self.numbers = [numpy.array([c[p] for c in numbers]).T.reshape(shapes[p]) for p in parts]
        self.coded = [numpy.column_stack([self.numbers[p]] + [c[p] for c in codes]) for p in parts]
        self.sparse = [sparse.hstack([sparse.csr_matrix((shapes[p][0], 0))]
                                     + [d[p] for d in dummies]).tocsr()
                       for p in parts]

    @staticmethod
    def dummy(numpy, sparse, codes, count):
        seen = numpy.flatnonzero(codes >= 0)
        return sparse.csr_matrix((numpy.ones(len(seen)), (seen, codes[seen].astype(int))),
                                 (len(codes), count))

    def one_hot(self, part, standard=False):
        """Numbers and 0/1 columns; dense if they are few. standard: for programs that need it."""
        import numpy
        from scipy import sparse
        numbers = self.numbers[part]
        if standard and numbers.shape[1]:
            train = self.numbers[0]
            mean, gaps = numpy.nanmean(train, axis=0), numpy.isnan(train).any(axis=0)
            deviation = numpy.nanstd(train, axis=0)
            filled = numpy.where(numpy.isnan(numbers), mean, numbers)
            filled = (filled - mean) / numpy.where(deviation > 0, deviation, 1)
            numbers = numpy.column_stack([filled, numpy.isnan(numbers[:, gaps])])
        if self.sparse[0].shape[1] > 1000:
            return sparse.hstack([sparse.csr_matrix(numbers), self.sparse[part]]).tocsr()
        return numpy.column_stack([numbers, self.sparse[part].toarray()])


# ---- programs -----------------------------------------------------------------------------------

def xgboost_fit(regress, classes, seed, x, y, held_out=None, **settings):
    import xgboost
    kind = xgboost.XGBRegressor if regress else xgboost.XGBClassifier
    model = kind(n_jobs=1, random_state=seed, tree_method="hist" if settings else None, **settings)
    return model.fit(x, y, eval_set=held_out, verbose=False)


def random_trials(regress, classes, seed, x, y):
    """The best of random settings by a tenth of the rows, with early stopping."""
    import numpy
    rng = numpy.random.default_rng(seed)
    held = rng.permutation(len(y))
    held, rest = held[:len(y) // 10], held[len(y) // 10:]
    best = None
    for trial in range(TRIALS):
        log = lambda low, high: float(numpy.exp(rng.uniform(numpy.log(low), numpy.log(high))))
        model = xgboost_fit(regress, classes, seed, x[rest], y[rest], [(x[held], y[held])],
                            n_estimators=1000, early_stopping_rounds=30, learning_rate=log(.02, .3),
                            max_depth=int(rng.integers(3, 11)), min_child_weight=log(1, 30),
                            subsample=rng.uniform(.5, 1),
                            colsample_bytree=rng.uniform(.4, 1), reg_lambda=log(.1, 10))
        if best is None or model.best_score < best.best_score:
            best = model
    return best


def perceptron_search(kind, regress, seed):
    """Random search with folds: 16 settings, as dtrain search has."""
    from scipy import stats
    from sklearn import model_selection
    widths = [(width,) * depth for width in (64, 128, 256) for depth in (1, 2, 3)]
    space = {"hidden_layer_sizes": widths, "alpha": stats.loguniform(1e-5, 1),
             "learning_rate_init": stats.loguniform(3e-4, 1e-2)}
    score = "neg_root_mean_squared_error" if regress else "neg_log_loss"
    return model_selection.RandomizedSearchCV(kind(random_state=seed), space, n_iter=16, cv=5,
                                              scoring=score, random_state=seed)


def fit(program, regress, classes, seed, x, target):
    """A list of models, whose mean predicts."""
    from sklearn import ensemble, linear_model, model_selection, neural_network
    if program == "XGBoost":
        return [xgboost_fit(regress, classes, seed, x, target)]
    if program == "XGBoost 30":
        return [random_trials(regress, classes, seed, x, target)]
    kind = {"HistGradientBoosting": (ensemble.HistGradientBoostingClassifier,
                                     ensemble.HistGradientBoostingRegressor),
            "linear": (linear_model.LogisticRegression, linear_model.Ridge),
            "perceptron": (neural_network.MLPClassifier,
                           neural_network.MLPRegressor)}[program.split()[0]][regress]
    if program == "perceptron search":
        return [perceptron_search(kind, regress, seed).fit(x, target)]
    if program == "perceptron 5 folds":
        return model_selection.cross_validate(kind(random_state=seed), x, target, cv=5,
                                              return_estimator=True)["estimator"]
    model = (kind(max_iter=1000) if kind is linear_model.LogisticRegression
             else kind(random_state=seed))
    return [model.fit(x, target)]


def peer(program, regress, seed, features, y, test):
    """Fits, and returns the test loss."""
    import warnings
    import numpy
    from sklearn import metrics
    warnings.simplefilter("ignore")  # of the perceptron's default number of epochs
    classes, codes = numpy.unique(y, return_inverse=True)
    scale = (y.mean(), y.std()) if regress else (0, 1)
    target = (y - scale[0]) / scale[1] if regress else codes
    if program == "constant":
        return constant(regress, codes, y, classes, test)
    trees = program != "linear" and not program.startswith("perceptron")
    coded = program == "HistGradientBoosting"
    x = [features.coded[p] if coded else features.one_hot(p, not trees) for p in range(2)]
    models = fit(program, regress, classes, seed, x[0], target)
    if regress:
        values = numpy.mean([model.predict(x[1]) for model in models], axis=0)
        return float(numpy.sqrt(numpy.mean((values * scale[1] + scale[0] - test) ** 2)))
    chances = numpy.mean([model.predict_proba(x[1]) for model in models], axis=0)
    return float(metrics.log_loss(numpy.searchsorted(classes, test), chances,
                                  labels=numpy.arange(len(classes))))


def constant(regress, codes, y, classes, test):
    import numpy
    if regress:
        return float(numpy.sqrt(numpy.mean((test - y.mean()) ** 2)))
    return float(
        -numpy.log((numpy.bincount(codes) / len(codes))[numpy.searchsorted(classes, test)]).mean())


def measure_peer(program, name, train, test, seed):
    """(loss, CPU seconds), in a process of its own."""
    import numpy
    regress = name in REGRESS
    labels = [numpy.array([float(row[-1]) if regress else row[-1] for row in part])
              for part in (train, test)]
    known = numpy.isin(labels[1], labels[0]) | regress
    features = Features(train, [row for row, k in zip(test, known) if k])
    read, write = os.pipe()
    child = os.fork()
    if not child:
        before = time.process_time()
        loss = peer(program, regress, seed, features, labels[0], labels[1][known])
        os.write(write, json.dumps([loss, time.process_time() - before]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def measure_dtrain(program, name, names, train, test, also):
    """(loss, CPU seconds) of a command with label, task and `also` alone."""
    with tempfile.TemporaryDirectory() as scratch:
        classes = {row[-1] for row in train}
        gaps = any("NA" in row for row in train + test)
        write_csv(scratch + "/train.csv", names, train)
        write_csv(scratch + "/test.csv", names,
                  [row for row in test if name in REGRESS or row[-1] in classes])
        command = [program, also[0], "data.train=" + scratch + "/train.csv",
                   "data.label=" + names[-1],
                   "run.dir=" + scratch + "/run"] + gaps * ["data.missing=flag"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = subprocess.run(command + (name in REGRESS) * ["model.task=regress"] + also[1:],
                             capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run.returncode:
            sys.exit("tables.py: %s: %s" % (name, run.stderr[-500:]))
        found = subprocess.run([program, "eval", scratch + "/run",
                                "data.eval=" + scratch + "/test.csv"],
                               capture_output=True, text=True, check=True)
        if os.environ.get("LOGS"):
            with open("%s/%s.log" % (os.environ["LOGS"], name), "w") as file:
                file.write(run.stderr + found.stdout)
    secs = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(found.stdout)["rmse" if name in REGRESS else "loss"], secs


# ---- results ------------------------------------------------------------------------------------

def report(out, results, tables, splits, programs):
    """The table of means, and tables.tsv."""
    def mean(table, program, which):
        found = [results[table, split, program][which] for split in splits
                 if (table, split, program) in results]
        return sum(found) / len(found) if len(found) == len(splits) else None

    def show(value, digits=4):
        if value is None:
            return "-"
        return "%.*g" % (digits, value) if value < 1000 else "%.0f" % value
    lines = ["test log loss or RMSE (CPU seconds), mean of splits " + ", ".join(map(str, splits))]
    rows = [["table"] + list(programs) + ["against the better trees"]]
    with open(out + "/tables.tsv", "w") as file:
        for table in tables:
            cells = []
            for program in programs:
                loss, secs = mean(table, program, 0), mean(table, program, 1)
                cells.append("%s (%s)" % (show(loss), show(secs, 2)) if loss is not None else "-")
                if loss is not None:
                    file.write("%s\t%s\t%s\t%g\t%g\n"
                               % (table, TABLES[table][3], program, loss, secs))
            trees = [mean(table, p, 0) for p in ("XGBoost", "HistGradientBoosting")]
            own = mean(table, "dtrain", 0)
            known = own is not None and None not in trees
            rows.append(["%s (%s)" % (table, TABLES[table][3])] + cells +
                        ["%+.1f %%" % (100 * (own / min(trees) - 1)) if known else "-"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
              for row in rows]
    with open(out + "/tables.txt", "w") as file:
        file.write("\n".join(lines) + "\n")
    print("\n".join(lines))


def picture(out):
    """Losses as multiples of the better default trees, a group of bars a table."""
    if not shutil.which("gnuplot"):
        return
    with open(out + "/tables.tsv") as file:
        cells = [line.rstrip("\n").split("\t") for line in file]
    loss = {(c[0], c[2]): float(c[3]) for c in cells}
    programs = [p for p in PROGRAMS if p != "constant" and any(c[2] == p for c in cells)]
    tables = [t for t in TABLES if (t, "XGBoost") in loss and (t, "HistGradientBoosting") in loss]
    if not tables:
        return
    with open(out + "/tables.dat", "w") as file:
        for table in tables:
            trees = min(loss[table, "XGBoost"], loss[table, "HistGradientBoosting"])
            values = [loss.get((table, p)) for p in programs]
            file.write(" ".join(['"%s"' % table] + ["?" if v is None else "%g" % (v / trees)
                                                    for v in values]) + "\n")
    plots = ", ".join('"%s/tables.dat" using %d%s title "%s"'
                      % (out, i + 2, "" if i else ":xtic(1)", p)
                      for i, p in enumerate(programs))
    script = """set terminal pngcairo size 1280,520 noenhanced; set output '%s/tables.png'
set title 'test loss, as multiples of the better default boosted trees (lower is better)'
set datafile missing '?'; set style data histograms; set style histogram clustered gap 1.5
set style fill solid .9 noborder; set yrange [0.5:2]; set grid ytics
set key above horizontal; set xtics nomirror scale 0; plot %s, 1 lc 0 title ''
""" % (out, plots)
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--splits", default="1,2,3,4")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--peers", help="(OUT/peers.json)")
    parser.add_argument("--dtrain", default=HERE + "/../../dtrain")
    parser.add_argument("also", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")})
    os.makedirs(options.out, exist_ok=True)
    peers = options.peers or options.out + "/peers.json"
    data = os.path.dirname(os.path.abspath(peers))
    tables, programs = options.tables.split(","), options.programs.split(",")
    splits = [int(split) for split in options.splits.split(",")]
    results = {}
    if os.path.exists(peers):
        with open(peers) as file:
            results = {tuple(key): value for key, value in map(json.loads, file)}
    for program in programs:
        for table in tables:
            if (table, program) in NOT_MEASURED:
                continue
            names, rows = load(table, data)
            for split in splits:
                key = (table, split, program)
                if program not in OWN and key in results:
                    continue
                train, test = split_of(rows, split)
                also = list(OWN.get(program, ())) + options.also
                if program == "linear" and table in TEXTS:
                    also = list(OWN["dtrain"]) + ["model.kind=linear"]
                if also[:1] in (["train"], ["search"]):
                    results[key] = measure_dtrain(options.dtrain, table, names, train, test, also)
                else:
                    results[key] = measure_peer(program, table, train, test, split)
                if program not in OWN:
                    with open(peers, "a") as file:
                        file.write(json.dumps([key, results[key]]) + "\n")
                print("tables: %s, split %d, %s: %.5g in %.1f s"
                      % ((table, split, program) + tuple(results[key])),
                      file=sys.stderr, flush=True)
    report(options.out, results, tables, splits, programs)
    picture(options.out)


if __name__ == "__main__":
    main()
