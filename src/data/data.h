/* Data: the readers, the plan that assigns samples to replicas and steps, and the loader.
 *
 * The bank surveys the files once: it counts rows and learns the schema. The other ranks receive
 * the survey as bytes, and open only the files whose rows they read. Nothing here calls MPI. */
#ifndef DATA_DATA_H
#define DATA_DATA_H

#include "base/base.h"
#include "config/config.h"
#include "data/row_split.h"
#include "dtrain/data.h"
#include "table/schema.h"

/* ---- source --------------------------------------------------------------------------------- */

/* The rows that a source has. */
enum dt_part {
    DT_PART_TRAIN,   /* data.train, without held-out and test rows */
    DT_PART_EVAL,    /* data.eval, or the rows that are held out of data.train */
    DT_PART_PREDICT, /* like EVAL, but labels of HDF5 are not read, and IDX may have none */
    DT_PART_ALSO,    /* like EVAL, but classes that the model does not know get label -1 */
    DT_PART_TEST,    /* the rows that data.test_fraction takes from data.train */
    DT_PART_SHARDS   /* all rows of data.train, with their groups and times */
};

/* Makes a deep copy of a schema. DT_EMEMORY. */
dt_status dt__schema_copy(const struct dt_schema *schema, struct dt_schema *out);

struct dt_source; /* the surveyed files: formats, row counts, chunk index, schema, held-out rows */

/* Surveys the files of a part: expands globs (sorted bytewise), opens every file, counts rows,
 * checks shapes, and parses every row of text formats once. If `known` is NULL, the survey learns
 * the schema. Otherwise (evaluation data, resume) the data must fit `known`, and an evaluation
 * label that training has not seen is an error. Rows of data.train may have weights; rows of
 * evaluation data may have them only with eval.weighted. *out is NULL, with DT_OK, if there is no
 * evaluation data. Not collective: the bank calls it.
 *
 * DT_EIO: missing or unreadable file; DT_EFORMAT: "FILE:LINE: column N: ..." (columns count from 0,
 * as in data.label) or "FILE: ..."; DT_EMISMATCH: the files differ in shape from each other or from
 * `known`; or `known` is NULL and a key is set that applies only to formats that no file has. */
dt_status dt__source_survey(const struct dt_config *config, enum dt_part part,
                            const struct dt_schema *known, struct dt_source **out);

/* Makes a source of arrays in the caller's memory, row-major; the arrays must outlive it. They are
 * read like a file with the same numbers. Without `known` they are training data, and
 * data.eval_fraction may hold out some rows; with `known` they are evaluation data. Scaling and
 * normalisation follow `config`. Not collective: each rank that reads makes its own source of the
 * same rows. DT_EUSAGE: no rows; DT_EMISMATCH: labels or targets are missing, or do not fit
 * `known`; DT_EFORMAT: a label or a weight is out of range. */
dt_status dt__source_from_arrays(const struct dt_config *config, const struct dt_arrays *arrays,
                                 const struct dt_schema *known, struct dt_source **out);

/* Makes a source of the held-out rows or of the test rows (`side`) of a training source, without a
 * second survey. *out is NULL if that side has no rows. */
dt_status dt__source_side(const struct dt_source *train, enum dt__side side,
                          struct dt_source **out);
/* Makes a source of one side of the split that holds out `fold`. `source` must have been surveyed
 * with search.folds. */
dt_status dt__source_fold(const struct dt_source *source, int fold, enum dt__side side,
                          struct dt_source **out);
/* Makes a source of `rows` rows sampled from the training rows, or of all of them if there are
 * fewer, without a second survey. The same rows and seed give the same sample. DT_EMEMORY. */
dt_status dt__source_sample(const struct dt_source *train, uint64_t seed, uint64_t rows,
                            struct dt_source **out);
/* Gives `source` the split and side of `like`, a source of the same files with another schema.
 * DT_EMISMATCH: the numbers of rows differ. DT_EMEMORY. */
dt_status dt__source_take_rows(struct dt_source *source, const struct dt_source *like);
/* Copies a source; *out is NULL if `source` is NULL. DT_EMEMORY. */
dt_status dt__source_copy(const struct dt_source *source, struct dt_source **out);
void dt__source_destroy(struct dt_source *source);

/* Returns the size in bytes of the source's borrowed rows: all raw rows of the files, in memory
 * that the processes of a host may share. 0: the rows exceed data.memory_mb, or are sparse, and
 * cannot be borrowed. */
size_t dt__borrowed_rows_bytes(const struct dt_source *source);
/* Reads all raw rows into `memory`, which has dt__borrowed_rows_bytes bytes. DT_EIO, DT_EFORMAT,
 * DT_STOPPED. */
dt_status dt__borrowed_rows_fill(const struct dt_source *source, void *memory);
/* Makes the source, and later copies of it, read their rows from `memory`, which must outlive them.
 * If `memory` is NULL, nothing changes. */
void dt__borrowed_rows_attach(struct dt_source *source, void *memory);

/* Packs the survey into bytes for the other ranks. `out_bytes` is the address of a pointer (of any
 * type); it is set to the packed bytes, which the caller frees with dt_free. DT_EMEMORY. */
dt_status dt__source_pack(const struct dt_source *source, void *out_bytes, size_t *out_length);
/* Makes a source from packed bytes. DT_EMEMORY. */
dt_status dt__source_unpack(const void *bytes, size_t length, struct dt_source **out);

/* The place of the survey's file, an unnamed file with the parsed rows of text and the decompressed
 * bytes of packed files. With this place and the survey's bytes, other processes of the same host
 * can open and read the file. On every other host one rank makes a copy of the file, and the other
 * ranks of that host open the copy. */
struct dt_place {
    int pid, fd;    /* process and descriptor; fd -1: there is no file, and none is needed */
    uint64_t id[2]; /* first bytes of the file, by which it is recognised */
    uint64_t bytes;
};
struct dt_place dt__source_place(const struct dt_source *source);
/* Returns true if this process has the file open, or if none is needed. */
bool dt__source_is_here(const struct dt_source *source);
/* Opens the file at `place`. Returns false if this process cannot open it, for example because the
 * file is on another host. */
bool dt__source_attach(struct dt_source *source, const struct dt_place *place);
/* Reads `length` bytes of the file from `offset` on. DT_EIO. */
dt_status dt__source_copy_out(const struct dt_source *source, uint64_t offset, void *bytes,
                              size_t length);
/* Appends bytes to this host's copy of the file. The first call creates the copy. DT_EIO. */
dt_status dt__source_copy_in(struct dt_source *source, const void *bytes, size_t length);

/* Returns the number of rows on the source's side of the split. */
uint64_t dt__source_rows(const struct dt_source *source);
/* Drops the quantiles (data.encode), so that rows have no encoded inputs z. NULL is fine. */
void dt__source_forget_quantiles(struct dt_source *source);
const struct dt_schema *dt__source_schema(const struct dt_source *source);
/* Returns the number of rows whose class the model does not know. */
uint64_t dt__source_unknown(const struct dt_source *source);
/* Returns true if the rows have weights. */
bool dt__source_weighs(const struct dt_source *source);
/* Returns an upper bound on the number of sparse entries that any `rows` rows have. */
uint64_t dt__source_most_entries(const struct dt_source *source, uint64_t rows);
/* Returns a CRC-32C over the files' base names, the row counts, the split and the schema. A resume
 * compares it to check that the data is the same. */
uint32_t dt__source_crc(const struct dt_source *source);
/* Computes a CRC-32C over the contents: all records of text files, all rows in memory, and 16
 * evenly spread blocks of each file of any other format. Only the rank that made the survey may
 * call it. DT_EIO. */
dt_status dt__source_content(const struct dt_source *source, uint32_t *out);

/* Reads the labels or targets, and the weights, of the source's rows in file order, without the
 * inputs. If the source has more than a million rows, or large rows, reads only blocks of rows that
 * are spread evenly. *out owns its arrays until dt__source_targets_free. Not collective; only the
 * rank that made the survey may call it. DT_EIO, DT_EFORMAT, DT_EMEMORY, DT_STOPPED. */
dt_status dt__source_targets(const struct dt_source *source, struct dt_batch *out);
void dt__source_targets_free(struct dt_batch *batch);

/* ---- plan ----------------------------------------------------------------------------------- */

/* The assignment of samples to replicas and steps: a pure function of the source's row counts, the
 * seed, the number R of replicas and the batch B. An epoch of S samples has T steps. Step t is step
 * i = t mod T of epoch t div T, and takes positions [iB, (i+1)B) of that epoch. Positions are
 * assigned to replicas in Webster's order: sample j of replica r has key (2j+1)/(2 s_r), ties by r.
 * Every step has B samples, except the last of an epoch, which has the remaining ones. Every sample
 * occurs once per epoch. */
struct dt_plan;
dt_status dt__plan_create(const struct dt_source *source, uint64_t seed, int replicas,
                          int64_t batch, struct dt_plan **out);
void dt__plan_destroy(struct dt_plan *plan);
uint64_t dt__plan_samples(const struct dt_plan *plan);                   /* S */
uint64_t dt__plan_steps_per_epoch(const struct dt_plan *plan);           /* T */
uint64_t dt__plan_batch(const struct dt_plan *plan);                     /* B (train.batch=0: S) */
uint64_t dt__plan_replica_rows(const struct dt_plan *plan, int replica); /* s_r */
uint64_t dt__plan_step_rows(const struct dt_plan *plan, uint64_t step);  /* over all replicas */

/* The samples of one replica in one step: samples [begin, begin + count) of the replica's order in
 * `epoch`. count may be 0. */
struct dt_local_batch {
    uint64_t epoch, begin, count;
};
struct dt_local_batch dt__plan_local_batch(const struct dt_plan *plan, uint64_t step, int replica);
/* Returns an upper bound on the `count` of any replica's local batch in any step. The bound may
 * exceed the largest count by one or two. */
uint64_t dt__plan_max_local_batch(const struct dt_plan *plan);

/* ---- loader --------------------------------------------------------------------------------- */

/* The training rows of one rank's replicas. If they fit in data.memory_mb, the loader holds them in
 * memory (8-bit data as 8 bits). Otherwise a read-ahead thread streams them and keeps two windows
 * per replica.
 *
 * Holding and streaming give the same order of a replica's samples. If the whole source fits in
 * data.memory_mb, the order is a permutation keyed by (seed, replica, epoch). Otherwise chunks of
 * rows come in permuted order, and rows are shuffled within each window. A window has
 * data.shuffle_window rows (if set), but never more than lets two windows of each of the R replicas
 * fit in data.memory_mb. */
struct dt_loader;

/* Makes a loader of replicas [first, first + count). `loaders` is the number of loaders of this
 * rank, which share its data.memory_mb equally. `max_rows` is the largest `count` in any call of
 * dt__loader_read. Read-ahead starts at `step`, the run's first step. Opens the files, and reads
 * all rows if they are held in memory. Source and plan must outlive the loader. DT_EIO, DT_EFORMAT
 * as in dt__source_survey; DT_EMISMATCH: a file has changed since the survey. */
dt_status dt__loader_create(const struct dt_config *config, const struct dt_source *source,
                            const struct dt_plan *plan, int first, int count, int loaders,
                            int max_rows, uint64_t step, struct dt_loader **out);
void dt__loader_destroy(struct dt_loader *loader);

/* Reads samples [begin, begin + count) of a replica's order in `epoch`, scaled and normalised:
 * out->x (count, features) and labels or targets, valid until the loader's next call. Calls for one
 * replica should go forward; a jump is allowed, but costs a seek. Does not allocate. DT_EIO,
 * DT_EFORMAT: streamed data could not be read. */
dt_status dt__loader_read(struct dt_loader *loader, int replica, uint64_t epoch, uint64_t begin,
                          int count, struct dt_batch *out);

/* ---- table ---------------------------------------------------------------------------------- */

/* Rows of a source in file order, for evaluation. If rows [begin, end) fit in a quarter of
 * data.memory_mb, they are held in memory, in addition to the rows of the loader, which may use all
 * of data.memory_mb. Otherwise they are read on demand. The source must outlive the table. */
struct dt_table;
dt_status dt__table_create(const struct dt_config *config, const struct dt_source *source,
                           uint64_t begin, uint64_t end, struct dt_table **out);
void dt__table_destroy(struct dt_table *table);
/* Reads rows [begin, begin + count), scaled and normalised; count <= DT_EVAL_CHUNK. *out is valid
 * until the next call. Calls in ascending order read the files front to back. */
dt_status dt__table_read(struct dt_table *table, uint64_t begin, int count, struct dt_batch *out);

/* ---- rows from a stream --------------------------------------------------------------------- */

/* Rows to predict, from a stream: CSV (with or without header and label column), JSON lines (one
 * array a line, or {"instances": [[...], ...]}), or LIBSVM.
 *
 * The format is data.format of `config`, if set. Otherwise the first line that is not blank, not a
 * comment (in LIBSVM: # ...) and not a lone number decides. (A lone number may be a row of LIBSVM
 * without entries, or a row of CSV if the model takes one column.)
 *
 * CSV columns are found by the names of the header, if the schema has names and the first line is a
 * header. data.header, if set, says whether the first line is a header. Without a header, a row has
 * either the features alone, or all columns of the training data; data.label and data.ignore of
 * `config` then say which columns are not features. `config` may be NULL.
 *
 * Schema and config must outlive the rows. The caller keeps `in`, and must not have read from
 * it. */
struct dt_rows;
dt_status dt__rows_open(FILE *in, const char *name, const struct dt_schema *schema,
                        const struct dt_config *config, struct dt_rows **out);
void dt__rows_close(struct dt_rows *rows);
/* Reads the next row, scaled and normalised, into x (features). *out_line: the row's line in the
 * input (from 1). *out_end: true if there are no more rows. DT_EFORMAT: the row is malformed (the
 * message lacks the line); the next call reads the row after it. DT_EMISMATCH (the header lacks
 * columns of the model, or the label cannot be distinguished from the features) and DT_EIO end the
 * reading. */
dt_status dt__rows_next(struct dt_rows *rows, float *x, uint64_t *out_line, bool *out_end);
/* Like dt__rows_next, for a schema whose categories are sparse: reads x (dense), and the row's
 * entries, one per column of categories in column order, into index and value
 * (dt__schema_categories). */
dt_status dt__rows_next_sparse(struct dt_rows *rows, float *x, uint32_t *index, float *value,
                               uint64_t *out_line, bool *out_end);
/* Makes dt__rows_next keep each row's values of some columns of the input (of JSON objects:
 * members). `names` is a comma-separated list of the columns, which need not be features. Call it
 * before the first row. Afterwards a row without names of columns is an error. DT_EMISMATCH: the
 * rows are LIBSVM. DT_EMEMORY. */
dt_status dt__rows_keep(struct dt_rows *rows, const char *names);
/* Returns the kept values of the last row, one per name; the caller frees the texts and the list.
 * NULL: no values are kept, or they have been taken before. */
char **dt__rows_take_passthrough(struct dt_rows *rows);
/* Returns true if the next row can be read without waiting for input. */
bool dt__rows_ready(const struct dt_rows *rows);

/* ---- inspect -------------------------------------------------------------------------------- */

/* Prints a CSV's columns (type, missing, distinct, range, first values) to `out`, and configuration
 * lines that suit them to `lines`, which may be the same stream. Reads about the first 100 MB. Keys
 * data.* that are set in `config` apply. DT_EIO; DT_EFORMAT; DT_EMISMATCH: no column has the name
 * data.label. */
dt_status dt__data_inspect(const struct dt_config *config, const char *path, FILE *out,
                           FILE *lines);
/* Returns true if dt__data_inspect should inspect a file: a pipe; a table whose name contains .csv,
 * .tsv, .txt or .dat; or a file in an unsupported format, for which dt__data_inspect has an error
 * message. */
bool dt__data_is_table(const char *path);
/* Returns true if the first training file is a table: CSV or JSON lines. */
bool dt__data_trains_on_table(const struct dt_config *config);

/* ---- shard ---------------------------------------------------------------------------------- */

/* Shuffles data.train once and writes K = `shards` HDF5 files OUT_DIR/shard-00000-of-0000K.h5. Each
 * has /x (8-bit or f32 raw values; pictures as (rows, height, width, channels)), /y and, if the
 * data has such names, /label_names and /feature_names. A table with texts, dates or gaps has no
 * /x: its shards store its columns with their dictionaries, and one word per cell
 * (src/table/columns.h), and are read like the table. Rows keep their
 * weights. The shards also contain the rows that a split would hold out. The memory used stays
 * within data.memory_mb, however large the data; OUT_DIR's disk temporarily holds the data twice.
 * DT_EUSAGE: more shards than rows. DT_EIO: OUT_DIR already holds shards, or the disk is full; no
 * partial shard is left. */
dt_status dt__shard_write(const struct dt_config *config, const char *out_dir, int shards);

#endif
