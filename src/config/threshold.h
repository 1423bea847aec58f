/* The rule of eval.threshold: how the probability above which a row counts as positive is
 * chosen. */
#ifndef CONFIG_THRESHOLD_H
#define CONFIG_THRESHOLD_H

#include "config/config.h"

struct dt__threshold {
    enum dt__cut {
        DT__CUT_AT,       /* at a given probability, number[0] */
        DT__CUT_F1,       /* where F1 is highest */
        DT__CUT_BALANCED, /* where balanced accuracy is highest */
        DT__CUT_COST,     /* where the cost is least: number[0] per false positive, number[1] per
                           * false negative */
        DT__CUT_RECALL    /* where recall is at least number[0] and the fewest rows are called
                           * positive */
    } kind;
    double number[2];
};
/* Parses eval.threshold. DT_EUSAGE: the text is not a rule. */
dt_status dt__threshold_parse(const char *text, struct dt__threshold *out);

/* Returns true if the held-out rows fit part of the model: its threshold or its temperature. */
bool dt__config_fits(const struct dt_config *config);
/* Returns true if the end of the run adds calibration to the model: what dt__config_fits says,
 * intervals, a chosen positive class, or a given threshold other than 0.5. */
bool dt__config_certifies(const struct dt_config *config);

#endif
