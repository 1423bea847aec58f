/* Any bytes as a file of training data of FORMAT (CSV, LIBSVM, JSON, IDX, where half of the bytes are the
 * labels): surveyed or refused with a message that names the file; what is surveyed packs to the same
 * survey, and text that is surveyed can be read to its last row. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"

#define JOIN(a, b) a##b
#define FORMAT_OF(name) JOIN(DT_FORMAT_, name)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void insist(bool holds)
{
    if (!holds) abort();
}

enum { PATH_MAX_LENGTH = 64 };

/* A file in memory; HDF5 wants one with a path that is real. */
static void make_file(const uint8_t *bytes, size_t length, const char *key,
                      char path[PATH_MAX_LENGTH], struct dt_config *config)
{
    char assignment[2 * PATH_MAX_LENGTH];
    snprintf(path, PATH_MAX_LENGTH, "/dev/shm/dtrain-%s-XXXXXX", key);
    int fd = mkstemp(path);
    insist(fd >= 0 && write(fd, bytes, length) == (ssize_t)length && !close(fd));
    snprintf(assignment, sizeof assignment, "%s=%s", key, path);
    insist(!dt_config_set(config, assignment));
}

static void read_rows(const struct dt_config *config, const struct dt_source *source)
{
    uint64_t rows = dt__source_rows(source);
    struct dt_table *table = NULL;
    struct dt_batch batch;
    const int format = config->data.format;
    bool text = format == DT_FORMAT_CSV || format == DT_FORMAT_LIBSVM || format == DT_FORMAT_JSON;
    dt_status status = dt__table_create(config, source, 0, rows, &table);
    for (uint64_t row = 0; !status && row < rows && row < 1000; row++) {
        status = dt__table_read(table, row, 1, &batch);
        for (int f = 0; !status && f < batch.ndense; f++)
            insist(batch.x[f] - batch.x[f] == 0);
    }
    insist(!text || !status || status == DT_EMEMORY);
    dt__table_destroy(table);
}

static void check(const struct dt_config *config, const struct dt_source *source)
{
    struct dt_source *copy;
    void *packed;
    size_t length;
    insist(!dt__source_pack(source, &packed, &length));
    insist(!dt__source_unpack(packed, length, &copy));
    insist(dt__source_crc(source) == dt__source_crc(copy));
    read_rows(config, copy);
    dt__source_destroy(copy);
    dt_free(packed);
}

/* The first byte chooses options. */
static void set_options(uint8_t choice, struct dt_config *config)
{
    config->data.format = FORMAT_OF(FORMAT);
    config->model.task = choice & 1 ? DT_TASK_REGRESS : DT_TASK_CLASSIFY;
    config->data.header = (choice >> 1) % 3;
    if (choice & 16) insist(!dt_config_set(config, "data.label=0"));
    if (choice & 32) insist(!dt_config_set(config, "data.ignore=1,-2"));
    if (choice & 64)
        config->data.normalize = choice & 1 ? DT_NORMALIZE_ROBUST : DT_NORMALIZE_STANDARD;
    if (choice & 128) config->data.eval_fraction = 0.3;
    if (choice % 3 == 1) config->data.missing = DT_MISSING_FLAG;
    if (choice % 5 == 1) config->data.hash_bits = 11;
    config->data.memory_mb = 16;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct dt_config config;
    struct dt_source *source;
    if (!length) return 0;
    insist(!dt__config_init(&config));
    set_options(*bytes++, &config);
    char x[PATH_MAX_LENGTH], y[PATH_MAX_LENGTH] = "";
    size_t half = FORMAT_OF(FORMAT) == DT_FORMAT_IDX ? --length / 2 : --length;
    make_file(bytes, half, "data.train", x, &config);
    if (half < length) make_file(bytes + half, length - half, "data.train_labels", y, &config);
    dt_status status = dt__source_survey(&config, DT_PART_TRAIN, NULL, &source);
    if (status)
        insist(*dt_error_text());
    else
        check(&config, source);
    if (!status) dt__source_destroy(source);
    unlink(x);
    unlink(y);
    dt__config_free(&config);
    return 0;
}
