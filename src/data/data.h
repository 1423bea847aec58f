/* data: readers, the plan of which replica draws which sample at which step, and loading.
 *
 * The bank surveys the files once (counts rows, learns the schema); the survey travels as bytes to
 * the other ranks, which open only the files that they read rows of. No MPI here. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"
#include "config/config.h"
#include "data/row_split.h"
#include "dtrain/data.h"
#include "table/schema.h"

/* ---- source --------------------------------------------------------------------------------- */

/* predict: as eval, but labels of HDF5 are not read, and IDX may have none. also: as eval, but
 * rows may have classes that the model does not know; their label is -1. test: the rows
 * that data.test_fraction takes of data.train. shards: all rows of data.train, and their groups and
 * times. */
enum dt_part {
    DT_PART_TRAIN,
    DT_PART_EVAL,
    DT_PART_PREDICT,
    DT_PART_ALSO,
    DT_PART_TEST,
    DT_PART_SHARDS
};

dt_status dt__schema_copy(const struct dt_schema *schema, struct dt_schema *out);

struct dt_source; /* surveyed files: formats, row counts, chunk index, schema, held-out rows */

/* Surveys data.train or data.eval (or the held-out fraction of data.train): expands globs (sorted
 * bytewise), opens every file, counts rows, checks shapes, for text formats parses every row once.
 * Without `known` the schema is learned; with it (evaluation data, resume) the data must fit it: an
 * evaluation label never seen in training is an error. Rows of data.train have weights either way,
 * those of evaluation data with eval.weighted.
 * Not collective: the bank calls it. *out is NULL, with DT_OK, if there is no evaluation data.
 * DT_EIO: missing or unreadable file; DT_EFORMAT: "FILE:LINE: column N: ..." (columns count from 0,
 * as in data.label) or "FILE: ...";
 * DT_EMISMATCH: files, or file and `known`, differ in shape; without `known`, a key is set that
 * only readers of other formats take. */
dt_status dt__source_survey(const struct dt_config *config, enum dt_part part,
                            const struct dt_schema *known, struct dt_source **out);
/* Rows in the caller's memory, row-major, which the source borrows and reads as it would read a
 * file of the same numbers. */

/* A source of arrays, which must outlive it. Without `known` it is training data, of which
 * data.eval_fraction may hold out some; with it, evaluation data. Scaling and normalisation are as
 * `config` has them. Not collective: where several ranks read, each makes its own, of the same
 * rows.
 * DT_EUSAGE: no rows; DT_EMISMATCH: labels or targets are missing, or do not fit `known`;
 * DT_EFORMAT: a label or a weight out of range. */
dt_status dt__source_from_arrays(const struct dt_config *config, const struct dt_arrays *arrays,
                                 const struct dt_schema *known, struct dt_source **out);

/* Another side of a surveyed training source's split, without a second survey: its held-out or its
 * test rows; *out is NULL if there are none. */
dt_status dt__source_side(const struct dt_source *train, enum dt__side side,
                          struct dt_source **out);
/* Another side of the split of a fold, of a source that was surveyed with search.folds. */
dt_status dt__source_fold(const struct dt_source *source, int fold, enum dt__side side,
                          struct dt_source **out);
/* Makes a source of a sample of the training rows, without a second survey. The same rows and seed
 * give the same sample. If there are at most `rows` rows, it has all of them. DT_EMEMORY. */
dt_status dt__source_sample(const struct dt_source *train, uint64_t seed, uint64_t rows,
                            struct dt_source **out);
/* Gives a source of the same files, surveyed with another schema, the split and side of `like`.
 * DT_EMISMATCH: the files have other rows. DT_EMEMORY. */
dt_status dt__source_take_rows(struct dt_source *source, const struct dt_source *like);
/* A source of its own of the same rows; NULL of NULL. DT_EMEMORY. */
dt_status dt__source_copy(const struct dt_source *source, struct dt_source **out);
void dt__source_destroy(struct dt_source *source);

/* All rows of a source, and of those made from it, in memory that processes of a host may share:
 * its bytes (0: rows that data.memory_mb does not hold, or sparse ones); reads the rows into it;
 * has the source, and copies of it, read rows there. The memory must outlive them.
 * DT_EIO, DT_EFORMAT, DT_STOPPED. */
size_t dt__lent_rows_bytes(const struct dt_source *source);
dt_status dt__lent_rows_fill(const struct dt_source *source, void *memory);
void dt__lent_rows_attach(struct dt_source *source, void *memory);

/* The survey as bytes, and back, for the other ranks. Caller frees with dt_free. */
dt_status dt__source_pack(const struct dt_source *source, void *out_bytes, size_t *out_length);
dt_status dt__source_unpack(const void *bytes, size_t length, struct dt_source **out);

/* What the survey made of text and of packed files lies in a file without a name, which the
 * processes of one host open by its place there. Other ranks of the host need no more than the
 * survey's bytes; of another host one rank copies the file, and the others open the copy. */
struct dt_place {
    int pid, fd;    /* fd -1: there is no file, and none is needed */
    uint64_t id[2]; /* what its first bytes are */
    uint64_t bytes;
};
struct dt_place dt__source_place(const struct dt_source *source);
/* Whether the file is open here, or none is needed. */
bool dt__source_is_here(const struct dt_source *source);
/* Opens the file at a place. False: it is not to be seen here. */
bool dt__source_attach(struct dt_source *source, const struct dt_place *place);
/* Bytes of the file; and a copy of it, made from front to back. DT_EIO. */
dt_status dt__source_copy_out(const struct dt_source *source, uint64_t offset, void *bytes,
                              size_t length);
dt_status dt__source_copy_in(struct dt_source *source, const void *bytes, size_t length);

uint64_t dt__source_rows(const struct dt_source *source); /* without held-out rows (train) */
/* Rows have no z any more (data.encode). NULL is fine. */
void dt__source_forget_quantiles(struct dt_source *source);
const struct dt_schema *dt__source_schema(const struct dt_source *source);
/* Returns the number of rows whose class the model does not know. */
uint64_t dt__source_unknown(const struct dt_source *source);
/* Returns whether the rows have weights. */
bool dt__source_weighs(const struct dt_source *source);
/* Sparse entries of so many rows, at most. */
uint64_t dt__source_most_entries(const struct dt_source *source, uint64_t rows);
/* CRC-32C over file base names, row counts and schema: does a resume see the same data? */
uint32_t dt__source_crc(const struct dt_source *source);
/* CRC-32C over records in their order: of text all of them, of other files 16 blocks spread over
 * each. The rank that has surveyed. DT_EIO. */
dt_status dt__source_content(const struct dt_source *source, uint32_t *out);

/* Labels or targets, and weights, of training rows in file order, without inputs: of all rows, or,
 * where there are more than a million or they are large, of blocks spread evenly over them. *out
 * owns its arrays until dt__source_targets_free. Not collective; the rank that has surveyed.
 * DT_EIO, DT_EFORMAT, DT_EMEMORY, DT_STOPPED. */
dt_status dt__source_targets(const struct dt_source *source, struct dt_batch *out);
void dt__source_targets_free(struct dt_batch *batch);

/* ---- plan ----------------------------------------------------------------------------------- */

/* Who draws what when: a pure function of the source's row counts, seed, number R of replicas and
 * batch B. Step t is number t mod T of epoch t div T and takes positions [iB, (i+1)B) of the epoch,
 * which belong to replicas in Webster's order: sample j of replica r has key (2j+1)/(2 s_r), ties
 * by r. Every step has B samples but the last of an epoch, and every sample comes once an epoch. */
struct dt_plan;
dt_status dt__plan_create(const struct dt_source *source, uint64_t seed, int replicas,
                          int64_t batch, struct dt_plan **out);
void dt__plan_destroy(struct dt_plan *plan);
uint64_t dt__plan_samples(const struct dt_plan *plan);                   /* S */
uint64_t dt__plan_steps_per_epoch(const struct dt_plan *plan);           /* T */
uint64_t dt__plan_batch(const struct dt_plan *plan);                     /* B (S if the key is 0) */
uint64_t dt__plan_replica_rows(const struct dt_plan *plan, int replica); /* s_r */
uint64_t dt__plan_step_rows(const struct dt_plan *plan, uint64_t step);  /* over all replicas */

/* What one replica draws at one step: `count` samples from number `begin` on of its order of
 * `epoch`. count may be 0. */
struct dt_share {
    uint64_t epoch, begin, count;
};
struct dt_share dt__plan_share(const struct dt_plan *plan, uint64_t step, int replica);
/* No share of any replica and step is greater (the greatest may be one or two less). */
uint64_t dt__plan_max_share(const struct dt_plan *plan);

/* ---- loader --------------------------------------------------------------------------------- */

/* The training rows of one rank's replicas: held in memory (8-bit data as 8 bits) if they fit
 * data.memory_mb, else streamed by a read-ahead thread, which keeps two windows a replica. The
 * order of a replica's samples never depends on which: it is a permutation of (seed, replica,
 * epoch) if the whole source fits data.memory_mb, else chunks in permuted order, shuffled within
 * windows. A window has as many rows as let two of each of the R replicas fit data.memory_mb, or
 * data.shuffle_window if that is less. */
struct dt_loader;

/* Replicas [first, first + count). loaders: of this rank, which share its data.memory_mb. max_rows:
 * greatest count of a dt__loader_read. step: where the run starts, so that read-ahead begins there.
 * Opens and (in memory) reads the files. Source and plan outlive the loader. DT_EIO, DT_EFORMAT as
 * dt__source_survey; DT_EMISMATCH: a file changed since the survey. */
dt_status dt__loader_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_plan *plan, int first, int count, int loaders,
                            int max_rows, uint64_t step, struct dt_loader **out);
void dt__loader_destroy(struct dt_loader *loader);

/* Samples [begin, begin + count) of a replica's order of an epoch, scaled and normalised:
 * out->x (count, features) and labels or targets, valid until the loader's next call. Calls for one
 * replica go forward; a jump is allowed and costs a seek. Does not allocate.
 * DT_EIO, DT_EFORMAT: streamed data could not be read. */
dt_status dt__loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                          int count, struct dt_batch *out);

/* ---- table ---------------------------------------------------------------------------------- */

/* Rows of a source in file order, for evaluation: in memory if rows [begin, end) fit a quarter of
 * data.memory_mb (beside it, the loader may hold all of that), else read as asked. The source
 * outlives the table. */
struct dt_table;
dt_status dt__table_create(const struct dt_config *config, const struct dt_source *source,
                           uint64_t begin, uint64_t end, struct dt_table **out);
void dt__table_destroy(struct dt_table *table);
/* Rows [begin, begin + count), scaled and normalised; count <= DT_EVAL_CHUNK. Valid until the next
 * call. Ascending calls stream. */
dt_status dt__table_read(struct dt_table *table, uint64_t begin, int count, struct dt_batch *out);

/* ---- rows from a stream --------------------------------------------------------------------- */

/* Rows to predict, from a stream: CSV (with or without header and label column), JSON lines (one
 * array a line, or {"instances": [[...], ...]}), or LIBSVM; told apart by data.format of `config`
 * if it is given, else by the first line that is neither blank nor a comment (of LIBSVM: # ...),
 * nor a number alone: a row of LIBSVM without entries, or one of CSV where the model takes one
 * column. CSV columns are found by the names of the header, if the schema has names and the first
 * line is one (data.header says so, if it is given); without a header they are the features alone,
 * or stand as data.label and data.ignore of `config` (the training's; may be NULL) say. Schema and
 * config outlive the rows; `in` stays the caller's, who must not have read from it. */
struct dt_rows;
dt_status dt__rows_open(FILE *in, const char *name, const struct dt_schema *schema,
                        const struct dt_config *config, struct dt_rows **out);
void dt__rows_close(struct dt_rows *rows);
/* Next row, scaled and normalised, into x (features). *out_line: line of the input (from 1).
 * *out_end: no more rows. A malformed row gives DT_EFORMAT with the message (without the line);
 * reading goes on with the next row. Reading is over with DT_EMISMATCH: the header lacks columns of
 * the model, or the label cannot be told from the features; with DT_EIO. */
dt_status dt__rows_next(struct dt_rows *rows, float *x, uint64_t *out_line, bool *out_end);
/* The same for a schema whose categories are sparse: x (dense), and the row's entries, one a column
 * of categories in their order, into index and value (dt__schema_categories). */
dt_status dt__rows_next_sparse(struct dt_rows *rows, float *x, uint32_t *index, float *value,
                               uint64_t *out_line, bool *out_end);
/* Before the first row: dt__rows_next is to keep what stands in these columns of the input, or in
 * these members of its JSON objects, features or not: a comma-separated list of names. Rows that
 * have no names are then errors. DT_EMEMORY. */
dt_status dt__rows_keep(struct dt_rows *rows, const char *names);
/* What was kept of the last row, one text a name; the caller frees the texts and the list. NULL:
 * there are no names, or it was asked for already. */
char **dt__rows_take_kept(struct dt_rows *rows);
/* Whether input is there to read on; else the next row has to be waited for. */
bool dt__rows_ready(const struct dt_rows *rows);

/* ---- what a table holds --------------------------------------------------------------------- */

/* Prints a CSV's columns (type, missing, distinct, range, first values), and to `lines`, which may
 * be `out` too, configuration lines that suit them; of the first 100 MB or so. config:
 * data.separator and data.label count. DT_EIO, DT_EFORMAT, DT_EMISMATCH: no such label. */
dt_status dt__data_inspect(const struct dt_config *config, const char *path, FILE *out,
                           FILE *lines);
/* Whether a file is to be looked at as CSV: by its name, and of no other format; or of none that is
 * read, which dt__data_inspect says. */
bool dt__data_is_table(const char *path);
/* Whether the first training file is CSV. */
bool dt__data_trains_on_table(const struct dt_config *config);

/* ---- shard ---------------------------------------------------------------------------------- */

/* Shuffles data.train once and writes K HDF5 shards OUT_DIR/shard-00000-of-0000K.h5 (/x 8-bit or
 * f32 raw values, of pictures (rows, height, width, channels); /y; /label_names and /feature_names
 * if there are any). A table with texts, dates or gaps has no /x: its shards keep its columns with
 * their dictionaries, and a word a cell (src/data/columns.h), and are read as the table is. Rows
 * keep their weights. Memory stays within data.memory_mb whatever the size; OUT_DIR's disk holds
 * the data twice meanwhile. Held-out rows are in the shards too. DT_EUSAGE: more shards than rows.
 * DT_EIO: OUT_DIR not empty of shards, disk full; no partial shard is left. */
dt_status dt__shard_write(const struct dt_config *config, const char *out_dir, int shards);

#endif
