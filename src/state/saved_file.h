/* file: checkpoints and models on disk.
 *
 *   0    "dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", zeros to 512
 *   512  N bytes of HDF5
 *
 * `head` shows the first line; the checksum covers everything after it. A file is streamed to the
 * disk under a temporary name, synced, read back and compared with its checksum, and renamed. */
#ifndef DT_STATE_FILE_H
#define DT_STATE_FILE_H

#include "state/checkpoint.h"

enum { DT__USER_BLOCK = 512, DT__FORMAT_VERSION = 1 };

/* Writes a checkpoint, or only the model in it, as a file that appears whole or not at all. DT_EIO:
 * e.g. disk full; DT_EFORMAT: the disk returned other bytes. */
dt_status dt__file_save(const char *path, const struct dt_checkpoint *from, bool whole);

/* The part of a file to load: everything in it; the model; everything, and it must be a checkpoint;
 * the model's description without weights. */
enum dt__wanted { DT__WANT_ALL, DT__WANT_MODEL, DT__WANT_CHECKPOINT, DT__WANT_RECORDS };
/* Loads a file after checking size and checksum. A checkpoint is loaded for training: its vectors
 * and their copies may exceed memory (dt__alloc_backed). *out_bytes (may be NULL): its length.
 * DT_EIO; DT_EFORMAT: another kind of file, a newer version, damaged. */
dt_status dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                        uint64_t *out_bytes);
/* Loads from an open, checked file. DT__WANT_ALL: it is a checkpoint; beside: for
 * dt__alloc_backed. */
dt_status dt__file_get(struct dt__h5_file *file, enum dt__wanted wanted, const char *near_path,
                       struct dt_checkpoint *out);

#endif
