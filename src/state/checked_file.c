/* A checkpoint or a model on disk: written with the checksum of its content, and opened if that is
 * right. */
#include "state/checked_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/limits.h"

_Static_assert(DT__VERIFY_BYTES >= (int)DT__USER_BLOCK, "the user block is read whole");

static const char *const KIND_WORDS[] = {[DT__CHECKPOINT] = "checkpoint", [DT__MODEL] = "model"};

/* What the user block says. */
struct header {
    enum dt__file_kind kind;
    uint32_t crc;   /* CRC-32C of what is behind the user block */
    uint64_t bytes; /* how many those are */
};

static void header_print(const struct header *header, unsigned char block[DT__USER_BLOCK])
{
    memset(block, 0, DT__USER_BLOCK);
    snprintf((char *)block, DT__USER_BLOCK, "dtrain %s %d crc32c=%08" PRIx32 " bytes=%" PRIu64 "\n",
             KIND_WORDS[header->kind], DT__FORMAT_VERSION, header->crc, header->bytes);
}

static dt_status header_parse(const char *path, const unsigned char block[DT__USER_BLOCK],
                              struct header *out)
{
    char text[DT__USER_BLOCK + 1] = {0}, word[16] = "";
    unsigned char again[DT__USER_BLOCK];
    unsigned version = 0;
    memcpy(text, block, DT__USER_BLOCK);
    int found = sscanf(text, "dtrain %15[a-z] %9u crc32c=%8" SCNx32 " bytes=%18" SCNu64, word,
                       &version, &out->crc, &out->bytes);
    bool model = !strcmp(word, KIND_WORDS[DT__MODEL]);
    out->kind = model ? DT__MODEL : DT__CHECKPOINT;
    if (found < 2 || (!model && strcmp(word, KIND_WORDS[DT__CHECKPOINT])))
        return dt_fail(DT_EFORMAT, "%s: not a dtrain checkpoint or model", path);
    if (version > DT__FORMAT_VERSION)
        return dt_fail(DT_EFORMAT, "%s: written by a newer dtrain (format %u; this one reads %d)",
                       path, version, DT__FORMAT_VERSION);
    header_print(out, again);
    if (found < 4 || memcmp(block, again, DT__USER_BLOCK))
        return dt_fail(DT_EFORMAT, "%s: damaged: its first %d bytes are not as written", path,
                       DT__USER_BLOCK);
    return DT_OK;
}

/* Whether size and checksum are what the user block states; a dt_file_verify_fn. */
static dt_status file_verify(const char *path, void *out_header)
{
    struct header *header = out_header;
    unsigned char *block = NULL;
    uint32_t crc = 0;
    uint64_t size = 0;
    int fd = -1;
    dt_status status;
    DT_TRY(dt_file_open(path, &fd, &size));
    if (size < DT__USER_BLOCK)
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: only %" PRIu64 " bytes long", path, size));
    DT_GUARD(dt_alloc(DT__VERIFY_BYTES, 1, "verifying a checkpoint", &block));
    DT_GUARD(dt_fd_read(fd, path, block, DT__USER_BLOCK, 0));
    DT_GUARD(header_parse(path, block, header));
    if (size - DT__USER_BLOCK != header->bytes)
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: damaged: %" PRIu64 " bytes long, should be %" PRIu64,
                         path, size, header->bytes + DT__USER_BLOCK));
    for (uint64_t at = DT__USER_BLOCK, part; at < size; at += part) {
        part = size - at < DT__VERIFY_BYTES ? size - at : DT__VERIFY_BYTES;
        DT_GUARD(dt_fd_read(fd, path, block, (size_t)part, at));
        crc = dt_crc32c(crc, block, (size_t)part);
    }
    if (crc != header->crc)
        status = dt_fail(DT_EFORMAT, "%s: damaged: checksum %08" PRIx32 ", should be %08" PRIx32,
                         path, crc, header->crc);
done:
    dt_free(block);
    close(fd);
    return status;
}

struct saving {
    const struct dt__h5_layout *layout;
    struct header header;
    int fd;
    const char *path; /* of the temporary file */
    uint64_t at;
};

/* The user block comes last: until then there are zeros in its place. */
static dt_status saving_write_part(void *arg, const void *bytes, size_t length)
{
    struct saving *saving = arg;
    size_t before = saving->at < DT__USER_BLOCK ? DT__USER_BLOCK - (size_t)saving->at : 0;
    saving->at += length;
    if (length > before)
        saving->header.crc =
            dt_crc32c(saving->header.crc, (const char *)bytes + before, length - before);
    return dt_fd_write(saving->fd, saving->path, bytes, length);
}

static dt_status saving_fill_file(int fd, const char *path, void *arg)
{
    struct saving *saving = arg;
    unsigned char block[DT__USER_BLOCK];
    saving->fd = fd;
    saving->path = path;
    DT_TRY(dt__h5_stream(saving->layout, saving_write_part, saving));
    header_print(&saving->header, block);
    if (lseek(fd, 0, SEEK_SET) < 0)
        return dt__fail_errno(path, "cannot seek");
    return dt_fd_write(fd, path, block, sizeof block);
}

dt_status dt__file_save(const char *path, enum dt__file_kind kind, struct dt__h5_layout *layout)
{
    uint64_t length;
    struct saving saving = {.layout = layout, .header.kind = kind};
    struct header written;
    dt_status status = dt__h5_layout_end(layout, &length);
    if (status) return dt_fail_prefix(status, "%s: ", path);
    saving.header.bytes = length - DT__USER_BLOCK;
    return dt_file_write_by(path, saving_fill_file, &saving, file_verify, &written);
}

dt_status dt__file_open(const char *path, enum dt__file_kind *out_kind, uint64_t *out_bytes,
                        struct dt__h5_file **out)
{
    struct header header;
    DT_TRY(file_verify(path, &header));
    DT_TRY(dt__h5_open(path, out));
    *out_kind = header.kind;
    if (out_bytes) *out_bytes = header.bytes + DT__USER_BLOCK;
    return DT_OK;
}
