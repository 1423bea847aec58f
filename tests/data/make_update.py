#!/usr/bin/env python3
"""Prints the tables of tests/unit/test_train.c: weights after updates, in double, by the formulas
of torch.optim.SGD, torch.nn.utils.clip_grad_norm_, DiLoCo and staleness-aware SGD. Needs Python
alone."""
from math import cos, pi, sqrt

LR, LOW, WARM, TOTAL = 0.4, 0.05, 4, 20
OUTER_LR, OUTER_MOMENTUM = 0.7, 0.9
MOMENTUM, DECAY, CLIP = 0.5, 0.1, 1.5
START = [0.5, -1.25, 2.0]
SUMS = [[4.0, -8.0, 1.0], [0.5, 0.25, -1.0], [-6.0, 2.0, 3.0], [1.0, 1.0, 1.0], [3.0, 3.0, -5.0],
        [2.0, -1.0, 0.0]]


def rate(step):
    if step < WARM:
        return LR * (step + 1) / WARM
    return LOW + (LR - LOW) * (1 + cos(pi * (step - WARM) / (TOTAL - WARM))) / 2


def clipped(mean):
    factor = CLIP / (sqrt(sum(g * g for g in mean)) + 1e-6)
    return [g * min(1, factor) for g in mean]


def descend(weights, moments, mean, lr):
    moments = [MOMENTUM * m + g + DECAY * w for m, g, w in zip(moments, mean, weights)]
    return [w - lr * m for w, m in zip(weights, moments)], moments


def show(name, path):
    print("static const float %s[][3] = {" % name)
    for weights in path:
        print("    {%s}," % ", ".join("%.9gf" % w for w in weights))
    print("};")


def sync():
    """Ten rows, batches of four: every third step has two rows."""
    weights, moments, path = START, [0, 0, 0], []
    for step, total in enumerate(SUMS):
        rows = 2 if step % 3 == 2 else 4
        weights, moments = descend(weights, moments, clipped([g / rows for g in total]), rate(step))
        path.append(weights)
    show("SYNC_PATH", path)


def asynchronous(name, clip):
    """Gradient number i is of i + 1 rows, i % 3 updates old."""
    weights, moments, path = START, [0, 0, 0], []
    for step, total in enumerate(SUMS):
        mean = [g / (step + 1) for g in total]
        if clip:
            mean = clipped(mean)
        weights, moments = descend(weights, moments, mean, rate(step) / (1 + step % 3))
        path.append(weights)
    show(name, path)


def outer():
    """The sums as what the groups give: the gradient of Nesterov's rule as torch.optim.SGD has
    it."""
    weights, moments, path = START, [0, 0, 0], []
    for delta in SUMS:
        moments = [OUTER_MOMENTUM * m + d for m, d in zip(moments, delta)]
        weights = [w - OUTER_LR * (d + OUTER_MOMENTUM * m)
                   for w, d, m in zip(weights, delta, moments)]
        path.append(weights)
    show("OUTER_PATH", path)


sync()
outer()
asynchronous("ASYNC_PATH", False)
asynchronous("ASYNC_CLIPPED", True)
