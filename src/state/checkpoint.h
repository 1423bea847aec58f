/* checkpoint: the contents of a checkpoint or a model: tables of named records, by which saving,
 * loading, copying and freeing are driven, and the flat vectors, whose names depend on the run. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "hdf5/read.h"
#include "state/state.h"

/* An attribute, or an array of rank 1, that stores a member of struct dt_checkpoint, given by its
 * offset. Numbers have the C type of that name, U8 is a bool; a text is a char[16]. */
struct dt__record {
    const char *path; /* "/model@task", "/schema/mean" */
    enum dt__h5_type type;
    size_t member;
    bool optional;     /* a file may lack it */
    bool pointer;      /* the member points to the text or the array; NULL: none */
    size_t count;      /* for an array: the int member that holds its length */
    const char *words; /* the member is an int, stored as one of these words: "sync|async" */
    size_t when;       /* an int member: the record exists if it is not 0; 0: always */
};
/* Tables, each up to an empty row: the schema; what a model has besides it; what a checkpoint has
 * beyond a model. */
enum { DT__SCHEMA_RECORDS, DT__MODEL_RECORDS, DT__RESUME_RECORDS, DT__RECORD_TABLES };
extern const struct dt__record *const dt__records[DT__RECORD_TABLES];
/* Returns the int member at an offset. */
int dt__record_int(const struct dt_checkpoint *checkpoint, size_t offset);
/* Returns the bytes to which the pointer of a text or an array of numbers points. */
size_t dt__record_bytes(const struct dt__record *record, const struct dt_checkpoint *checkpoint);

/* A flat vector in the file: GROUP/<name of a tensor>, e.g. /optimizer/momentum/layers/0/bias. */
struct dt__vector {
    char path[160];
    const char *name; /* of a state, e.g. "momentum"; of a group's difference DT__DIFFERENCE */
    int group;        /* group that it belongs to; -1: none */
    float **at;       /* address of its pointer; NULL: no such vector */
    bool trained;  /* covers only trained tensors: an optimizer has no state for the others, which
                    * are 0 */
    bool optional; /* a file may lack it */
};
/* train.overlap: the difference of a group's last round. */
#define DT__DIFFERENCE "difference"
/* Describes vector number `index`; returns false after the last one. Vector 0 is the parameters,
 * the only one of a model; vectors from DT__FIRST_STATE on are states: the optimizer's, then each
 * group's and its difference. */
enum { DT__FIRST_STATE = 2 };
bool dt__vector_at(struct dt_checkpoint *checkpoint, int index, struct dt__vector *out);

#endif
