/* onnx: a predictor as an ONNX file (opset 17), for other runtimes. Not collective.
 *
 * The graph has one input, "input" (rows, features): raw features, as in data files; scaling and
 * normalisation are part of the graph. For a table with texts the features are those that
 * "feature_names" lists, each 1 or 0: "colour=green". Outputs: "probabilities" (rows, classes) and
 * "class" (rows) int64, or "values" (rows, targets). The model's metadata has "task", "step",
 * "layers", and as JSON lists, where they are known, "feature_names" and "class_names". */
#ifndef PREDICT_ONNX_H
#define PREDICT_ONNX_H

#include "predict/predict.h"

/* Writes PATH whole or not at all. DT_EUSAGE: a layer has no translation. DT_EFORMAT: larger than 2
 * GB, the most that the format holds. DT_EIO; DT_EMEMORY. */
dt_status dt__onnx_write(const struct dt_predictor *predictor, const char *path);

#endif
