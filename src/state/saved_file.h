/* file: checkpoints and models on disk.
 *
 *   0    "dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", zeros to 512
 *   512  N bytes of HDF5
 *
 * The first line is readable with `head`; the checksum covers the N bytes. A file is streamed to
 * disk under a temporary name, synced, read back to verify the checksum, and renamed. */
#ifndef DT_STATE_FILE_H
#define DT_STATE_FILE_H

#include "state/checkpoint.h"

enum { DT__USER_BLOCK = 512, DT__FORMAT_VERSION = 1 };

/* Writes a checkpoint, or only its model if `whole` is false, as a file that appears whole or not
 * at all. DT_EIO: for example, the disk is full. DT_EFORMAT: the bytes read back differ. */
dt_status dt__file_save(const char *path, const struct dt_checkpoint *from, bool whole);

/* The part of a file to load: all of it; the model; all of it, and it must be a checkpoint; the
 * model's description without weights. */
enum dt__wanted { DT__WANT_ALL, DT__WANT_MODEL, DT__WANT_CHECKPOINT, DT__WANT_RECORDS };
/* Loads a file after checking its size and checksum. With DT__WANT_CHECKPOINT the vectors are
 * loaded for training, where they and their copies may exceed memory (dt__alloc_backed). *out_bytes
 * (may be NULL) becomes the file's length. DT_EIO. DT_EFORMAT: the file is damaged, of another kind
 * or from a newer version. */
dt_status dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                        uint64_t *out_bytes);
/* Loads from an open file that has been verified; with DT__WANT_ALL it must be a checkpoint.
 * near_path: for dt__alloc_backed. */
dt_status dt__file_get(struct dt__h5_file *file, enum dt__wanted wanted, const char *near_path,
                       struct dt_checkpoint *out);

#endif
