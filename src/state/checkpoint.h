/* checkpoint: what a checkpoint or a model consists of: tables of named records, which saving,
 * loading, copying and freeing go over, and the flat vectors, whose names depend on the run. */
#ifndef DT_STATE_CHECKPOINT_H
#define DT_STATE_CHECKPOINT_H

#include "dtrain/state.h"
#include "hdf5/read.h"

enum dt__record_kind {
    /* attributes */
    DT__RECORD_INT,  /* int */
    DT__RECORD_I64,  /* int64_t */
    DT__RECORD_U32,  /* uint32_t */
    DT__RECORD_U64,  /* uint64_t */
    DT__RECORD_REAL, /* double */
    DT__RECORD_BOOL, /* bool, a byte in the file */
    DT__RECORD_WORD, /* int, one of `words` ("sync|async"), stored as the word */
    DT__RECORD_NAME, /* char[16] */
    DT__RECORD_TEXT, /* char *; NULL: there is none */
    /* arrays of as many as the int at `count` says; NULL: there is none */
    DT__RECORD_FLOATS,
    DT__RECORD_DOUBLES,
    DT__RECORD_COUNTS, /* uint64_t */
    DT__RECORD_NAMES   /* texts */
};

/* Members of struct dt_checkpoint are told by their offsets. */
struct dt__record {
    const char *path; /* "/model@task", "/schema/mean" */
    enum dt__record_kind kind;
    size_t member;
    bool optional; /* a file may have none */
    const char *words;
    size_t count;
    size_t when; /* an int: without it, if that is 0, there is no such record; 0: always */
};
/* Tables, each to an empty row: the schema; what a model has beside it; what a checkpoint has
 * beyond a model. */
enum { DT__SCHEMA_RECORDS, DT__MODEL_RECORDS, DT__RESUME_RECORDS, DT__RECORD_TABLES };
extern const struct dt__record *const dt__records[DT__RECORD_TABLES];
/* The int member at an offset. */
int dt__record_int(const struct dt_checkpoint *checkpoint, size_t offset);
/* Numbers are stored as this; DT__H5_TEXT: texts. */
enum dt__h5_type dt__record_type(const struct dt__record *record);

/* Bytes that the pointer of a text or an array of numbers leads to. */
size_t dt__record_bytes(const struct dt__record *record, const struct dt_checkpoint *checkpoint);

/* A flat vector in the file: GROUP/<name of a tensor>, e.g. /optimizer/momentum/layers/0/bias. */
struct dt__vector {
    char group[160];
    float **at;    /* where its pointer is; NULL: there is none */
    bool trained;  /* of the trained tensors alone: an optimizer has nothing for the others, 0 */
    bool optional; /* a file may have none */
};
/* Vector number `index`; false behind the last. 0 is the parameters, all that a model has. */
bool dt__vector_at(struct dt_checkpoint *checkpoint, int index, struct dt__vector *out);

#endif
