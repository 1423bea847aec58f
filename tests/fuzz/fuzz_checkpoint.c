/* Any bytes as the table of contents that a reader process sends of a checkpoint or a model, which may be a
 * hostile file's doing: believed where it holds, else refused with a message, never a read beyond. A model that
 * loads goes on to predict: whole rows, and rows of its columns as JSON, CSV and LIBSVM. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hdf5/guard.h"
#include "predict/predict.h"
#include "state/saved_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed);

/* A table's columns are digits in texts, a few bytes among thousands, which this mutator
 * changes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed)
{
    static const char digits[] = "0123456789-";
    const char *words = memmem(data, size, "/schema/columns", 15);
    if (!words || seed % 2) return LLVMFuzzerMutate(data, size, most);
    const size_t first = (size_t)(words - (const char *)data);
    const size_t left = size - first < 512 ? size - first : 512;
    size_t at = first + seed / 2 % left;
    while (at < size && (data[at] < '0' || data[at] > '9'))
        at++;
    if (at < size) data[at] = (uint8_t)digits[seed / 1024 % (sizeof digits - 1)];
    return size;
}

/* ---- a reader process that has the table, and dies of all other requests --------------------- */

static const uint8_t *table;
static size_t table_size;

dt_status dt__h5_guard_open(int fd, int *out_socket)
{
    return (*out_socket = dup(fd)) < 0 ? dt_fail(DT_EIO, "no descriptor") : DT_OK;
}

bool dt__h5_guard_pass(int socket, void *bytes, size_t length, bool sends)
{
    static bool answered;
    (void)socket;
    if (sends) {
        answered = false;
        return ((struct dt__h5_request *)bytes)->item == DT__H5_TABLE;
    }
    if (answered)
        memcpy(bytes, table, length);
    else
        *(struct dt__h5_answer *)bytes = (struct dt__h5_answer){.length = table_size};
    answered = true;
    return true;
}

void dt__h5_guard_start(void)
{
}

/* A file of zeros that arrays may lie in. */
static const char *zeros(void)
{
    static char path[64];
    if (*path) return path;
    int fd = memfd_create("zeros", 0);
    if (fd < 0 || ftruncate(fd, 1 << 20)) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* fuzz_checkpoint --table FILE: the table of a sound file, to begin with. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct dt_text text = {0};
    struct dt__h5_inside *inside;
    if (*argc != 3 || strcmp((*argv)[1], "--table")) return 0;
    if (dt__h5_inside_open((*argv)[2], &text, &inside)) exit(1);
    fwrite(text.data, 1, text.length, stdout);
    exit(0);
}

/* ---- a model that loads goes on to predict --------------------------------------------------- */

dt_status __wrap_dt__export_load(const char *path, bool best, struct dt_checkpoint *out,
                                 char **out_path);
dt_status __wrap_dt__export_load(const char *path, bool best, struct dt_checkpoint *out,
                                 char **out_path)
{
    struct dt__h5_file *file;
    (void)best;
    DT_TRY(dt__h5_open(path, &file));
    dt_status status = dt__file_get(file, DT__WANT_MODEL, NULL, out);
    dt__h5_close(file);
    return status ? status : dt__strdup(path, out_path);
}

/* A row of a value of each column: of numbers 1, of categories the one that begins with the rarest text; odd: none. */
static char *make_json(const struct dt_schema *schema, bool odd)
{
    json_t *row = json_array();
    const int count = schema->columns ? schema->ncolumns : schema->features;
    for (int c = 0; c < count; c++) {
        const struct dt_column *column = schema->columns ? &schema->columns[c] : NULL;
        const char *text = column && column->ncategories ? column->categories[column->ncategories - 1] : "none";
        json_t *value = column && column->kind == DT_COLUMN_CATEGORY ? json_string(text) : json_integer(1);
        json_array_append_new(row, odd || !value ? json_null() : value);
        if (odd) json_decref(value);
    }
    char *text = json_dumps(row, JSON_COMPACT);
    json_decref(row);
    return text;
}

enum { ROWS = 4, MOST_FEATURES = 4096 };

static void predict_text(struct dt_predictor *predictor, char *text)
{
    struct dt_inputs inputs = {0};
    struct dt_rows *rows;
    uint64_t line;
    size_t count = 0;
    float *out;
    const size_t width = predictor->width;
    FILE *in = fmemopen(text, strlen(text), "r");
    if (!in || dt__inputs_reserve(&inputs, predictor, ROWS) ||
        dt__alloc(ROWS * width, sizeof *out, "answers", &out))
        abort();
    if (!dt__rows_open(in, "fuzz", &predictor->file.schema, NULL, &rows)) {
        for (bool end = false; !end && count < ROWS;)
            count += !dt__inputs_read(&inputs, count, predictor, rows, &line, &end) && !end;
        (void)dt__predictor_inputs(predictor, &inputs, count, out, NULL);
        dt__rows_close(rows);
    }
    fclose(in);
    dt__inputs_free(&inputs);
    dt_free(out);
}

static void predict(void)
{
    static float raw[MOST_FEATURES], out[MOST_FEATURES];
    static char libsvm[] = "1 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1\n";
    struct dt_predictor *predictor;
    if (dt_predictor_open(zeros(), &predictor)) return;
    const struct dt_schema *schema = &predictor->file.schema;
    if ((int)predictor->width <= MOST_FEATURES && schema->features <= MOST_FEATURES &&
        schema->ncolumns <= MOST_FEATURES) {
        (void)dt_predictor_rows(predictor, raw, 1, out, NULL);
        for (int odd = 0; odd < 2; odd++) {
            char *json = make_json(schema, odd);
            predict_text(predictor, json);
            json[strlen(json) - 1] = '\0';
            predict_text(predictor, json + 1); /* as CSV */
            free(json);
        }
        predict_text(predictor, libsvm);
    }
    dt_predictor_close(predictor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt__h5_file *file;
    struct dt_checkpoint checkpoint;
    table = data, table_size = size;
    if (dt__h5_open(zeros(), &file)) return 0;
    if (!dt__file_get(file, DT__WANT_ALL, NULL, &checkpoint)) dt__checkpoint_free(&checkpoint);
    dt__h5_close(file);
    predict();
    return 0;
}
