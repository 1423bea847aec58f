/* onnx: writes a predictor as an ONNX file (opset 17), for other runtimes. Not collective.
 *
 * The graph's only input is "input" (rows, features): raw features as in data files, since scaling
 * and normalisation are part of the graph. A column of texts in a table becomes several features,
 * which are 1 or 0; "feature_names" names them, for example "colour=green". The outputs are
 * "probabilities" (rows, classes) and "class" (rows) int64, or "values" (rows, targets); with
 * intervals also "low" and "high" (rows, targets). The model's metadata has "task", "step",
 * "layers" and, as JSON lists and if they are known, "feature_names" and "class_names". */
#ifndef PREDICT_ONNX_H
#define PREDICT_ONNX_H

#include "predict/predict.h"

/* Writes the file whole, or not at all. DT_EUSAGE: a layer has no translation. DT_EFORMAT: the file
 * would be larger than 2 GB, the format's limit. DT_EIO; DT_EMEMORY. */
dt_status dt__onnx_write(const struct dt_predictor *predictor, const char *path);

#endif
