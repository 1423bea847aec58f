/* data: rows in a program's memory.
 *
 * A struct that a program fills begins with its size, so that a program compiled with an older or a
 * newer header runs with this library. Initialise the struct with its _INIT macro, then set
 * members. A call returns DT_EUSAGE if a member that the library does not know is not 0. */
#ifndef DTRAIN_DATA_H
#define DTRAIN_DATA_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows in the caller's memory, row-major, borrowed. */
struct dt_arrays {
    size_t size; /* sizeof(struct dt_arrays) */
    uint64_t rows;
    int features, targets; /* targets: columns of `target`; 0 for classes */
    const float *x;        /* (rows, features) finite; pictures: channels last, see data.shape */
    const int32_t *label;  /* classify: (rows) class numbers, from 0 */
    const float *target;   /* regress, multilabel: (rows, targets) finite */
    const float *weight;   /* (rows) weights of the samples, at least 0; NULL: all 1 */
    /* Only for training rows; (rows) or NULL. Rows of one group are all trained on or all held out.
     * With times, the latest rows are held out. See data.group and data.time. */
    const int64_t *group;
    const double *time; /* finite, in seconds */
};
#define DT_ARRAYS_INIT                                                                             \
    {                                                                                              \
        sizeof(struct dt_arrays), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL                      \
    }

#ifdef __cplusplus
}
#endif

#endif
