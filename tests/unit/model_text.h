/* What the tests of models share: a description from its parts. */
#ifndef UNIT_MODEL_TEXT_H
#define UNIT_MODEL_TEXT_H

#include "dtrain/model.h"

/* Rows of nin plain features; lends `layers`: not to be freed. */
static inline struct dt_model_desc desc_of(const char *layers, int nin, int nout, int task)
{
    return (struct dt_model_desc){
        .layers = (char *)(uintptr_t)layers, .shape = {1, 1, nin}, .nout = nout, .task = task};
}

#endif
