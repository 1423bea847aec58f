/* Whole reads and writes at a place in a file, and files without a name. */
#ifndef DATA_FD_H
#define DATA_FD_H

#include "dtrain/base.h"

/* A new file in `dir` that is gone when it is closed. DT_EIO. */
dt_status dt__fd_temporary(const char *dir, int *out_fd);
/* `what` names the file in messages. DT_EIO: disk full, a short file. */
dt_status dt__fd_write(int fd, const char *what, const void *bytes, size_t length, uint64_t offset);
dt_status dt__fd_read(int fd, const char *what, void *bytes, size_t length, uint64_t offset);

#endif
