"""Checks an ONNX file with the onnx package and computes it with numpy.

    onnx_run.py MODEL.onnx PREDICTIONS <ROWS

ROWS: JSON arrays, or objects by columns, null for a gap. PREDICTIONS: what `dtrain predict` said of
them. Prints the largest difference, and other classes.
"""
import datetime
import json
import math
import sys

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

erf = np.vectorize(math.erf, otypes=[np.float32])


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def pairs(values):
    half = len(values) // 2
    return list(zip(values[:half], values[half:]))


def windows(x, kernel, strides):
    """(N, C, OH, OW, KH, KW)"""
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return view[:, :, ::strides[0], ::strides[1]]


def conv(x, w, b=None, kernel_shape=None, strides=(1, 1), pads=(0, 0, 0, 0), group=1):
    x = np.pad(x, [(0, 0), (0, 0)] + pairs(pads))
    view, out = windows(x, w.shape[2:], strides), []
    cin, cout = x.shape[1] // group, w.shape[0] // group
    for g in range(group):
        out.append(np.einsum("nchwij,fcij->nfhw", view[:, g * cin:(g + 1) * cin],
                             w[g * cout:(g + 1) * cout]))
    y = np.concatenate(out, 1)
    return y if b is None else y + b[:, None, None]


OPS = {
    "Mul": lambda a, b: a * b,
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Clip": lambda x, low, high: np.clip(x, low, high),
    "IsNaN": np.isnan,
    "Where": np.where,
    "Gather": lambda x, indices, axis: x.take(indices, axis),
    "Div": lambda a, b: a / b,
    "Neg": lambda a: -a,
    "Min": np.minimum,
    "Max": np.maximum,
    "Round": np.rint,
    "Abs": np.abs,
    "Log": np.log,
    "Sqrt": np.sqrt,
    "Erf": erf,
    "Max": np.maximum,
    "Min": np.minimum,
    "Relu": lambda x: np.maximum(x, 0),
    "LeakyRelu": lambda x, alpha=0.01: np.where(x < 0, np.float32(alpha) * x, x),
    "Softplus": lambda x: np.logaddexp(0, x),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Exp": np.exp,
    "Identity": lambda x: x,
    "Gemm": lambda x, w, b: x @ w + b,
    "MatMul": lambda x, w: x @ w,
    "Slice": lambda x, starts, ends, axes: x[:, starts[0]:ends[0]],
    "Softmax": softmax,
    "ArgMax": lambda x, axis, keepdims: x.argmax(axis),
    "Greater": lambda a, b: a > b,
    "Cast": lambda x, to: x.astype({1: np.float32, 7: np.int64, 11: np.float64}[to]),
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Reshape": lambda x,
    shape: x.reshape([x.shape[i] if n == 0 else n for i, n in enumerate(shape)]),
    "Transpose": lambda x, perm: x.transpose(perm),
    "ReduceMean": lambda x, axes, keepdims: x.mean(tuple(axes), keepdims=bool(keepdims)),
    "Tile": np.tile,
    "LayerNormalization": lambda x, w, b, axis, epsilon:
        (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * w + b,
    "Conv": conv,
    "MaxPool": lambda x, kernel_shape, strides: windows(x, kernel_shape, strides).max((4, 5)),
    "AveragePool": lambda x, kernel_shape, strides: windows(x, kernel_shape, strides).mean((4, 5)),
}


def run(model, rows):
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    values["input"] = rows
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        values[node.output[0]] = OPS[node.op_type](*(values[name] for name in node.input),
                                                   **attributes)
    return values


DATES = ("(days)", "(year)", "(month)", "(weekday)")


def inputs(row, names):
    """The graph's inputs; of an object by columns, a feature 'a=b' is whether column a is b."""
    if isinstance(row, list):
        return row
    return [row[name] if name in row else part_of_date(row, name) if name.endswith(DATES)
            else row.get(name.split("=")[0]) == name.split("=")[-1] for name in names]


def part_of_date(row, name):
    """'when (month)' of {"when": "2021-03-04"}"""
    column, part = name[:-1].split(" (")
    if row[column] is None:
        return None
    date = datetime.date.fromisoformat(row[column])
    return {"days": (date - datetime.date(1970, 1, 1)).days, "year": date.year, "month": date.month,
            "weekday": date.isoweekday()}[part]


def main(path, predictions):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    assert model.opset_import[0].version == 17
    for value in [*model.graph.input, *model.graph.output]:
        assert value.type.tensor_type.shape.dim[0].dim_param == "rows", value
    names = {p.key: json.loads(p.value) for p in model.metadata_props if p.key.endswith("_names")}
    rows = np.array([inputs(json.loads(line), names.get("feature_names")) for line in sys.stdin],
                    np.float32)
    with open(predictions) as file:
        said = [json.loads(line) for line in file]
    values, wrong = run(model, rows), 0
    if "values" in values:
        answers, key = values["values"], None
        told = np.array([r["values"] if "values" in r else [r["value"]] for r in said])
    else:
        answers = values["probabilities"]
        told = np.array([r["probabilities"] for r in said])
        wrong = sum(r.get("class") != c
                    for r, c in zip(said, values.get("class", [None] * len(said))))
        if "class_names" in names:
            wrong += sum(r["label"] != names["class_names"][r["class"]] for r in said)
    for end in ("low", "high"):
        assert (end in values) == (end in said[0]), f"{end} is missing"
        if end in values:
            answers = np.concatenate([answers, values[end]], 1)
            told = np.concatenate([told, np.array([r[end] for r in said]).reshape(len(said), -1)],
                                  1)
    assert answers.shape == told.shape, f"{answers.shape}, not {told.shape}"
    print(f"difference={np.abs(answers - told).max()} wrong={wrong}")


main(*sys.argv[1:])
