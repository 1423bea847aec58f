/* dtrain: the whole library. Link with what `pkg-config --libs dtrain` says. */
#ifndef DTRAIN_DTRAIN_H
#define DTRAIN_DTRAIN_H

#include "dtrain/async.h"
#include "dtrain/base.h"
#include "dtrain/comm.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/history.h"
#include "dtrain/model.h"
#include "dtrain/onnx.h"
#include "dtrain/page.h"
#include "dtrain/predict.h"
#include "dtrain/report.h"
#include "dtrain/serve.h"
#include "dtrain/state.h"
#include "dtrain/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, as "1.2.3". */
const char *dt_version(void);

#ifdef __cplusplus
}
#endif

#endif
