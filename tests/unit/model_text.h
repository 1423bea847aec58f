/* Helpers for the tests of models: a description made from the text of its layers, and random
 * numbers. */
#ifndef UNIT_MODEL_TEXT_H
#define UNIT_MODEL_TEXT_H

#include "model/model.h"
#include "suite.h"

/* Describes a model on nin plain features. It borrows `layers`: do not free the description. */
static inline struct dt_model_desc desc_of(const char *layers, int nin, int nout, int task)
{
    return (struct dt_model_desc){
        .layers = (char *)(uintptr_t)layers, .shape = {1, 1, nin}, .nout = nout, .task = task};
}

/* Returns standard normal numbers that depend only on `stream`; the caller frees them. */
static inline float *randoms(size_t count, uint64_t stream)
{
    float *values;
    EXPECT_OK(dt__alloc(count, sizeof *values, "values", &values));
    struct dt_rng rng = dt__rng_make(5, DT_STREAM_TEST, stream, 0);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)dt__rng_normal(&rng, i);
    return values;
}

#endif
