/* guard: the processes in which HDF5's library reads files. A fork server, started before there are
 * threads, forks a reader process for each file that is opened. */
#ifndef DT_HDF5_GUARD_H
#define DT_HDF5_GUARD_H

#include "hdf5/read.h"

/* Starts the fork server. A program calls it first of all in main; else the first file that is
 * opened does. What fails here shows when a file is opened. The server ignores signals, is replaced
 * when it is killed, and ends when all processes that could ask it have ended. */
void dt__h5_guard_start(void);
/* Ends the fork server, with no file open: nothing is left of it behind main. */
void dt__h5_guard_stop(void);

/* A reader process for the open file `fd`, which answers requests over *out_socket until that is
 * closed. DT_EMEMORY: no process to be had. */
dt_status dt__h5_guard_open(int fd, int *out_socket);
/* Sends or receives all bytes; false if the other end has gone. */
bool dt__h5_guard_pass(int socket, void *bytes, size_t length, bool sends);

/* The rows of an item, by its place in the table; or the table of what the file holds: each item
 * without its pointers, its path with a NUL, its data. */
enum { DT__H5_TABLE = -1 };
struct dt__h5_request {
    int64_t item;
    uint64_t first, rows;
    int type;
};
/* What stands before the bytes that were asked for; with a failure there are none. */
struct dt__h5_answer {
    int status;
    uint64_t length;
    char message[DT_ERROR_MAX];
};

/* ---- inside the reader process -------------------------------------------------------------- */

/* Loads and initialises the library for the readers that are forked later: 5 ms of CPU that each
 * would take otherwise. A reader reports what fails. */
void dt__h5_prepare(void);
struct dt__h5_inside; /* a file that the library has open */
/* Opens the file and appends its table to `table`. */
dt_status dt__h5_inside_open(const char *path, struct dt_text *table, struct dt__h5_inside **out);
/* The rows of a request in the stead of what `out` has. */
dt_status dt__h5_inside_read(struct dt__h5_inside *inside, const struct dt__h5_request *request,
                             struct dt_text *out);

#endif
