"""Fails unless each group of the second checkpoint has the mean of the two groups of the first.

group_means.py TWO.h5 FOUR.h5
"""
import sys

import h5py
import numpy

two, four = (h5py.File(path)["groups"] for path in sys.argv[1:])
names = []
two["0"].visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
assert len(names) == 8 and len(four) == 4, (names, list(four))
for name in names:
    one, other = two["0"][name][()], two["1"][name][()]
    assert (one != other).any(), name
    for group in four.values():
        assert numpy.allclose(group[name][()], (one + other) / 2, 1e-6, 1e-9), name
