/* data: readers, the plan that assigns samples to replicas and steps, and loading.
 *
 * The bank surveys the files once: it counts rows and learns the schema. The survey travels as
 * bytes to the other ranks, which open only the files whose rows they read. No MPI here. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"
#include "config/config.h"
#include "data/row_split.h"
#include "dtrain/data.h"
#include "table/schema.h"

/* ---- source --------------------------------------------------------------------------------- */

/* predict: like eval, but labels of HDF5 are not read, and IDX may have none. also: like eval, but
 * rows may have classes that the model does not know; their label is -1. test: the rows that
 * data.test_fraction takes from data.train. shards: all rows of data.train, with their groups and
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

struct dt_source; /* the surveyed files: formats, row counts, chunk index, schema, held-out rows */

/* Surveys data.train or data.eval (or the held-out fraction of data.train): expands globs (sorted
 * bytewise), opens every file, counts rows, checks shapes, and parses every row of text formats
 * once. Without `known` the schema is learned; with it (evaluation data, resume) the data must fit
 * it: an evaluation label that training has not seen is an error. Rows of data.train have weights
 * in either case, rows of evaluation data with eval.weighted. Not collective: the bank calls it.
 * *out is NULL, with DT_OK, if there is no evaluation data. DT_EIO: missing or unreadable file;
 * DT_EFORMAT: "FILE:LINE: column N: ..." (columns count from 0, as in data.label) or "FILE: ...";
 * DT_EMISMATCH: files, or file and `known`, differ in shape; without `known`, a key is set that
 * only readers of other formats take. */
dt_status dt__source_survey(const struct dt_config *config, enum dt_part part,
                            const struct dt_schema *known, struct dt_source **out);
/* Rows in the caller's memory, row-major. The source borrows them and reads them like a file of the
 * same numbers. */

/* Makes a source of arrays, which must outlive it. Without `known` it is training data, and
 * data.eval_fraction may hold out some rows; with `known` it is evaluation data. Scaling and
 * normalisation follow `config`. Not collective: where several ranks read, each makes its own
 * source of the same rows. DT_EUSAGE: no rows; DT_EMISMATCH: labels or targets are missing, or do
 * not fit `known`; DT_EFORMAT: a label or a weight out of range. */
dt_status dt__source_from_arrays(const struct dt_config *config, const struct dt_arrays *arrays,
                                 const struct dt_schema *known, struct dt_source **out);

/* Makes a source of another side of a surveyed training source's split (its held-out or its test
 * rows) without a second survey. *out is NULL if that side has no rows. */
dt_status dt__source_side(const struct dt_source *train, enum dt__side side,
                          struct dt_source **out);
/* Makes a source of one side of a fold's split. `source` was surveyed with search.folds. */
dt_status dt__source_fold(const struct dt_source *source, int fold, enum dt__side side,
                          struct dt_source **out);
/* Makes a source of a sample of the training rows, without a second survey. The same rows and seed
 * give the same sample. If there are at most `rows` rows, it has all of them. DT_EMEMORY. */
dt_status dt__source_sample(const struct dt_source *train, uint64_t seed, uint64_t rows,
                            struct dt_source **out);
/* Gives a source of the same files, surveyed with another schema, the split and side of `like`.
 * DT_EMISMATCH: the files have other rows. DT_EMEMORY. */
dt_status dt__source_take_rows(struct dt_source *source, const struct dt_source *like);
/* Makes a separate source of the same rows; NULL for NULL. DT_EMEMORY. */
dt_status dt__source_copy(const struct dt_source *source, struct dt_source **out);
void dt__source_destroy(struct dt_source *source);

/* All rows of a source, and of sources made from it, in memory that processes of one host may
 * share. _bytes returns their size in bytes, or 0 if data.memory_mb does not hold them or rows are
 * sparse. _fill reads the rows into the memory. _attach makes the source, and later copies of it,
 * read rows there. The memory must outlive them. DT_EIO, DT_EFORMAT, DT_STOPPED. */
size_t dt__lent_rows_bytes(const struct dt_source *source);
dt_status dt__lent_rows_fill(const struct dt_source *source, void *memory);
void dt__lent_rows_attach(struct dt_source *source, void *memory);

/* Packs the survey into bytes, and unpacks it, for the other ranks. The caller frees the bytes with
 * dt_free. */
dt_status dt__source_pack(const struct dt_source *source, void *out_bytes, size_t *out_length);
dt_status dt__source_unpack(const void *bytes, size_t length, struct dt_source **out);

/* The survey keeps the rows of text and of packed files in a file without a name, which the
 * processes of one host open by its place there. Other ranks of that host need only the survey's
 * bytes; on another host one rank copies the file, and the other ranks open the copy. */
struct dt_place {
    int pid, fd;    /* fd -1: there is no file, and none is needed */
    uint64_t id[2]; /* the file's first bytes */
    uint64_t bytes;
};
struct dt_place dt__source_place(const struct dt_source *source);
/* Returns true if the file is open here, or if none is needed. */
bool dt__source_is_here(const struct dt_source *source);
/* Opens the file at a place. Returns false if it cannot be seen here. */
bool dt__source_attach(struct dt_source *source, const struct dt_place *place);
/* Copies bytes of the file out, and into a copy of the file, which is written from front to back.
 * DT_EIO. */
dt_status dt__source_copy_out(const struct dt_source *source, uint64_t offset, void *bytes,
                              size_t length);
dt_status dt__source_copy_in(struct dt_source *source, const void *bytes, size_t length);

uint64_t dt__source_rows(const struct dt_source *source); /* without held-out rows (train) */
/* Forgets the quantiles, so that rows have no z (data.encode). NULL is fine. */
void dt__source_forget_quantiles(struct dt_source *source);
const struct dt_schema *dt__source_schema(const struct dt_source *source);
/* Returns the number of rows whose class the model does not know. */
uint64_t dt__source_unknown(const struct dt_source *source);
/* Returns true if the rows have weights. */
bool dt__source_weighs(const struct dt_source *source);
/* Returns the upper bound of the sparse entries that `rows` rows have. */
uint64_t dt__source_most_entries(const struct dt_source *source, uint64_t rows);
/* Returns a CRC-32C over base names of the files, row counts and schema. A resume compares it to
 * check that it sees the same data. */
uint32_t dt__source_crc(const struct dt_source *source);
/* Computes a CRC-32C over records in their order: all records of text, 16 blocks spread over each
 * other file. Only the rank that has surveyed may call it. DT_EIO. */
dt_status dt__source_content(const struct dt_source *source, uint32_t *out);

/* Reads labels or targets, and weights, of training rows in file order, without inputs. If there
 * are more than a million rows, or the rows are large, it reads blocks spread evenly over them.
 * *out owns its arrays until dt__source_targets_free. Not collective; only the rank that has
 * surveyed may call it. DT_EIO, DT_EFORMAT, DT_EMEMORY, DT_STOPPED. */
dt_status dt__source_targets(const struct dt_source *source, struct dt_batch *out);
void dt__source_targets_free(struct dt_batch *batch);

/* ---- plan ----------------------------------------------------------------------------------- */

/* The assignment of samples to replicas and steps: a pure function of the source's row counts,
 * seed, number R of replicas and batch B. Step t is number t mod T of epoch t div T and takes
 * positions [iB, (i+1)B) of the epoch, where i = t mod T. Positions belong to replicas in Webster's
 * order: sample j of replica r has key (2j+1)/(2 s_r), ties by r. Every step has B samples, except
 * the last of an epoch, and every sample occurs once an epoch. */
struct dt_plan;
dt_status dt__plan_create(const struct dt_source *source, uint64_t seed, int replicas,
                          int64_t batch, struct dt_plan **out);
void dt__plan_destroy(struct dt_plan *plan);
uint64_t dt__plan_samples(const struct dt_plan *plan);                   /* S */
uint64_t dt__plan_steps_per_epoch(const struct dt_plan *plan);           /* T */
uint64_t dt__plan_batch(const struct dt_plan *plan);                     /* B (S if the key is 0) */
uint64_t dt__plan_replica_rows(const struct dt_plan *plan, int replica); /* s_r */
uint64_t dt__plan_step_rows(const struct dt_plan *plan, uint64_t step);  /* over all replicas */

/* The samples of one replica at one step: `count` samples of its order of `epoch`, from number
 * `begin` on. count may be 0. */
struct dt_local_batch {
    uint64_t epoch, begin, count;
};
struct dt_local_batch dt__plan_local_batch(const struct dt_plan *plan, uint64_t step, int replica);
/* Returns an upper bound of the local batch of any replica at any step. The largest one may be one
 * or two less. */
uint64_t dt__plan_max_local_batch(const struct dt_plan *plan);

/* ---- loader --------------------------------------------------------------------------------- */

/* The training rows of one rank's replicas. They are held in memory (8-bit data as 8 bits) if they
 * fit data.memory_mb, else a read-ahead thread streams them and keeps two windows per replica. The
 * order of a replica's samples is the same either way: a permutation of (seed, replica, epoch) if
 * the whole source fits data.memory_mb, else chunks in permuted order, shuffled within windows. A
 * window has as many rows as let two windows of each of the R replicas fit data.memory_mb, or
 * data.shuffle_window if that is less. */
struct dt_loader;

/* Makes a loader of replicas [first, first + count). loaders: the number of loaders of this rank,
 * which share its data.memory_mb. max_rows: the largest count of a dt__loader_read. step: where the
 * run starts, so that read-ahead begins there. Opens and (in memory) reads the files. Source and
 * plan outlive the loader. DT_EIO, DT_EFORMAT as in dt__source_survey; DT_EMISMATCH: a file changed
 * since the survey. */
dt_status dt__loader_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_plan *plan, int first, int count, int loaders,
                            int max_rows, uint64_t step, struct dt_loader **out);
void dt__loader_destroy(struct dt_loader *loader);

/* Reads samples [begin, begin + count) of a replica's order of an epoch, scaled and normalised:
 * out->x (count, features) and labels or targets, valid until the loader's next call. Calls for one
 * replica go forward; a jump is allowed and costs a seek. Does not allocate. DT_EIO, DT_EFORMAT:
 * streamed data could not be read. */
dt_status dt__loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                          int count, struct dt_batch *out);

/* ---- table ---------------------------------------------------------------------------------- */

/* Rows of a source in file order, for evaluation. They are held in memory if rows [begin, end) fit
 * a quarter of data.memory_mb (the loader may hold all of data.memory_mb besides), else read on
 * demand. The source outlives the table. */
struct dt_table;
dt_status dt__table_create(const struct dt_config *config, const struct dt_source *source,
                           uint64_t begin, uint64_t end, struct dt_table **out);
void dt__table_destroy(struct dt_table *table);
/* Reads rows [begin, begin + count), scaled and normalised; count <= DT_EVAL_CHUNK. Valid until the
 * next call. Ascending calls stream. */
dt_status dt__table_read(struct dt_table *table, uint64_t begin, int count, struct dt_batch *out);

/* ---- rows from a stream --------------------------------------------------------------------- */

/* Rows to predict, from a stream: CSV (with or without header and label column), JSON lines (one
 * array a line, or {"instances": [[...], ...]}), or LIBSVM. data.format of `config` decides the
 * format if it is set. Otherwise the first line decides that is neither blank nor a comment (in
 * LIBSVM: # ...) nor a lone number: that may be a row of LIBSVM without entries, or a row of CSV
 * where the model takes one column. CSV columns are found by the names of the header, if the schema
 * has names and the first line is a header (data.header decides that, if set). Without a header the
 * columns are either the features alone, or placed as data.label and data.ignore of `config` (the
 * training's; may be NULL) say. Schema and config outlive the rows; the caller keeps `in` and must
 * not have read from it. */
struct dt_rows;
dt_status dt__rows_open(FILE *in, const char *name, const struct dt_schema *schema,
                        const struct dt_config *config, struct dt_rows **out);
void dt__rows_close(struct dt_rows *rows);
/* Reads the next row, scaled and normalised, into x (features). *out_line: line of the input (from
 * 1). *out_end: no more rows. A malformed row gives DT_EFORMAT with the message (without the line);
 * reading continues with the next row. DT_EMISMATCH (the header lacks columns of the model, or the
 * label cannot be distinguished from the features) and DT_EIO end the reading. */
dt_status dt__rows_next(struct dt_rows *rows, float *x, uint64_t *out_line, bool *out_end);
/* Does the same for a schema whose categories are sparse: reads x (dense), and the row's entries,
 * one per column of categories in column order, into index and value (dt__schema_categories). */
dt_status dt__rows_next_sparse(struct dt_rows *rows, float *x, uint32_t *index, float *value,
                               uint64_t *out_line, bool *out_end);
/* Makes dt__rows_next keep the values of these columns of the input, or of these members of its
 * JSON objects, features or not. names: a comma-separated list. Call it before the first row. Rows
 * without names are then errors. DT_EMEMORY. */
dt_status dt__rows_keep(struct dt_rows *rows, const char *names);
/* Returns the values of these columns in the last row, one per name; the caller frees them and the
 * list. NULL: there are no names, or the texts were taken already. */
char **dt__rows_take_passthrough(struct dt_rows *rows);
/* Returns true if the next row can be read without waiting for input. */
bool dt__rows_ready(const struct dt_rows *rows);

/* ---- what a table holds --------------------------------------------------------------------- */

/* Prints a CSV's columns (type, missing, distinct, range, first values), and to `lines`, which may
 * be `out` too, configuration lines that suit them, from the first 100 MB or so. Of config,
 * data.separator and data.label count. DT_EIO, DT_EFORMAT, DT_EMISMATCH: no such label. */
dt_status dt__data_inspect(const struct dt_config *config, const char *path, FILE *out,
                           FILE *lines);
/* Returns true if a file should be inspected as CSV: its name says so and it has no other format,
 * or it has no format that is read, which dt__data_inspect reports. */
bool dt__data_is_table(const char *path);
/* Returns true if the first training file is CSV. */
bool dt__data_trains_on_table(const struct dt_config *config);

/* ---- shard ---------------------------------------------------------------------------------- */

/* Shuffles data.train once and writes K HDF5 shards OUT_DIR/shard-00000-of-0000K.h5 (/x 8-bit or
 * f32 raw values, for pictures (rows, height, width, channels); /y; /label_names and /feature_names
 * if there are any). A table with texts, dates or gaps has no /x: its shards keep its columns with
 * their dictionaries, and one word per cell (src/table/columns.h), and are read like the table.
 * Rows keep their weights. Memory stays within data.memory_mb whatever the size; OUT_DIR's disk
 * holds the data twice meanwhile. Held-out rows are in the shards too. DT_EUSAGE: more shards than
 * rows. DT_EIO: OUT_DIR already holds shards, disk full; no partial shard is left. */
dt_status dt__shard_write(const struct dt_config *config, const char *out_dir, int shards);

#endif
