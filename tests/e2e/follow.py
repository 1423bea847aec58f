"""Repeats runs of full-batch gradient descent in PyTorch from their step-0 checkpoints.

stdin: a line a run, RUN_DIR CSV TASK OPTIMIZER LR, with a loss for TASK if it is not its usual one;
the CSV holds the features as the network sees them, then the targets. stdout: for each the largest
relative difference of its losses, and that of its weights by norm.
"""
import json
import sys

import h5py
import numpy as np
import torch

MOMENTUM, DECAY, STEPS = 0.9, 0.001, 50


def layers(run_dir, step):
    with h5py.File(f"{run_dir}/ckpt/step-{step:09d}.h5", "r") as file:
        group = file["/model/layers"]
        return [group[n][kind][()] for n in sorted(group, key=int) for kind in ("weight", "bias")]


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, algorithm 2, in double; torch.optim has none."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (beta1, beta2), lr, eps = group["betas"], group["lr"], group["eps"]
            for p in group["params"]:
                state, g = self.state[p], p.grad.double()
                t = state["t"] = state.get("t", 0) + 1
                m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
                v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
                r = m / (1 - beta1**t) / ((v / (1 - beta2**t)).sqrt() + eps) + DECAY * p.double()
                trust = p.double().norm() / r.norm()
                p -= (lr * (trust if trust > 0 else 1) * r).float()


def make_optimizer(name, params, lr):
    make = {
        "sgd": lambda p: torch.optim.SGD(p, lr, MOMENTUM, weight_decay=DECAY),
        "nesterov": lambda p: torch.optim.SGD(p, lr, MOMENTUM, weight_decay=DECAY, nesterov=True),
        "adagrad": lambda p: torch.optim.Adagrad(p, lr, weight_decay=DECAY),
        "rmsprop": lambda p: torch.optim.RMSprop(p, lr, momentum=MOMENTUM, weight_decay=DECAY),
        "adam": lambda p: torch.optim.Adam(p, lr, weight_decay=DECAY),
        "adamw": lambda p: torch.optim.AdamW(p, lr, weight_decay=DECAY),
        "lamb": lambda p: Lamb(p, lr),
    }
    return make[name](params)


def forward(params, x):
    for i in range(0, len(params), 2):
        x = x @ params[i] + params[i + 1]
        if i + 2 < len(params):
            x = torch.tanh(x)
    return x


def quantile_loss(out, y):
    """Pinball losses of quantiles that rise: each is the one before and a softplus."""
    levels = torch.tensor([0.1, 0.5, 0.9])
    out = out.reshape(len(out), -1, 3)
    steps = torch.nn.functional.softplus(out[:, :, 1:])
    error = y[:, :, None] - torch.cumsum(torch.cat([out[:, :, :1], steps], 2), 2)
    return torch.maximum(levels * error, (levels - 1) * error).mean()


def loss_of(task, out, y):
    numbers = {
        "regress": torch.nn.MSELoss(),
        "mae": torch.nn.L1Loss(),
        "huber": torch.nn.HuberLoss(delta=0.3),
        "poisson": torch.nn.PoissonNLLLoss(),
        "multilabel": torch.nn.BCEWithLogitsLoss(),
        "quantile": quantile_loss,
    }
    if task in numbers:
        return numbers[task](out, y)
    if out.shape[1] == 1:
        return torch.nn.functional.binary_cross_entropy_with_logits(out, y)
    return torch.nn.functional.cross_entropy(out, y[:, 0].long())


def descend(task, params, optimizer, x, y):
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(task, forward(params, x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def follow(run_dir, csv, task, optimizer, lr):
    table = torch.from_numpy(np.loadtxt(csv, delimiter=",", dtype=np.float32))
    params = [torch.from_numpy(a.copy()).requires_grad_() for a in layers(run_dir, 0)]
    step = make_optimizer(optimizer, params, float(lr))
    features = params[0].shape[0]
    theirs = descend(task, params, step, table[:, :features], table[:, features:])
    with open(f"{run_dir}/metrics.jsonl") as records:
        ours = [r["loss"] for r in map(json.loads, records) if r["kind"] == "train"]
    assert len(ours) == STEPS, f"{len(ours)} train records"
    loss_off = max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(ours, theirs))
    want = np.concatenate([p.detach().numpy().ravel() for p in params])
    have = np.concatenate([a.ravel() for a in layers(run_dir, STEPS)])
    return loss_off, np.linalg.norm(have - want) / np.linalg.norm(want)


for line in sys.stdin:
    print(*follow(*line.split()), flush=True)
