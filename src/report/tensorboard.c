/* TensorBoard event files: the numbers of train, eval and final records, as scalars such as
 * "train/loss".
 *
 * A file is a sequence of records: the length (8 bytes), its masked CRC-32C, the bytes, and their
 * masked CRC-32C; the bytes are a protocol buffer `Event`. Each start of a run opens a new file
 * below RUN_DIR/tensorboard. Its first event gives the step at which this session starts, so that
 * the viewer drops later steps of earlier files, which a resume repeats.
 *
 * Source: tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.cc. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "report/internal.h"

struct dt__tensorboard {
    char *path;
    int fd;
    bool begun;          /* the event with the session's first step is written */
    struct dt_text text; /* buffer for a record of the file */
};

/* ---- the file ------------------------------------------------------------------------------- */

static uint32_t masked_crc(const void *bytes, size_t length)
{
    uint32_t crc = dt__crc32c(0, bytes, length);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

/* Writes an event, with one field besides time and step, in one write(). */
static dt_status write_field(struct dt__tensorboard *board, uint64_t step, int field,
                             const void *bytes, size_t length)
{
    struct dt__message event = {0};
    struct dt_text *text = &board->text;
    const double now = (double)dt__clock_unix();
    dt__message_fixed(&event, 1, &now, sizeof now);
    dt__message_int(&event, 2, (int64_t)step);
    dt__message_bytes(&event, field, bytes, length);
    const uint64_t size = event.text.length;
    const uint32_t size_crc = masked_crc(&size, sizeof size);
    const uint32_t crc = masked_crc(event.text.data, event.text.length);
    dt__text_clear(text);
    text->status = event.text.status;
    dt__text_append(text, &size, sizeof size);
    dt__text_append(text, &size_crc, sizeof size_crc);
    dt__text_append(text, event.text.data, event.text.length);
    dt_status status = dt__text_append(text, &crc, sizeof crc);
    if (!status) status = dt__fd_write(board->fd, board->path, text->data, text->length);
    dt__text_free(&event.text);
    return status;
}

dt_status dt__report_tensorboard(struct dt_report *report, const char *run_dir)
{
    static const char version[] = "brain.Event:2";
    char *dir = NULL, host[65] = "";
    struct dt__tensorboard *board;
    gethostname(host, sizeof host - 1);
    DT_TRY(dt__alloc(1, sizeof *board, "event file", &board));
    board->fd = -1;
    dt_status status = dt__format(&dir, "%s/tensorboard", run_dir);
    if (!status) status = dt__dir_make(dir);
    if (!status)
        status = dt__format(&board->path, "%s/events.out.tfevents.%010lld.%s.%d", dir,
                            (long long)dt__clock_unix(), host, (int)getpid());
    dt_free(dir);
    if (!status) {
        board->fd = open(board->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        status = board->fd < 0 ? dt__fail_errno(board->path, "cannot open")
                               : write_field(board, 0, 3, version, sizeof version - 1);
    }
    if (status)
        dt__tensorboard_close(board);
    else
        report->tensorboard = board;
    return status;
}

void dt__tensorboard_close(struct dt__tensorboard *board)
{
    if (!board) return;
    if (board->fd >= 0) close(board->fd);
    dt__text_free(&board->text);
    dt_free(board->path);
    dt_free(board);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Writes the numbers of a record. Before the first one it writes a SessionLog with status START at
 * the record's step: the viewer drops later steps of earlier files. */
dt_status dt__tensorboard_record(struct dt__tensorboard *board, const struct dt__shown *shown)
{
    struct dt__message started = {0}, summary = {0}, value = {0};
    const char *key, *set = json_string_value(json_object_get(shown->record, "set"));
    json_t *number;
    dt_status status = DT_OK;
    if (!board->begun) {
        dt__message_int(&started, 1, 1);
        status = write_field(board, shown->step, 7, started.text.data, started.text.length);
        dt__text_free(&started.text);
    }
    board->begun = true;
    if (strcmp(shown->kind, "train") && strcmp(shown->kind, "eval") && strcmp(shown->kind, "final"))
        return status;
    json_object_foreach(shown->record, key, number)
    {
        char tag[128];
        float simple = (float)json_number_value(number);
        if (!json_is_number(number) || !strcmp(key, "step")) continue;
        snprintf(tag, sizeof tag, "%s/%s%s%s", shown->kind, set ? set : "", set ? "/" : "", key);
        dt__message_text(&value, 1, tag);
        dt__message_fixed(&value, 2, &simple, sizeof simple);
        dt__message_add(&summary, 1, &value);
    }
    if (!status) status = summary.text.status;
    if (!status)
        status = write_field(board, shown->step, 5, summary.text.data, summary.text.length);
    dt__text_free(&summary.text);
    return status;
}
