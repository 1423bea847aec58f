/* Dropout: masks are a pure function of a key and an element's number. Usually dropout is part of
 * the epilogue of the layer before it; otherwise it is a layer by itself. */
#include "base/clones.h"
#include "base/limits.h"
#include "model/activation.h"
#include "model/emitter.h"

#include <math.h>
#include <string.h>

/* Drop number i is word i % 4 of block i / 4 of the key; a unit is dropped if its word is below
 * rate * 2^32. DT__DROPOUT_BLOCKS blocks are generated at a time. */
enum { WORDS = 4, RUN = WORDS * DT__DROPOUT_BLOCKS };

DT__CLONES
static void apply_run(const uint32_t *restrict words, uint32_t threshold, float scale, int n,
                      float *restrict a, float *restrict b)
{
    for (int i = 0; i < n; i++) {
        float factor = words[i] < threshold ? 0.0f : scale;
        a[i] *= factor;
        b[i] *= factor;
    }
}

void dt__dropout_apply(const struct dt__dropout *dropout, uint64_t number, int n, float *restrict a,
                       float *restrict b)
{
    const uint32_t threshold = (uint32_t)fmin(dropout->rate * 0x1p32, 0xffffffffp0);
    const float scale = (float)(1.0 / (1.0 - dropout->rate));
    uint32_t words[RUN];
    for (int done = 0; done < n;) {
        const uint64_t at = number + (uint64_t)done;
        const int skip = (int)(at % WORDS), left = n - done;
        const int part = RUN - skip < left ? RUN - skip : left;
        const size_t blocks = (size_t)((skip + part + WORDS - 1) / WORDS);
        dt__rng_blocks(&dropout->key, at / WORDS, blocks, words);
        apply_run(words + skip, threshold, scale, part, a + done, b + done);
        done += part;
    }
}

bool dt__dropout_of(const struct dt__layer_call *call, struct dt__dropout *out)
{
    const struct dt__layer *layer = call->layer;
    if (!call->keep || !call->dropout || layer->dropout <= 0.0) return false;
    *out = (struct dt__dropout){.key = *call->dropout,
                                .first = layer->drop_number +
                                         call->batch->first_row * dt__shape_size(layer->out),
                                .rate = layer->dropout};
    return true;
}

/* ---- as a separate layer -------------------------------------------------------------------- */

static bool dropout_parse(struct dt__layer *layer, struct dt__layer_args args)
{
    double rate;
    if (args.count != 1 || !dt__arg_real(args.text[0], &rate)) return false;
    layer->dropout = rate;
    return rate >= 0.0 && rate < 1.0;
}

static dt_status dropout_forward(const struct dt__layer_call *call)
{
    struct dt__dropout dropout;
    const size_t width = dt__shape_size(call->layer->out), count = (size_t)call->rows * width;
    memcpy(call->y, call->x, count * sizeof *call->y);
    if (!call->keep) return DT_OK;
    for (size_t i = 0; i < count; i++)
        call->keep[i] = 1.0f;
    if (!dt__dropout_of(call, &dropout)) return DT_OK;
    for (size_t at = 0; at < count; at += width)
        dt__dropout_apply(&dropout, dropout.first + at, (int)width, call->y + at, call->keep + at);
    return DT_OK;
}

const struct dt__layer_kind dt__dropout_layer = {.name = "dropout",
                                                 .usage = "dropout P, 0 <= P < 1",
                                                 .parse = dropout_parse,
                                                 .infer = dt__slope_infer,
                                                 .forward = dropout_forward,
                                                 .backward = dt__slope_backward,
                                                 .emit = dt__emit_nothing};
