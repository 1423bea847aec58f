/* guard: the processes in which HDF5's library reads files. A helper, forked before there are
 * threads, forks a child for each file that is opened. */
#ifndef DT_HDF5_GUARD_H
#define DT_HDF5_GUARD_H

#include "hdf5/read.h"

/* Starts the helper. A program calls it first of all in main; else the first file that is opened
 * does. What fails here shows when a file is opened. The helper ignores signals, is replaced when
 * it is killed, and ends when all processes that could ask it have ended. */
void dt__h5_guard_start(void);
/* Ends the helper, with no file open: nothing is left of it behind main. */
void dt__h5_guard_stop(void);

/* A child that reads the open file `fd`. Its answers' bytes come in the memory file `memory`;
 * requests and answers go over *out_socket. It ends with the table unless something in the file
 * needs the library, or `stay`. DT_EMEMORY: no process to be had. */
dt_status dt__h5_guard_open(int fd, int memory, bool stay, int *out_socket);

struct dt__h5_request {
    uint64_t item, first, rows; /* rows of an item, by its place in the table */
    int type;
};
struct dt__h5_answer {
    int status;
    bool stays;      /* the child waits for requests */
    uint64_t length; /* of the bytes in memory */
    char message[DT_ERROR_MAX];
};
/* One request and its answer: false if the child has died. request NULL: the answer that it begins
 * with. */
bool dt__h5_guard_ask(int socket, const struct dt__h5_request *request,
                      struct dt__h5_answer *answer);

/* dt__h5_open with a table in the stead of a child's (tests use it: what is believed of one); NULL:
 * the child's. */
dt_status dt__h5_open_table(const char *path, const void *table, size_t length,
                            struct dt__h5_file **out);

/* ---- inside the child ----------------------------------------------------------- */

/* How an item travels: this, its path with a NUL, its data, padding to 8 bytes. */
struct dt__h5_record {
    uint32_t length; /* of all */
    uint32_t path;   /* bytes, with the NUL */
    uint64_t data;   /* bytes */
    uint64_t dims[DT__H5_MAX_RANK];
    uint64_t count, size, offset;
    int32_t kind, type, rank, unused;
};

struct dt__h5_inside; /* a file that the library has open */
/* Opens the file and appends its table to `text`. *out_stays: something in it needs the library. */
dt_status dt__h5_inside_open(const char *path, struct dt_text *text, struct dt__h5_inside **out,
                             bool *out_stays);
/* Bytes that a request's answer takes; 0: no such rows. */
size_t dt__h5_inside_bytes(struct dt__h5_inside *inside, const struct dt__h5_request *request);
dt_status dt__h5_inside_read(struct dt__h5_inside *inside, const struct dt__h5_request *request,
                             void *out);

#endif
