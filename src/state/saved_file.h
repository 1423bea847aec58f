/* file: checkpoints and models on disk.
 *
 *   0    "dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", zeros to 512
 *   512  N bytes of HDF5
 *
 * The first line can be read with `head`; the checksum covers all behind it. A file is streamed to
 * the disk under a temporary name, synced, read back and compared with its checksum, and
 * renamed. */
#ifndef DT_STATE_FILE_H
#define DT_STATE_FILE_H

#include "state/checkpoint.h"

enum { DT__USER_BLOCK = 512, DT__FORMAT_VERSION = 1 };

/* Writes a checkpoint, or the model in it alone, as a file that is whole or not there. DT_EIO: disk
 * full and the like; DT_EFORMAT: the disk gives back other bytes. */
dt_status dt__file_save(const char *path, const struct dt_checkpoint *from, bool whole);

/* What of a file is loaded: all that is there; the model in it; all, which must be a checkpoint;
 * what is said of the model, without its weights. */
enum dt__wanted { DT__WANT_ALL, DT__WANT_MODEL, DT__WANT_CHECKPOINT, DT__WANT_RECORDS };
/* Loads a file whose size and checksum are right. What must be a checkpoint is to be trained on:
 * its vectors, with what they are copied to, may be more than memory. *out_bytes (may be NULL):
 * its length. DT_EIO; DT_EFORMAT: another kind of file, a newer version, damaged. */
dt_status dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                        uint64_t *out_bytes);
/* Of an open file, checked. DT__WANT_ALL: it is a checkpoint; beside: of dt__alloc_backed. */
dt_status dt__file_get(struct dt__h5_file *file, enum dt__wanted wanted, const char *beside,
                       struct dt_checkpoint *out);

#endif
