/* image: an HDF5 file that lives in one buffer of ours, behind a user block with its checksum.
 *
 *   0    "dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", zeros to 512
 *   512  N bytes of HDF5
 *
 * HDF5's core driver makes the file in the buffer in place, so that a save passes over the bytes as
 * seldom as can be, and disk errors stay ours. */
#ifndef DT_STATE_IMAGE_H
#define DT_STATE_IMAGE_H

#include <hdf5.h>

#include "dtrain/base.h"

enum { DT__USER_BLOCK = 512, DT__FORMAT_VERSION = 1 };

/* What a file says that it is in its first line. */
enum dt__image_kind { DT__CHECKPOINT, DT__MODEL };
const char *dt__image_kind_word(enum dt__image_kind kind); /* "checkpoint", "model" */

struct dt__image {
    unsigned char *bytes;
    size_t length, capacity;
};
void dt__image_free(struct dt__image *image);

/* Starts an empty HDF5 file in the image, whose buffer is reused. `expect`: bytes that it will
 * probably need. End it with dt__image_seal, or with dt__image_close after a failure. */
dt_status dt__image_create(struct dt__image *image, size_t expect, hid_t *out_file);
/* Closes the file and writes the user block; the image is complete. Closes on failure too. */
dt_status dt__image_seal(struct dt__image *image, hid_t file, enum dt__image_kind kind);

void dt__image_close(hid_t file);

/* Reads a file and verifies its user block, size and checksum.
 * DT_EIO; DT_EFORMAT: another kind of file, a newer version, damaged. */
dt_status dt__image_read(const char *path, struct dt__image *out, enum dt__image_kind *out_kind);
/* The same from bytes in memory; `name` stands for the file in messages. */
dt_status dt__image_check(const char *name, const void *bytes, size_t length,
                          enum dt__image_kind *out_kind);
/* Verifies a file block by block. Fits dt_file_verify_fn; `arg` is not used. */
dt_status dt__image_verify(const char *path, void *arg);

#endif
