#!/usr/bin/env python3
"""Makes golden_net.h5, golden_optimizer.h5 and golden_schedule.h5 beside itself with PyTorch 1.13.

Networks are computed in f64 from f32 inputs, so that the files hold the true values; optimizers and
schedules are PyTorch's own, in its own precision.
"""
import itertools
import os

import h5py
import numpy as np
import torch
from torch.nn import functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS, ACTIVATIONS, TASKS = ["linear", "mlp"], ["relu", "tanh", "sigmoid",
                                                "gelu"], ["classify", "regress"]
ACTIVATE = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "gelu": F.gelu}


def golden(name):
    return h5py.File(os.path.join(HERE, name), "w", libver="v110")


def put(group, **arrays):
    for name, values in arrays.items():
        group.create_dataset(name, data=np.ascontiguousarray(values), track_times=False)


# ---- networks ------------------------------------------------------------------------------------


def forward(layers, activation, x):
    for i, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        if i < len(layers) - 1:
            x = ACTIVATE[activation](x)
    return x


def sum_of_losses(task, logits, label, target):
    if task == "regress":
        return ((logits - target) ** 2).mean(1).sum()
    if logits.shape[1] == 1:
        return F.binary_cross_entropy_with_logits(logits[:, 0], label.double(), reduction="sum")
    return F.cross_entropy(logits, label, reduction="sum")


def write_net(file, seed, kind, activation, task, widths, rows):
    rng = np.random.default_rng(seed)
    f32 = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    flat, layers = [], []
    for nin, nout in zip(widths, widths[1:]):
        weight, bias = f32(nin, nout) * np.float32(1.5 / np.sqrt(nin)), f32(nout) * np.float32(0.5)
        flat += [weight.ravel(), bias]
        layers.append([torch.tensor(v.astype(np.float64), requires_grad=True)
                       for v in (weight, bias)])
    x, target = f32(rows, widths[0]) * 2, f32(rows, widths[-1])
    label = rng.integers(0, max(2, widths[-1]), rows).astype(np.int32)
    logits = forward(layers, activation, torch.tensor(x.astype(np.float64)))
    loss = sum_of_losses(task, logits, torch.tensor(label.astype(np.int64)), torch.tensor(target))
    loss.backward()
    group = file.create_group("%02d" % seed)
    group.attrs["kind"] = np.int32(KINDS.index(kind))
    group.attrs["activation"] = np.int32(ACTIVATIONS.index(activation))
    group.attrs["task"] = np.int32(TASKS.index(task))
    group.attrs["rows"] = np.int32(rows)
    group.attrs["loss"] = np.float64(loss.item())
    put(group, widths=np.array(widths, np.int32), x=x, params=np.concatenate(flat),
        logits=logits.detach().numpy().astype(np.float32),
        grad=np.concatenate([p.grad.numpy().ravel() for layer in layers
                             for p in layer]).astype(np.float32))
    if task == "regress":
        put(group, target=target)
    else:
        put(group, label=label)


def write_nets():
    outputs = [("classify", 3), ("classify", 1), ("regress", 2)]
    with golden("golden_net.h5") as file:
        seed = itertools.count()
        for task, nout in outputs:
            write_net(file, next(seed), "linear", "relu", task, [4, nout], 5)
        for activation, (task, nout) in itertools.product(ACTIVATIONS, outputs):
            write_net(file, next(seed), "mlp", activation, task, [4, 7, 5, nout], 6)
        # Wider than a strip of columns and a vector, and more classes than lanes.
        write_net(file, next(seed), "mlp", "gelu", "classify", [9, 67, 21], 33)


# ---- optimizers ----------------------------------------------------------------------------------

STEPS, COUNT = 12, 9
WORDS = ["sgd", "nesterov", "adagrad", "rmsprop", "adam", "adamw"]


def make_optimizer(word, params, lr, momentum, decay):
    if word == "sgd":
        return torch.optim.SGD(params, lr, momentum=momentum, weight_decay=decay)
    if word == "nesterov":
        return torch.optim.SGD(params, lr, momentum=momentum, weight_decay=decay, nesterov=True)
    if word == "adagrad":
        return torch.optim.Adagrad(params, lr, weight_decay=decay)
    if word == "rmsprop":
        return torch.optim.RMSprop(params, lr, momentum=momentum, weight_decay=decay)
    kind = torch.optim.Adam if word == "adam" else torch.optim.AdamW
    return kind(params, lr, betas=(0.9, 0.999), weight_decay=decay)


def write_optimizer(file, number, word, momentum, decay, clip):
    rng = np.random.default_rng(number)
    start = rng.standard_normal(COUNT).astype(np.float32)
    grads = (rng.standard_normal((STEPS, COUNT)) * 10.0 ** rng.integers(-4, 2,
        COUNT)).astype(np.float32)
    lr = 0.05
    params = torch.tensor(start.copy(), requires_grad=True)
    optimizer = make_optimizer(word, [params], lr, momentum, decay)
    path = []
    for grad in grads:
        params.grad = torch.tensor(grad.copy())
        if clip:
            torch.nn.utils.clip_grad_norm_([params], clip)
        optimizer.step()
        path.append(params.detach().numpy().copy())
    group = file.create_group("%02d" % number)
    group.attrs["optimizer"] = np.int32(WORDS.index(word))
    for name, value in (("lr", lr), ("momentum", momentum), ("weight_decay", decay),
                        ("clip", clip)):
        group.attrs[name] = np.float64(value)
    put(group, start=start, grads=grads, path=np.array(path))


def write_optimizers():
    with golden("golden_optimizer.h5") as file:
        number = itertools.count()
        for word in WORDS:
            momenta = [0.0, 0.9] if word in ("sgd", "rmsprop") else [0.9]
            for momentum, (decay, clip) in itertools.product(momenta,
                [(0.0, 0.0), (0.1, 0.0), (0.01, 1.0)]):
                write_optimizer(file, next(number), word, momentum, decay, clip)


# ---- schedules -----------------------------------------------------------------------------------

SCHEDULES = ["constant", "linear", "cosine", "exponential", "step"]
LR, LOW, RATE, INTERVAL, TOTAL = 0.4, 0.05, 0.5, 6, 20


def scheduler(word, optimizer):
    if word == "constant":
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    if word == "linear":
        return torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LOW / LR, INTERVAL)
    if word == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, INTERVAL, LOW)
    if word == "exponential":
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, RATE ** (1 / INTERVAL))
    return torch.optim.lr_scheduler.StepLR(optimizer, INTERVAL, RATE)


def write_schedules():
    with golden("golden_schedule.h5") as file:
        file.attrs["lr"], file.attrs["decay_rate"] = np.float64(LR), np.float64(RATE)
        file.attrs["min_lr"], file.attrs["decay_steps"] = np.float64(LOW), np.int32(INTERVAL)
        for word in SCHEDULES:
            optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], LR)
            schedule, path = scheduler(word, optimizer), []
            # PyTorch's cosine rises again after its end, ours stays: compare the fall.
            for _ in range(INTERVAL + 1 if word == "cosine" else TOTAL):
                path.append(optimizer.param_groups[0]["lr"])
                optimizer.step()
                schedule.step()
            put(file, **{word: np.array(path)})


write_nets()
write_optimizers()
write_schedules()
