"""Measures models with h5py and numpy alone, for comparison.

    outside.py eval MODEL DATA [LABELS]           prints the metrics as JSON
    outside.py predict MODEL DATA PREDICTIONS     prints the largest difference of any probability
                                                  or value, and how many classes and labels differ

DATA is a CSV with a header, or IDX images (gzip) with their LABELS.
"""
import csv
import gzip
import json
import math
import sys

import h5py
import numpy as np


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


class Model:
    def __init__(self, path):
        with h5py.File(path, "r") as file:
            layers = file["model/layers"]
            self.layers = [(layers[n]["weight"][()], layers[n]["bias"][()])
                           for n in sorted(layers, key=int)]
            self.relu = "relu" in text(file["model"].attrs["layers"])
            schema = file["schema"]
            self.classify = text(schema.attrs["task"]) == "classify"
            self.scale = float(schema.attrs["scale"])
            names = {key: [text(n) for n in schema[key][()]] for key in
                     ("feature_names", "label_names") if key in schema}
            self.features, self.labels = names.get("feature_names"), names.get("label_names")
            self.label_column = text(schema.attrs.get("label_column", ""))
            self.mean = schema["mean"][()] if "mean" in schema else 0
            self.inv_std = schema["inv_std"][()] if "inv_std" in schema else 1

    def logits(self, raw):
        x = ((raw * self.scale - self.mean) * self.inv_std).astype(np.float32)
        for weight, bias in self.layers[:-1]:
            x = x @ weight + bias
            x = np.maximum(x, 0) if self.relu else np.tanh(x)
        return x @ self.layers[-1][0] + self.layers[-1][1]


def read_idx(path):
    with gzip.open(path) as file:
        data = file.read()
    dims = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return np.frombuffer(data, np.uint8, offset=4 + 4 * len(dims)).reshape(dims[0], -1)


def read_csv(path, model):
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    x = np.array([[float(row[f]) for f in model.features] for row in rows])
    target = [row[model.label_column] for row in rows]
    if model.labels:
        return x, np.array([model.labels.index(t) for t in target])
    return x, np.array([float(t) for t in target])


def read(path, labels, model):
    if not path.endswith(".gz"):
        return read_csv(path, model)
    return read_idx(path), labels and read_idx(labels)[:, 0]


def softmax(logits):
    if logits.shape[1] == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], 1)
    e = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def area_under_curve(score, positive):
    """By pairs, as it is defined."""
    above = score[positive][:, None] - score[~positive][None, :]
    return float(((above > 0) + 0.5 * (above == 0)).mean())


def measure_classes(logits, label):
    p, rows = softmax(logits), np.arange(len(label))
    out = {"loss": float(-np.log(p[rows, label]).mean()),
           "accuracy": int((p.argmax(1) == label).sum()) / len(label)}
    if p.shape[1] > 5:
        top = np.argsort(-logits, 1, kind="stable")[:, :5]
        out["top5"] = int((top == label[:, None]).any(1).sum()) / len(label)
    if p.shape[1] == 2:
        positive, predicted = label == 1, logits[:, 0] > 0
        both = int((positive & predicted).sum())
        out["precision"], out["recall"] = both / int(predicted.sum()), both / int(positive.sum())
        out["auc"] = area_under_curve(logits[:, 0], positive)
    confusion = np.zeros((p.shape[1], p.shape[1]), int)
    np.add.at(confusion, (label, p.argmax(1)), 1)
    return dict(out, confusion=confusion.tolist())


def measure_values(values, target):
    error = values[:, 0].astype(np.float64) - target
    mse = float((error ** 2).mean())
    return {"loss": mse, "rmse": math.sqrt(mse), "mae": float(np.abs(error).mean()),
            "r2": 1 - mse / float(((target - target.mean()) ** 2).mean())}


def evaluate(model, data, labels=None):
    x, target = read(data, labels, model)
    measure = measure_classes if model.classify else measure_values
    print(json.dumps(dict(measure(model.logits(x), target), rows=len(x))))


def predict(model, data, predictions):
    logits = model.logits(read(data, None, model)[0])
    with open(predictions) as file:
        records = [json.loads(line) for line in file]
    assert len(records) == len(logits), f"{len(records)} predictions of {len(logits)} rows"
    if not model.classify:
        values = np.array([r["value"] for r in records])
        print(f"difference={np.abs(values - logits[:, 0]).max()} wrong=0")
        return
    p = softmax(logits)
    difference = np.abs(np.array([r["probabilities"] for r in records]) - p).max()
    wrong = sum(r["class"] != c for r, c in zip(records, p.argmax(1)))
    if model.labels:
        wrong += sum(r["label"] != model.labels[r["class"]] for r in records)
    print(f"difference={difference} wrong={wrong}")


if __name__ == "__main__":
    commands = {"eval": evaluate, "predict": predict}
    commands[sys.argv[1]](Model(sys.argv[2]), *sys.argv[3:])
