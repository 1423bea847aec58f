/* load: loads shared libraries when they are first used, instead of linking with them.
 *
 * When a program starts, all linked libraries are mapped, relocated and initialised. HDF5, oneDNN
 * and libmicrohttpd would bring 30 more libraries, and cause 80 % of the page faults of `dtrain
 * help`. Code that uses one of them lists the functions and variables that it needs:
 *
 *   #define SYMBOLS(X) X(H5, Fopen) X(H5, Fclose)
 *   struct hdf5 { SYMBOLS(DT__POINTER) } hdf5;            once loaded, hdf5.Fopen points to H5Fopen
 *   static const char *const names[] = {SYMBOLS(DT__NAME)};
 *   static struct dt__library library = DT__LIBRARY("hdf5", names, &hdf5); */
#ifndef BASE_LOAD_H
#define BASE_LOAD_H

#include <pthread.h>

#include "base/base.h"

#define DT__POINTER(prefix, name) __typeof__(prefix##name) *name;
#define DT__NAME(prefix, name) DT__QUOTED(prefix##name),
#define DT__QUOTED(name) DT__QUOTED_AS_IT_IS(name)
#define DT__QUOTED_AS_IT_IS(name) #name

struct dt__library {
    const char *name; /* such as "hdf5" for a file libhdf5*.so* */
    const char *const *symbols;
    size_t count;
    void *table; /* (count) pointers, in the order of `symbols`; filled by dt__library_load */
    bool alone;  /* the library prefers its own symbols, and those of its dependencies, to symbols
                  * of the same name in the program's libraries */
    pthread_mutex_t lock;
    void *handle; /* NULL: not loaded */
};

#define DT__LIBRARY(its_name, names, its_table, ...)                                               \
    {                                                                                              \
        .name = (its_name), .symbols = (names), .count = sizeof(names) / sizeof *(names),          \
        .table = (its_table), .lock = PTHREAD_MUTEX_INITIALIZER, __VA_ARGS__                       \
    }

/* Loads the library and fills its table, unless this was already done. The caller should block
 * signals first (dt__stop_block), since a library may start threads, which inherit the caller's
 * signal mask. Not collective.
 *
 * DT_EIO: the library is not installed, or lacks a symbol. */
dt_status dt__library_load(struct dt__library *library);
/* Unloads the library. The caller makes sure that it is not in use. */
void dt__library_unload(struct dt__library *library);

#endif
