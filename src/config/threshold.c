#include "config/threshold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/internal.h"

static const struct {
    const char *word;
    int numbers;
    double most; /* upper bound of each number, exclusive */
} RULES[] = {[DT__CUT_AT] = {"", 1, 1},
             [DT__CUT_F1] = {"f1", 0, 0},
             [DT__CUT_BALANCED] = {"balanced_accuracy", 0, 0},
             [DT__CUT_COST] = {"cost:", 2, 1e100},
             [DT__CUT_RECALL] = {"recall:", 1, 1}};

/* Reads the `count` numbers that follow a rule's word. Returns false unless each is above 0 and
 * below `most`, and nothing else follows. */
static bool numbers_read(const char *text, int count, double most, double *out)
{
    for (int i = 0; i < count; i++) {
        char *end;
        if (i && *text++ != ',') return false;
        out[i] = dt__real_read(text, &end);
        if (end == text || !(out[i] > 0) || !(out[i] < most)) return false;
        text = end;
    }
    return !*text;
}

dt_status dt__threshold_parse(const char *text, struct dt__threshold *out)
{
    for (int i = DT__CUT_RECALL; i >= DT__CUT_AT; i--) {
        const size_t length = strlen(RULES[i].word);
        *out = (struct dt__threshold){.kind = (enum dt__cut)i};
        if (!strncmp(text, RULES[i].word, length) &&
            numbers_read(text + length, RULES[i].numbers, RULES[i].most, out->number))
            return DT_OK;
    }
    return dt_fail(DT_EUSAGE,
                   "eval.threshold=%.100s: expected a probability between 0 and 1 (0.5), f1, "
                   "balanced_accuracy, cost:FP,FN (the cost of a false positive and of a false "
                   "negative, above 0) or recall:R (between 0 and 1)",
                   text);
}

bool dt__config_fits(const struct dt_config *config)
{
    struct dt__threshold threshold;
    return config->eval.calibrate || dt__threshold_parse(config->eval.threshold, &threshold) ||
           threshold.kind != DT__CUT_AT;
}

bool dt__config_certifies(const struct dt_config *config)
{
    return dt__config_fits(config) || config->predict.interval > 0 || *config->eval.positive ||
           strcmp(config->eval.threshold, "0.5") != 0;
}
