"""Repeats runs of full-batch gradient descent on pictures in PyTorch, from their step-0
checkpoints.

follow_layers.py CSV HEIGHT WIDTH CHANNELS: the CSV holds the rows, channels last, then the class.
stdin: a run directory a line. The network is the checkpoint's text of layers, taken by a small
reader of its own. stdout: for each run the largest relative difference of the losses, that of the
trained weights and that of the running statistics, by norm.
"""
import json
import re
import sys

import h5py
import numpy as np
import torch
from torch.nn import functional

from saved import tensors

STEPS = 50
ACTIVATIONS = {
    "relu": functional.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "gelu": functional.gelu, "silu": functional.silu, "softplus": functional.softplus,
    "leaky_relu": functional.leaky_relu,
}


def split(text):
    """Items at the commas that are in no bracket."""
    return [i.strip() for i in re.split(r",(?![^(]*\))", text)] if "(" not in text else nested(text)


def nested(text):
    items, depth, item = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            items.append(item.strip())
            item = ""
        else:
            item += c
    return items + [item.strip()]


def pair(word):
    return tuple(int(n) for n in (word.split("x") * 2)[:2])


def padded(x, kernel, stride, pad):
    """As `pad P` or `pad same`; x (rows, C, H, W)."""
    if pad != "same":
        p = pair(pad)
        return functional.pad(x, (p[1], p[1], p[0], p[0]))
    every = []
    for size, k, s in zip(x.shape[2:], kernel, stride):
        total = max((-(-size // s) - 1) * s + k - size, 0)
        every.append((total // 2, total - total // 2))
    return functional.pad(x, (*every[1], *every[0]))


class Network:
    def __init__(self, text, layers, running):
        self.text, self.layers, self.running = text, layers, running

    def take(self):
        self.at += 1
        return self.layers[self.at - 1]

    def conv(self, x, words):
        layer, option = self.take(), dict(zip(words[2::2], words[3::2]))
        stride = pair(option.get("stride", "1"))
        x = padded(x, pair(words[1]), stride, option.get("pad", "0"))
        return functional.conv2d(x, layer["weight"].permute(3, 2, 0, 1), layer["bias"], stride,
                                 groups=int(option.get("groups", "1")))

    def batchnorm(self, x):
        index, layer = self.at, self.take()
        mean, var = self.running[index]["running_mean"], self.running[index]["running_var"]
        return functional.batch_norm(x, mean, var, layer["weight"], layer["bias"], training=True)

    def layernorm(self, x):
        layer = self.take()
        last = x.permute(0, 2, 3, 1) if x.dim() == 4 else x
        last = functional.layer_norm(last, last.shape[-1:], layer["weight"], layer["bias"])
        return last.permute(0, 3, 1, 2) if x.dim() == 4 else last

    def dense(self, x):
        layer = self.take()
        flat = x.permute(0, 2, 3, 1).flatten(1) if x.dim() == 4 else x
        return flat @ layer["weight"] + layer["bias"]

    def residual(self, x, text):
        y = self.items(x, text)
        if x.shape == y.shape:
            return y + x
        stride = [-(-a // b) for a, b in zip(x.shape[2:], y.shape[2:])]
        return y + functional.conv2d(x, self.take()["weight"].permute(3, 2, 0, 1), stride=stride)

    def item(self, x, item):
        if item.startswith("residual("):
            return self.residual(x, item[len("residual("):-1])
        words = item.split()
        activation = ACTIVATIONS.get(words[-1], lambda x: x)
        words = words[:-1] if words[-1] in ACTIVATIONS else words
        kind = words[0] if words else ""
        if kind == "conv":
            x = self.conv(x, words[1:])
        elif kind in ("batchnorm", "layernorm"):
            x = getattr(self, kind)(x)
        elif kind == "dense":
            x = self.dense(x)
        elif kind == "maxpool":
            x = functional.max_pool2d(x, pair(words[1]), pair(words[3] if words[3:] else words[1]))
        elif kind == "avgpool":
            x = functional.avg_pool2d(x, pair(words[1]), pair(words[3] if words[3:] else words[1]))
        elif kind == "globalpool":
            x = x.mean((2, 3))
        elif kind == "upsample":
            x = functional.interpolate(x, scale_factor=pair(words[1]), mode="nearest")
        elif kind not in ("", "flatten"):
            raise ValueError(item)
        return activation(x)

    def items(self, x, text):
        for item in split(text):
            x = self.item(x, item)
        return x

    def logits(self, x):
        self.at = 0
        return self.dense(self.items(x, self.text))


def norm_off(have, want):
    have, want = (torch.cat([t.detach().ravel() for t in all_]) for all_ in (have, want))
    return ((have - want).norm() / want.norm()).item()


def main(run_dir, csv, height, width, channels):
    table = torch.from_numpy(np.loadtxt(csv, delimiter=",", dtype=np.float32))
    x = table[:, :-1].reshape(-1, height, width, channels).permute(0, 3, 1, 2)
    y = table[:, -1].long()
    with h5py.File(f"{run_dir}/ckpt/step-{0:09d}.h5", "r") as file:
        config = file.attrs["config"]
    config = config.decode() if isinstance(config, bytes) else config
    text = re.search(r"^layers = (.*)$", config, re.M).group(1).strip('"')
    layers = tensors(run_dir, 0)
    network = Network(text, layers, [dict(layer) for layer in layers])
    trained = [t.requires_grad_() for layer in layers
               for k, t in layer.items() if k in ("weight", "bias")]
    optimizer = torch.optim.SGD(trained, 0.05, 0.9)
    theirs = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(network.logits(x), y)
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    with open(f"{run_dir}/metrics.jsonl") as records:
        ours = [r["loss"] for r in map(json.loads, records) if r["kind"] == "train"]
    assert len(ours) == STEPS, f"{len(ours)} train records"
    end = tensors(run_dir, STEPS)
    have = [t for layer in end for k, t in layer.items() if k in ("weight", "bias")]
    states = [(a[k], b[k]) for a, b in zip(end, network.running) for k in a if "running" in k]
    print(max(abs(a - b) / max(abs(b), 1e-3) for a, b in zip(ours, theirs)),
          norm_off(have, trained),
          norm_off(*zip(*states)) if states else 0.0, flush=True)


for line in sys.stdin:
    main(line.rstrip("\n"), sys.argv[1], *map(int, sys.argv[2:5]))
