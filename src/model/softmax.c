#include "model/loss.h"
#include "model/vmath.h"

/* Rows are reduced in lanes, so that the compiler can use vectors; lane = column % LANES. */
enum { LANES = 16 };

static float row_max(int n, const float *row)
{
    float most = row[0];
    for (int i = 1; i < n; i++)
        most = row[i] > most ? row[i] : most;
    return most;
}

float dt__row_sum(int n, const float *row)
{
    float lane[LANES] = {0}, sum = 0.0f;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lane[l] += row[i + l];
    if (i)
        for (int l = 0; l < LANES; l++)
            sum += lane[l];
    for (; i < n; i++)
        sum += row[i];
    return sum;
}

void dt__softmax_shift(int n, float *row)
{
    float most = row_max(n, row);
    for (int i = 0; i < n; i++)
        row[i] -= most;
}

void dt__softmax_exp(size_t count, float *z)
{
    for (size_t i = 0; i < count; i++)
        z[i] = dt__expf(z[i]);
}

static void softmax_pair(const float *logits, int rows, float *out)
{
    for (size_t r = (size_t)rows; r-- > 0;) { /* from the end: out may be logits */
        float logit = logits[r];
        out[2 * r] = dt__sigmoidf(-logit);
        out[2 * r + 1] = dt__sigmoidf(logit);
    }
}

void dt_softmax(const float *logits, int rows, int nout, float *out)
{
    if (nout == 1) {
        softmax_pair(logits, rows, out);
        return;
    }
    const size_t width = (size_t)nout, count = (size_t)rows * width;
    if (out != logits) memcpy(out, logits, count * sizeof *out);
    for (size_t at = 0; at < count; at += width)
        dt__softmax_shift(nout, out + at);
    dt__softmax_exp(count, out);
    for (size_t at = 0; at < count; at += width) {
        float sum = dt__row_sum(nout, out + at);
        for (int i = 0; i < nout; i++)
            out[at + (size_t)i] /= sum;
    }
}
