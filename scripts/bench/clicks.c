/* Generates a click log from a seed: 13 numbers and 26 categories of power-law frequency, up to 10
 * million values a column, with labels drawn from a hidden model, so that the best logloss is
 * known. The section `clicks` runs it.
 *
 *   clicks ROWS SEED OUT.csv [OUT.bin]
 *
 * Column c has 3 to 10^7 values, and value r has probability about 1 / (r log n). The hidden model
 * is logistic: a weight for each number, a weight for each value, and products of the values'
 * hidden vectors for six pairs of columns; values beyond the first thousand or so have small
 * weights, since no program could learn them. The model is the same for each SEED. OUT.bin has rows
 * of 40 words: label, numbers (float), categories hashed to 22 bits (uint32).
 * Standard output: {"rows": ..., "clicks": fraction, "best_logloss": ...} of all rows. */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 13, CATEGORIES = 26, HASH_BITS = 22, PAIRS = 6, HIDDEN = 3 };
static const double MOST_VALUES = 1e7, KNOWN = 1000;

/* Source: Steele et al., "Fast splittable pseudorandom number generators", OOPSLA 2014. */
static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double uniform(uint64_t bits)
{
    return ((double)(bits >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t key)
{
    return sqrt(-2 * log(uniform(mix(key)))) * cos(6.283185307179586 * uniform(mix(key + 1)));
}

/* Returns hidden number `what` of a value. */
static double hidden(int column, uint64_t value, int what)
{
    const uint64_t key = mix((uint64_t)column << 40 | value) ^ (uint64_t)(what + 1) << 56;
    return normal(key) / (1 + (double)value / KNOWN);
}

static double column_size(int column)
{
    return floor(3 * pow(MOST_VALUES / 3, (double)column / (CATEGORIES - 1)));
}

static double logit_of(const float *number, const uint64_t *value)
{
    double logit = -1.4;
    for (int i = 0; i < NUMBERS; i++)
        logit += 0.15 * normal(77 + 2 * (uint64_t)i) * (double)number[i];
    for (int c = 0; c < CATEGORIES; c++)
        logit += 0.25 * hidden(c, value[c], 0);
    for (int p = 0; p < PAIRS; p++)
        for (int h = 0; h < HIDDEN; h++)
            logit += 0.2 * hidden(4 * p, value[4 * p], 1 + h) *
                     hidden(4 * p + 1, value[4 * p + 1], 1 + h);
    return logit;
}

static void write_binary(FILE *out, int label, const float *number, const uint64_t *value)
{
    union {
        float real;
        uint32_t word;
    } row[1 + NUMBERS + CATEGORIES];
    row[0].real = (float)label;
    for (int i = 0; i < NUMBERS; i++)
        row[1 + i].real = number[i];
    for (int c = 0; c < CATEGORIES; c++)
        row[1 + NUMBERS + c].word =
            (uint32_t)(mix((uint64_t)c << 40 | value[c]) & ((1U << HASH_BITS) - 1));
    fwrite(row, sizeof row, 1, out);
}

static void write_csv(FILE *out, int label, const float *number, const uint64_t *value)
{
    fprintf(out, "%d", label);
    for (int i = 0; i < NUMBERS; i++)
        fprintf(out, ",%.3f", (double)number[i]);
    for (int c = 0; c < CATEGORIES; c++)
        fprintf(out, ",x%" PRIx64, value[c]);
    fputc('\n', out);
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: clicks ROWS SEED OUT.csv [OUT.bin]\n");
        return 2;
    }
    const uint64_t rows = strtoull(argv[1], NULL, 10), seed = mix(strtoull(argv[2], NULL, 10));
    FILE *csv = fopen(argv[3], "w"), *binary = argc > 4 ? fopen(argv[4], "wb") : NULL;
    double loss = 0, clicks = 0, log_size[CATEGORIES];
    if (!csv || (argc > 4 && !binary)) {
        fprintf(stderr, "clicks: cannot write\n");
        return 1;
    }
    fprintf(csv, "click");
    for (int i = 0; i < NUMBERS; i++)
        fprintf(csv, ",n%d", i + 1);
    for (int c = 0; c < CATEGORIES; c++) {
        fprintf(csv, ",c%d", c + 1);
        log_size[c] = log(column_size(c) + 1);
    }
    fputc('\n', csv);
    for (uint64_t r = 0; r < rows; r++) {
        float number[NUMBERS];
        uint64_t value[CATEGORIES];
        const uint64_t key = mix(seed + r);
        for (int i = 0; i < NUMBERS; i++)
            number[i] = (float)rint(1000 * normal(key + 2 * (uint64_t)i)) / 1000;
        for (int c = 0; c < CATEGORIES; c++)
            value[c] = (uint64_t)exp(uniform(mix(key ^ (uint64_t)(c + 1) << 48)) * log_size[c]);
        const double p = 1 / (1 + exp(-logit_of(number, value)));
        const int label = uniform(mix(key ^ UINT64_C(0xc11c4))) < p;
        loss -= log(label ? p : 1 - p);
        clicks += label;
        write_csv(csv, label, number, value);
        if (binary) write_binary(binary, label, number, value);
    }
    if (fclose(csv) || (binary && fclose(binary))) {
        fprintf(stderr, "clicks: cannot write\n");
        return 1;
    }
    printf("{\"rows\": %" PRIu64 ", \"clicks\": %.4f, \"best_logloss\": %.5f}\n", rows,
           clicks / (double)rows, loss / (double)rows);
    return 0;
}
