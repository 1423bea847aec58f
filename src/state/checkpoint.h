/* checkpoint: describes the contents of a checkpoint or a model. Tables of named records drive
 * saving, loading, copying and freeing; dt__vector_at describes the flat vectors, whose names
 * depend on the run. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "hdf5/read.h"
#include "state/state.h"

/* An attribute or an array of rank 1 in the file, and the member of struct dt_checkpoint that it
 * stores, given by its offset. A number has the C type that `type` names; U8 is a bool; a text is a
 * char[24]. */
struct dt__record {
    const char *path; /* "/model@task", "/schema/mean" */
    enum dt__h5_type type;
    size_t member;
    bool optional;       /* files without it are valid */
    bool pointer;        /* the member is a pointer to the text or the array; NULL: not stored */
    size_t count;        /* offset of the int member that holds the array's length; 0: no array */
    const char *choices; /* the member is an int, stored as one of these words, such as
                        * "sync|async" */
    size_t only_if; /* offset of an int member: the record is stored if it is not 0; 0: always */
};
/* Tables of records, each ended by an empty row: the schema, the rest of a model, and what only a
 * checkpoint has. */
enum { DT__SCHEMA_RECORDS, DT__MODEL_RECORDS, DT__RESUME_RECORDS, DT__RECORD_TABLES };
extern const struct dt__record *const dt__records[DT__RECORD_TABLES];
/* Returns the int member at an offset. */
int dt__record_int(const struct dt_checkpoint *checkpoint, size_t offset);
/* Returns the size in bytes of the text or the array of numbers that the pointer member points
 * to. */
size_t dt__record_bytes(const struct dt__record *record, const struct dt_checkpoint *checkpoint);

/* A flat vector in the file. Each tensor is one array, PATH/<name of the tensor>, such as
 * /optimizer/momentum/layers/0/bias. */
struct dt__vector {
    char path[160];
    const char *name; /* of a state, such as "momentum"; DT__DIFFERENCE for a group's difference */
    int group;        /* the group that the vector belongs to; -1: none */
    float **at;       /* address of the pointer to the vector; NULL: the checkpoint has no such
                       * vector */
    bool trained;     /* holds only trained tensors: an optimizer has no state for the others, which
                    * are 0 */
    bool optional;    /* files without it are valid */
};
/* train.overlap: name of the difference of a group's last round */
#define DT__DIFFERENCE "difference"
/* Describes the vector number `index`; returns false after the last one. Vector 0 is the
 * parameters, the only vector of a model. Vector 1 is the parameters of the best model. From
 * DT__FIRST_STATE on follow the optimizer's states, then the states and the difference of each
 * group. */
enum { DT__FIRST_STATE = 2 };
bool dt__vector_at(struct dt_checkpoint *checkpoint, int index, struct dt__vector *out);

#endif
