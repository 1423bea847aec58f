#!/usr/bin/python3
"""Makes temperatures of a plate at a moment and a while later, for heat.ini: DIR/train.h5 (4000
fields) and DIR/test.h5 (500), /x (rows, 24, 24, 1) and /y (rows, 576). Explicit steps of the heat
equation, the plate's edges held at 0.
    scripts/recipes/heat-data.py [DIR]         DIR: runs/heat-data"""
import os
import sys

import h5py
import numpy

SIDE, STEPS, RATE = 24, 12, 0.2


def blobs(count, random):
    """Fields of a few warm spots and a cold one."""
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    fields = numpy.zeros((count, SIDE, SIDE))
    for sign in (1, 1, 1, -1):
        at = random.uniform(3, SIDE - 4, (2, count, 1, 1))
        width = random.uniform(1, 4, (count, 1, 1))
        height = random.uniform(0.2, 1, (count, 1, 1))
        fields += sign * height * numpy.exp(-((y - at[0]) ** 2 + (x - at[1]) ** 2) / (2 * width**2))
    return fields


def later(fields):
    now = numpy.pad(fields, ((0, 0), (1, 1), (1, 1)))
    for _ in range(STEPS):
        middle = now[:, 1:-1, 1:-1]
        around = now[:, :-2, 1:-1] + now[:, 2:, 1:-1] + now[:, 1:-1, :-2] + now[:, 1:-1, 2:]
        now[:, 1:-1, 1:-1] = middle + RATE * (around - 4 * middle)
    return now[:, 1:-1, 1:-1]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "runs/heat-data"
    os.makedirs(folder, exist_ok=True)
    random = numpy.random.default_rng(1)
    for name, count in (("train", 4000), ("test", 500)):
        fields = blobs(count, random)
        with h5py.File(os.path.join(folder, name + ".h5"), "w") as file:
            file["x"] = fields.astype("f4").reshape(count, SIDE, SIDE, 1)
            file["y"] = later(fields).astype("f4").reshape(count, SIDE * SIDE)


main()
