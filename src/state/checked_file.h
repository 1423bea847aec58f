/* checked_file: a checkpoint or a model on disk.
 *
 *   0    "dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", zeros to 512
 *   512  N bytes of HDF5
 *
 * The first line can be read with `head`; the checksum covers all behind it. A file is streamed to
 * the disk under a temporary name, synced, read back and compared with its checksum, and
 * renamed. */
#ifndef DT_STATE_CHECKED_FILE_H
#define DT_STATE_CHECKED_FILE_H

#include "hdf5/read.h"
#include "hdf5/write.h"

enum { DT__USER_BLOCK = 512, DT__FORMAT_VERSION = 1 };

/* What a file says that it is in its first line. */
enum dt__file_kind { DT__CHECKPOINT, DT__MODEL };

/* Writes a layout that was created with DT__USER_BLOCK, and has not been ended, as a file that is
 * whole or not there. DT_EIO: disk full and the like; DT_EFORMAT: the disk gives back other
 * bytes. */
dt_status dt__file_save(const char *path, enum dt__file_kind kind, struct dt__h5_layout *layout);

/* Opens a file whose size and checksum are right. *out_bytes (may be NULL): its length.
 * DT_EIO; DT_EFORMAT: another kind of file, a newer version, damaged. */
dt_status dt__file_open(const char *path, enum dt__file_kind *out_kind, uint64_t *out_bytes,
                        struct dt__h5_file **out);

#endif
