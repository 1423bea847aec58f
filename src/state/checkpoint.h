/* checkpoint: what a checkpoint or a model consists of: tables of named records, which saving,
 * loading, copying and freeing go over, and the flat vectors, whose names depend on the run. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "hdf5/read.h"
#include "state/state.h"

/* An attribute, or an array of rank 1, of a member of struct dt_checkpoint; members are told by
 * their offsets. Numbers are of the C type of that name, U8 a bool; a text is a char[16]. */
struct dt__record {
    const char *path; /* "/model@task", "/schema/mean" */
    enum dt__h5_type type;
    size_t member;
    bool optional;     /* a file may have none */
    bool pointer;      /* the member leads to the text or the array; NULL: there is none */
    size_t count;      /* of an array: the int that says how many it has */
    const char *words; /* the member is an int, stored as one of these: "sync|async" */
    size_t when;       /* an int: there is no such record if that is 0; 0: always */
};
/* Tables, each to an empty row: the schema; what a model has beside it; what a checkpoint has
 * beyond a model. */
enum { DT__SCHEMA_RECORDS, DT__MODEL_RECORDS, DT__RESUME_RECORDS, DT__RECORD_TABLES };
extern const struct dt__record *const dt__records[DT__RECORD_TABLES];
/* The int member at an offset. */
int dt__record_int(const struct dt_checkpoint *checkpoint, size_t offset);
/* Bytes that the pointer of a text or an array of numbers leads to. */
size_t dt__record_bytes(const struct dt__record *record, const struct dt_checkpoint *checkpoint);

/* A flat vector in the file: GROUP/<name of a tensor>, e.g. /optimizer/momentum/layers/0/bias. */
struct dt__vector {
    char path[160];
    const char *name; /* of a state: "momentum"; of a group's difference DT__DIFFERENCE */
    int group;        /* whose it is; -1: of none */
    float **at;    /* where its pointer is; NULL: there is none */
    bool trained;  /* of the trained tensors alone: an optimizer has nothing for the others, 0 */
    bool optional; /* a file may have none */
};
/* train.overlap: of a group's last round. */
#define DT__DIFFERENCE "difference"
/* Vector number `index`; false behind the last. 0 is the parameters, all that a model has; from
 * DT__FIRST_STATE on they are states: the optimizer's, then each group's and its difference. */
enum { DT__FIRST_STATE = 2 };
bool dt__vector_at(struct dt_checkpoint *checkpoint, int index, struct dt__vector *out);

#endif
