/* The rule of eval.threshold: above which probability of the positive class a row is called so. */
#ifndef CONFIG_THRESHOLD_H
#define CONFIG_THRESHOLD_H

#include "config/config.h"

struct dt__threshold {
    enum dt__cut {
        DT__CUT_AT,       /* a probability, number[0] */
        DT__CUT_F1,       /* most F1 */
        DT__CUT_BALANCED, /* most balanced accuracy */
        DT__CUT_COST,     /* least cost: number[0] a false positive, number[1] a false negative */
        DT__CUT_RECALL    /* fewest rows called positive at a recall of number[0] */
    } kind;
    double number[2];
};
/* DT_EUSAGE: the text is no such rule. */
dt_status dt__threshold_parse(const char *text, struct dt__threshold *out);

/* Returns true if held-out rows choose the threshold or fit a temperature; dt__config_certifies, if
 * the end of a run adds anything to its model. */
bool dt__config_fits(const struct dt_config *config);
bool dt__config_certifies(const struct dt_config *config);

#endif
