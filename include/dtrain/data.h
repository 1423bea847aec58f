/* data: rows in a program's memory.
 *
 * Structs that a program fills begin with their size, so that programs compiled with an older or a
 * newer header run with this library. Initialise them with their _INIT macro, then set members. A
 * member that the library does not know must be 0, else the call returns DT_EUSAGE. */
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
    const float *x;        /* (rows, features) finite; a picture: channels last, see data.shape */
    const int32_t *label;  /* model.task=classify: (rows), classes from 0 */
    const float *target;   /* regress, multilabel: (rows, targets) finite */
    const float *weight;   /* (rows) weights of the samples, at least 0; NULL: all 1 */
    /* (rows) of training rows. NULL: none. Rows of one group are either trained on or held out;
     * held-out rows are the latest. See data.group and data.time. */
    const int64_t *group;
    const double *time; /* finite, in seconds */
};
#define DT_ARRAYS_INIT                                                                             \
    {                                                                                              \
        sizeof(struct dt_arrays), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL                                \
    }

#ifdef __cplusplus
}
#endif

#endif
