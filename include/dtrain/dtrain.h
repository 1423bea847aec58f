/* dtrain: includes the whole library. `pkg-config --cflags --libs dtrain` prints the flags;
 * library.md in the documentation begins with a first program. */
#ifndef DTRAIN_DTRAIN_H
#define DTRAIN_DTRAIN_H

#include "dtrain/base.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/history.h"
#include "dtrain/predict.h"
#include "dtrain/serve.h"
#include "dtrain/train.h"
#include "dtrain/world.h"

#endif
