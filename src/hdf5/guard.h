/* guard: the processes in which HDF5's library reads files. A fork server, started before any
 * thread, forks a reader process for each file that is opened. */
#ifndef DT_HDF5_GUARD_H
#define DT_HDF5_GUARD_H

#include "hdf5/read.h"

/* Starts the fork server. A program calls it first in main; otherwise the first opening of a file
 * does. A failure is reported when a file is opened. The server ignores signals, is replaced if it
 * is killed, and ends when no process is left that can send it requests. */
void dt__h5_guard_start(void);
/* Ends the fork server, so that no process of it remains after main. No file may be open. */
void dt__h5_guard_stop(void);

/* Starts a reader process for the open file `fd`. It answers requests over *out_socket until that
 * is closed. DT_EMEMORY: the process could not be started. */
dt_status dt__h5_guard_open(int fd, int *out_socket);
/* Sends or receives `length` bytes; returns false if the other end is closed. */
bool dt__h5_guard_pass(int socket, void *bytes, size_t length, bool sends);

/* A request for rows of an item, given by its index in the table; or, with item DT__H5_TABLE, for
 * the table of the file's contents. The table has for each item its struct without valid pointers,
 * its path with a NUL, and its data. */
enum { DT__H5_TABLE = -1 };
struct dt__h5_request {
    int64_t item;
    uint64_t first, rows;
    int type;
};
/* Header of an answer. Unless `status` is a failure, `length` bytes follow. */
struct dt__h5_answer {
    int status;
    uint64_t length;
    char message[DT_ERROR_MAX];
};

/* ---- inside the reader process -------------------------------------------------------------- */

/* Loads and initialises the library once for all readers that are forked later, which saves 5 ms of
 * CPU per reader. Failures are reported by the reader. */
void dt__h5_prepare(void);
struct dt__h5_inside; /* a file that the library has opened */
/* Opens the file and appends the table of its contents to `table`. */
dt_status dt__h5_inside_open(const char *path, struct dt_text *table, struct dt__h5_inside **out);
/* Replaces the contents of `out` by the rows of a request. */
dt_status dt__h5_inside_read(struct dt__h5_inside *inside, const struct dt__h5_request *request,
                             struct dt_text *out);

#endif
