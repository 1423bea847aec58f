"""Prints the golden values of tests/unit/test_metrics.c, by scikit-learn 1.2.1 and numpy 1.24.2:
/usr/bin/python3 tests/data/make_metrics.py. The rows of each kind are the test's: h() below."""
import warnings

import numpy as np
from sklearn import metrics as m

warnings.simplefilter("ignore")
ROWS = 300
KINDS = [  # name, task, outputs, classes that have rows, whether rows have weights
    ("two", "two", 1, 2, False), ("two, weighted", "two", 1, 2, True),
    ("two, one missing", "two", 1, 1, True), ("many, one missing", "many", 4, 3, False),
    ("many, weighted", "many", 7, 7, True), ("numbers", "numbers", 2, 0, False),
    ("numbers, weighted", "numbers", 2, 0, True), ("labels, weighted", "labels", 3, 0, True)]


def h(k, i):
    x = (i * 2654435761 + k * 2246822519) % 2**32
    x = (x ^ x >> 15) * 2246822519 % 2**32
    return (x ^ x >> 13) >> 16


def ece(probability, happened, weight):
    bins = np.maximum(np.ceil(probability * 15).astype(int) - 1, 0)
    return sum(abs(np.sum((weight * (probability - happened))[bins == b]))
               for b in range(15)) / weight.sum()


def scores(task, nout, there, weighted):
    z = np.array([[h(c, r) % 33 / 8 - 2 for c in range(nout)] for r in range(ROWS)])
    w = np.array([h(99, r) % 5 / 2 if weighted else 1 for r in range(ROWS)])
    by = {"sample_weight": w}
    goal = np.array([[h(50 + c, r) % 33 / 8 - 2 for c in range(nout)] for r in range(ROWS)])
    if task == "numbers":
        goal += z
        return {"rmse": np.sqrt(m.mean_squared_error(goal, z, **by)),
                "mae": m.mean_absolute_error(goal, z, **by), "r2": m.r2_score(goal, z, **by),
                "mape": m.mean_absolute_percentage_error(goal, z, **by)}
    if task == "labels":
        y, said = goal + z > 0, z > 0
        return {"accuracy": m.accuracy_score(y.ravel(), said.ravel(),
                                             sample_weight=np.repeat(w, nout)),
                "precision": m.precision_score(y, said, average="micro", **by),
                "recall": m.recall_score(y, said, average="micro", **by),
                "f1": m.f1_score(y, said, average="micro", **by)}
    y = np.array([(goal[r, 0] + z[r, 0] > 0) if nout == 1 else int(np.argmax((goal + z)[r, :there]))
                  for r in range(ROWS)]).astype(int)
    y *= there > 1
    if nout == 1:
        p = 1 / (1 + np.exp(-z[:, 0]))
        said, all_p, confidence, right = (z[:, 0] > 0).astype(int), np.c_[1 - p, p], p, y
    else:
        all_p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
        said = z.argmax(1)
        confidence, right = all_p.max(1), said == y
    out = {"loss": m.log_loss(y, all_p, labels=range(all_p.shape[1]), **by),
           "accuracy": m.accuracy_score(y, said, **by),
           "balanced_accuracy": m.balanced_accuracy_score(y, said, **by),
           "ece": ece(confidence, right, w)}
    if nout > 1:
        out["f1"] = m.f1_score(y, said, average="macro", **by)
        out["brier"] = np.average(((all_p - np.eye(nout)[y])**2).sum(1), weights=w)
        return out
    out["f1"] = m.f1_score(y, said, **by)
    out["brier"] = m.brier_score_loss(y, p, pos_label=1, **by)
    out["recall"] = m.recall_score(y, said, zero_division=0, **by)
    if there > 1:
        out["precision"] = m.precision_score(y, said, **by)
        out["auc"] = m.roc_auc_score(y, z[:, 0], **by)
        out["average_precision"] = m.average_precision_score(y, z[:, 0], **by)
    else:
        del out["recall"]
    return out


for kind in KINDS:
    for name, value in scores(*kind[1:]).items():
        print('    {%d, "%s", %.9f},' % (KINDS.index(kind), name, value))
