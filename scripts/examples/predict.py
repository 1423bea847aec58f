#!/usr/bin/env python3
"""Answers one row of numbers with a model that dtrain has trained, through the C library:
    LIBRARY=/usr/local/lib/libdtrain.so.0.3 python3 predict.py RUN_DIR 0.5 0.25 ...
Needs Python alone; with numpy, pass array.ctypes.data_as(FLOATS) instead of the two arrays."""
import ctypes
import os
import sys

FLOATS = ctypes.POINTER(ctypes.c_float)


def load_library():
    library = ctypes.CDLL(os.environ.get("LIBRARY", "libdtrain.so.0.3"))
    library.dt_error_text.restype = ctypes.c_char_p
    library.dt_predictor_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p)]
    library.dt_predictor_rows.argtypes = [ctypes.c_void_p, FLOATS, ctypes.c_size_t, FLOATS,
                                          ctypes.POINTER(ctypes.c_int32)]
    for name in ("features", "width", "classes", "close"):
        getattr(library, "dt_predictor_" + name).argtypes = [ctypes.c_void_p]
    return library


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: predict.py MODEL|RUN_DIR NUMBER...")
    dtrain, predictor = load_library(), ctypes.c_void_p()

    def check(status):
        if status:
            sys.exit(dtrain.dt_error_text().decode())

    check(dtrain.dt_predictor_open(sys.argv[1].encode(), ctypes.byref(predictor)))
    row = [float(word) for word in sys.argv[2:]]
    if len(row) != dtrain.dt_predictor_features(predictor):
        sys.exit("the model takes %d numbers" % dtrain.dt_predictor_features(predictor))
    answer = (ctypes.c_float * dtrain.dt_predictor_width(predictor))()
    check(dtrain.dt_predictor_rows(predictor, (ctypes.c_float * len(row))(*row), 1, answer, None))
    print(*("%g" % value for value in answer), sep="\n")
    dtrain.dt_predictor_close(predictor)


main()
