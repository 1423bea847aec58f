"""Repeats runs on sparse rows in PyTorch, batch by batch, from their step-0 checkpoints.

follow_sparse.py ORDER_DIR: the run there drew the same batches from as many rows, of which row i
has feature i alone, at a rate that rises from step to step: how far a weight went tells when its
row was drawn. stdin: a line a run, RUN_DIR DATA RULE LR; DATA is LIBSVM, or a table
x,TEXT,...,CLASS. Of sgd (without momentum), adagrad and lazy (SparseAdam; what no features read:
Adam) gradients of tables are sparse; of the other rules whole. stdout: for each run the largest
relative difference of its losses, and that of its weights by norm.
"""
import collections
import csv
import json
import sys

import numpy as np
import torch
from torch.nn import functional

from saved import tensors

STEPS = 50


def drawn(order_dir):
    """Rows of each step's batch, of one epoch."""
    begin, end = (tensors(order_dir, step)[0]["weight"][:, 0] for step in (0, STEPS))
    went, rows = (end - begin).sort()
    went = went.reshape(STEPS, -1)
    apart, within = (went[1:, 0] - went[:-1, -1]).min(), (went[:, -1] - went[:, 0]).max()
    assert apart > 2 * within, f"batches {apart} apart, {within} wide"
    return rows.reshape(STEPS, -1).tolist()


def libsvm(path):
    """Each row's features and values, and its class."""
    rows = []
    for line in open(path):
        words = line.split()
        pairs = [word.split(":") for word in words[1:]]
        rows.append(([int(i) - 1 for i, _ in pairs], [float(v) for _, v in pairs], int(words[0])))
    return rows


def table(path):
    """The same: feature 0 is x; behind it each column's texts, by count, then bytewise, and one for
    all others."""
    lines = list(csv.reader(open(path)))[1:]
    columns, first = [], 1
    for texts in list(zip(*lines))[1:-1]:
        counts = collections.Counter(texts)
        ordered = sorted(counts, key=lambda text: (-counts[text], text.encode()))
        columns.append({text: first + i for i, text in enumerate(ordered)})
        first += len(ordered) + 1
    return [([0] + [column[text] for column, text in zip(columns, line[1:-1])],
             [float(line[0])] + [1.0] * len(columns), int(line[-1])) for line in lines]


def bag(weight, rows, sparse):
    """Sum of value * weight[feature] over each row's entries."""
    features = torch.tensor([f for row in rows for f in row[0]])
    values = torch.tensor([v for row in rows for v in row[1]])
    ends = np.cumsum([0] + [len(row[0]) for row in rows])[:-1]
    return functional.embedding_bag(features, weight, torch.from_numpy(ends), mode="sum",
                                    sparse=sparse,
                                    per_sample_weights=values)


def forward(layers, rows, sparse, embeds):
    if embeds:
        categories = torch.tensor([row[0][1:] for row in rows]) - 1
        vectors = functional.embedding(categories, layers[0]["weight"], sparse=sparse).flatten(1)
        x = torch.cat([torch.tensor([row[1][:1] for row in rows]), vectors], 1)
        deep, wide = layers[1:-1], layers[-1]["weight"]
        x = x @ deep[0]["weight"] + deep[0]["bias"]
    else:
        deep = layers
        x = bag(layers[0]["weight"], rows, sparse) + layers[0]["bias"]
    for layer in deep[1:]:
        x = torch.tanh(x) @ layer["weight"] + layer["bias"]
    return x + bag(wide, rows, sparse) if embeds else x


def loss_of(out, classes):
    if out.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(out[:, 0], classes.float())
    return functional.cross_entropy(out, classes)


def make_optimizers(rule, tables, others, lr):
    every = tables + others
    make = {
        "sgd": lambda: [torch.optim.SGD(every, lr)],
        "momentum": lambda: [torch.optim.SGD(every, lr, 0.9)],
        "adagrad": lambda: [torch.optim.Adagrad(every, lr)],
        "adam": lambda: [torch.optim.Adam(every, lr)],
        # SparseAdam adds epsilon to the moment before its correction, Adam after: with an epsilon
        # of almost 0 they are equal.
        "lazy": lambda: [torch.optim.SparseAdam(tables, lr, eps=1e-15),
                         torch.optim.Adam(others, lr, eps=1e-15)],
    }
    return make[rule]()


def follow(order, run_dir, data, rule, lr):
    embeds = data.endswith(".csv")
    rows = table(data) if embeds else libsvm(data)
    layers = tensors(run_dir, 0)
    every = [t.requires_grad_() for layer in layers for t in layer.values()]
    tables = [layers[0]["weight"]] + ([layers[-1]["weight"]] if embeds else [])
    others = [t for t in every if all(t is not one for one in tables)]
    optimizers = make_optimizers(rule, tables, others, float(lr))
    theirs = []
    for batch in order:
        chosen = [rows[i] for i in batch]
        out = forward(layers, chosen, rule in ("sgd", "adagrad", "lazy"), embeds)
        loss = loss_of(out, torch.tensor([row[2] for row in chosen]))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        theirs.append(loss.item())
    with open(f"{run_dir}/metrics.jsonl") as records:
        ours = [r["loss"] for r in map(json.loads, records) if r["kind"] == "train"]
    assert len(ours) == STEPS, f"{len(ours)} train records"
    loss_off = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(ours, theirs))
    have = torch.cat([t.ravel() for layer in tensors(run_dir, STEPS) for t in layer.values()])
    want = torch.cat([t.detach().ravel() for t in every])
    return loss_off, ((have - want).norm() / want.norm()).item()


batches = drawn(sys.argv[1])
for line in sys.stdin:
    print(*follow(batches, *line.split()), flush=True)
