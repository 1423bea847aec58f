#include "state/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/h5.h"

enum { GROWTH = 1 << 20, BLOCK = 1 << 18 };

static const char *const KIND_WORDS[] = {"checkpoint", "model"};

const char *dt__image_kind_word(enum dt__image_kind kind)
{
    return KIND_WORDS[kind];
}

void dt__image_free(struct dt__image *image)
{
    dt_free(image->bytes);
    *image = (struct dt__image){0};
}

/* ---- HDF5's core driver on our buffer ------------------------------------------------------- */

/* The driver's file is our buffer: HDF5 has it grown, and leaves it to us when the file closes. */
static void *image_realloc(void *old, size_t size, H5FD_file_image_op_t op, void *arg)
{
    (void)old, (void)op;
    struct dt__image *image = arg;
    return dt_grow(&image->bytes, &image->capacity, size, 1, "a checkpoint") ? NULL : image->bytes;
}

static herr_t image_free(void *old, H5FD_file_image_op_t op, void *arg)
{
    (void)old, (void)op, (void)arg;
    return 0;
}

static void *same_arg(void *arg)
{
    return arg;
}

static herr_t keep_arg(void *arg)
{
    (void)arg;
    return 0;
}

static herr_t use_buffer(hid_t access, struct dt__image *image)
{
    H5FD_file_image_callbacks_t callbacks = {.image_realloc = image_realloc,
                                             .image_free = image_free,
                                             .udata_copy = same_arg,
                                             .udata_free = keep_arg,
                                             .udata = image};
    if (H5Pset_fapl_core(access, GROWTH, 0) < 0) return -1;
    if (H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0) return -1;
    if (H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0) return -1;
    return H5Pset_file_image_callbacks(access, &callbacks);
}

/* HDF5 takes two core files of one name for the same file, and refuses the name of a real one. */
static void name_image(const struct dt__image *image, char name[64])
{
    snprintf(name, 64, "/dev/null/dtrain-%p", (const void *)image);
}

/* All attributes and links in the root's own header, where our reader looks for them, and no times:
 * the same state gives the same bytes. */
static hid_t create_plist(void)
{
    hid_t plist = H5Pcreate(H5P_FILE_CREATE);
    if (plist < 0) return plist;
    if (H5Pset_userblock(plist, DT__USER_BLOCK) >= 0 &&
        H5Pset_attr_phase_change(plist, 1000, 0) >= 0 &&
        H5Pset_link_phase_change(plist, 1000, 0) >= 0 && H5Pset_obj_track_times(plist, false) >= 0)
        return plist;
    H5Pclose(plist);
    return -1;
}

static hid_t create_file(struct dt__image *image)
{
    char name[64];
    name_image(image, name);
    hid_t file = -1, access = H5Pcreate(H5P_FILE_ACCESS), create = create_plist();
    if (create >= 0 && access >= 0 && use_buffer(access, image) >= 0)
        file = H5Fcreate(name, H5F_ACC_EXCL, create, access);
    if (create >= 0) H5Pclose(create);
    if (access >= 0) H5Pclose(access);
    return file;
}

dt_status dt__image_create(struct dt__image *image, size_t expect, hid_t *out_file)
{
    dt__h5_quiet();
    image->length = 0;
    DT_TRY(dt_grow(&image->bytes, &image->capacity, expect, 1, "a checkpoint"));
    hid_t file = create_file(image);
    if (file < 0) return dt__h5_fail(DT_EIO, "cannot start a file in memory");
    *out_file = file;
    return DT_OK;
}

void dt__image_close(hid_t file)
{
    if (file >= 0) H5Fclose(file);
}

/* ---- user block ----------------------------------------------------------------------------- */

struct header {
    enum dt__image_kind kind;
    uint32_t crc;
    uint64_t bytes;
};

static void header_print(const struct header *header, unsigned char block[DT__USER_BLOCK])
{
    memset(block, 0, DT__USER_BLOCK);
    snprintf((char *)block, DT__USER_BLOCK, "dtrain %s %d crc32c=%08" PRIx32 " bytes=%" PRIu64 "\n",
             KIND_WORDS[header->kind], DT__FORMAT_VERSION, header->crc, header->bytes);
}

static bool kind_parse(const char *word, enum dt__image_kind *out)
{
    for (int i = DT__CHECKPOINT; i <= DT__MODEL; i++) {
        if (strcmp(word, KIND_WORDS[i])) continue;
        *out = (enum dt__image_kind)i;
        return true;
    }
    return false;
}

static dt_status header_parse(const char *name, const unsigned char block[DT__USER_BLOCK],
                              struct header *out)
{
    char text[DT__USER_BLOCK + 1] = {0}, word[16] = "";
    unsigned char again[DT__USER_BLOCK];
    unsigned version = 0;
    memcpy(text, block, DT__USER_BLOCK);
    int found = sscanf(text, "dtrain %15[a-z] %9u crc32c=%8" SCNx32 " bytes=%18" SCNu64, word,
                       &version, &out->crc, &out->bytes);
    if (found < 2 || !kind_parse(word, &out->kind))
        return dt_fail(DT_EFORMAT, "%s: not a dtrain checkpoint or model", name);
    if (version > DT__FORMAT_VERSION)
        return dt_fail(DT_EFORMAT, "%s: written by a newer dtrain (format %u; this one reads %d)",
                       name, version, DT__FORMAT_VERSION);
    header_print(out, again);
    if (found < 4 || memcmp(block, again, DT__USER_BLOCK))
        return dt_fail(DT_EFORMAT, "%s: damaged: its first %d bytes are not as written", name,
                       DT__USER_BLOCK);
    return DT_OK;
}

static dt_status check_size(const char *name, const struct header *header, uint64_t size)
{
    if (size - DT__USER_BLOCK == header->bytes) return DT_OK;
    return dt_fail(DT_EFORMAT, "%s: damaged: %" PRIu64 " bytes long, should be %" PRIu64, name,
                   size, header->bytes + DT__USER_BLOCK);
}

static dt_status check_crc(const char *name, const struct header *header, uint32_t crc)
{
    if (crc == header->crc) return DT_OK;
    return dt_fail(DT_EFORMAT, "%s: damaged: checksum %08" PRIx32 ", should be %08" PRIx32, name,
                   crc, header->crc);
}

dt_status dt__image_check(const char *name, const void *bytes, size_t length,
                          enum dt__image_kind *out_kind)
{
    struct header header;
    const unsigned char *at = bytes;
    if (length < DT__USER_BLOCK)
        return dt_fail(DT_EFORMAT, "%s: only %zu bytes long", name, length);
    DT_TRY(header_parse(name, at, &header));
    DT_TRY(check_size(name, &header, length));
    DT_TRY(check_crc(name, &header, dt_crc32c(0, at + DT__USER_BLOCK, length - DT__USER_BLOCK)));
    *out_kind = header.kind;
    return DT_OK;
}

/* ---- sealing -------------------------------------------------------------------------------- */

/* Length of the file with its user block, once everything is in the buffer; 0 on failure. */
static size_t flushed_length(hid_t file)
{
    if (H5Fflush(file, H5F_SCOPE_LOCAL) < 0) return 0;
    ssize_t length = H5Fget_file_image(file, NULL, 0);
    return length > 0 ? (size_t)length + DT__USER_BLOCK : 0;
}

dt_status dt__image_seal(struct dt__image *image, hid_t file, enum dt__image_kind kind)
{
    size_t length = flushed_length(file);
    if (H5Fclose(file) < 0 || length == 0 || length > image->capacity)
        return dt__h5_fail(DT_EIO, "cannot complete a file in memory");
    struct header header = {.kind = kind, .bytes = length - DT__USER_BLOCK};
    header.crc = dt_crc32c(0, image->bytes + DT__USER_BLOCK, header.bytes);
    header_print(&header, image->bytes);
    image->length = length;
    return DT_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

static dt_status fail_errno(const char *path, const char *doing)
{
    return dt_fail(DT_EIO, "%s: %s: %s", path, doing, strerror(errno));
}

/* A regular file only: a pipe or a device would hang us. */
static dt_status open_regular(const char *path, int *out_fd, uint64_t *out_size)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return fail_errno(path, "cannot open");
    dt_status status = DT_OK;
    if (fstat(fd, &info)) status = fail_errno(path, "cannot be examined");
    if (!status && !S_ISREG(info.st_mode)) status = dt_fail(DT_EFORMAT, "%s: not a file", path);
    if (status) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    *out_size = (uint64_t)info.st_size;
    return DT_OK;
}

static dt_status read_exactly(int fd, const char *path, void *to, size_t length)
{
    const size_t part = 64 << 20;
    for (char *at = to; length > 0;) {
        ssize_t got = read(fd, at, length < part ? length : part);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(path, "cannot read");
        if (got == 0) return dt_fail(DT_EFORMAT, "%s: damaged: it ends too soon", path);
        at += got;
        length -= (size_t)got;
        dt_work_gets_on();
    }
    return DT_OK;
}

/* Reads the user block and compares the size that it states with that of the file. */
static dt_status read_header(int fd, const char *path, uint64_t size, struct header *out)
{
    unsigned char block[DT__USER_BLOCK];
    if (size < DT__USER_BLOCK)
        return dt_fail(DT_EFORMAT, "%s: only %" PRIu64 " bytes long", path, size);
    DT_TRY(read_exactly(fd, path, block, sizeof block));
    DT_TRY(header_parse(path, block, out));
    return check_size(path, out, size);
}

static dt_status read_crc(int fd, const char *path, uint64_t length, unsigned char *block,
                          uint32_t *out)
{
    uint32_t crc = 0;
    while (length > 0) {
        size_t part = length < BLOCK ? (size_t)length : BLOCK;
        DT_TRY(read_exactly(fd, path, block, part));
        crc = dt_crc32c(crc, block, part);
        length -= part;
    }
    *out = crc;
    return DT_OK;
}

static dt_status verify_open(int fd, const char *path, uint64_t size)
{
    struct header header;
    unsigned char *block;
    uint32_t crc;
    DT_TRY(read_header(fd, path, size, &header));
    DT_TRY(dt_alloc(BLOCK, 1, "verifying a checkpoint", &block));
    dt_status status = read_crc(fd, path, header.bytes, block, &crc);
    dt_free(block);
    return status ? status : check_crc(path, &header, crc);
}

dt_status dt__image_verify(const char *path, void *arg)
{
    (void)arg;
    int fd = -1;
    uint64_t size = 0;
    DT_TRY(open_regular(path, &fd, &size));
    dt_status status = verify_open(fd, path, size);
    close(fd);
    return status;
}

static dt_status read_open(int fd, const char *path, uint64_t size, struct dt__image *out,
                           enum dt__image_kind *out_kind)
{
    struct header header;
    DT_TRY(read_header(fd, path, size, &header));
    DT_TRY(dt_alloc(size, 1, "reading a checkpoint", &out->bytes));
    out->length = out->capacity = size;
    header_print(&header, out->bytes);
    DT_TRY(read_exactly(fd, path, out->bytes + DT__USER_BLOCK, size - DT__USER_BLOCK));
    return dt__image_check(path, out->bytes, out->length, out_kind);
}

dt_status dt__image_read(const char *path, struct dt__image *out, enum dt__image_kind *out_kind)
{
    int fd = -1;
    uint64_t size = 0;
    struct dt__image image = {0};
    DT_TRY(open_regular(path, &fd, &size));
    dt_status status = read_open(fd, path, size, &image, out_kind);
    close(fd);
    if (status)
        dt__image_free(&image);
    else
        *out = image;
    return status;
}
