/* library: HDF5's functions and ids, as H5.Fopen for H5Fopen and H5_ID(T_C_S1) for H5T_C_S1, and
 * functions that the two files calling the library share. All are valid only after dt__h5_load has
 * succeeded. */
#ifndef DT_HDF5_LIBRARY_H
#define DT_HDF5_LIBRARY_H

#include <hdf5.h>

#include "base/load.h"
#include "hdf5/read.h"

#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
#define DT__H5_LOCKING(X) X(H5, Pset_file_locking)
#else
#define DT__H5_LOCKING(X)
#endif
/* X for the types of a number: in memory, and in files of both byte orders. */
#define DT__H5_NUMBER(X, native, stored)                                                           \
    X(H5, T_NATIVE_##native##_g) X(H5, T_##stored##LE_g) X(H5, T_##stored##BE_g)
/* clang-format off */
#define DT__H5_SYMBOLS(X) \
    X(H5, Aclose) X(H5, Acreate2) X(H5, Aget_space) X(H5, Aget_type) X(H5, Aiterate2) \
    X(H5, Aopen) X(H5, Aread) X(H5, Awrite) X(H5, Dclose) X(H5, Dcreate2) \
    X(H5, Dget_create_plist) X(H5, Dget_offset) X(H5, Dget_space) X(H5, Dget_storage_size) \
    X(H5, Dget_type) X(H5, Dopen2) X(H5, Dread) X(H5, Eclear2) X(H5, Eset_auto2) \
    X(H5, Ewalk2) X(H5, FDregister) X(H5, Fclose) X(H5, Fcreate) X(H5, Fget_filesize) \
    X(H5, Fopen) X(H5, Gclose) X(H5, Gcreate2) X(H5, Gopen2) X(H5, Iget_type) X(H5, Lexists) \
    X(H5, Literate) X(H5, Oclose) X(H5, Oopen) X(H5, PLset_loading_state) X(H5, Pclose) \
    X(H5, Pcreate) X(H5, Pget_chunk) X(H5, Pget_driver_info) X(H5, Pget_external_count) \
    X(H5, Pget_filter2) X(H5, Pget_layout) X(H5, Pget_nfilters) X(H5, Pset_alloc_time) \
    X(H5, Pset_attr_phase_change) X(H5, Pset_cache) X(H5, Pset_chunk_cache) \
    X(H5, Pset_driver) X(H5, Pset_fill_time) X(H5, Pset_libver_bounds) \
    X(H5, Pset_link_phase_change) X(H5, Pset_obj_track_times) X(H5, Pset_userblock) \
    X(H5, Sclose) X(H5, Screate) X(H5, Screate_simple) X(H5, Sget_simple_extent_dims) \
    X(H5, Sget_simple_extent_ndims) X(H5, Sget_simple_extent_type) X(H5, Sselect_hyperslab) \
    X(H5, Tclose) X(H5, Tcopy) X(H5, Tequal) X(H5, Tget_class) X(H5, Tget_fields) \
    X(H5, Tget_offset) X(H5, Tget_precision) X(H5, Tget_size) X(H5, Tget_super) \
    X(H5, Tis_variable_str) X(H5, Tset_cset) X(H5, Tset_size) X(H5, open) X(H5, T_C_S1_g) \
    X(H5, P_CLS_DATASET_ACCESS_ID_g) X(H5, P_CLS_DATASET_CREATE_ID_g) \
    X(H5, P_CLS_FILE_ACCESS_ID_g) X(H5, P_CLS_FILE_CREATE_ID_g) \
    X(H5, P_CLS_GROUP_CREATE_ID_g) DT__H5_NUMBER(X, UINT8, STD_U8) \
    DT__H5_NUMBER(X, INT8, STD_I8) DT__H5_NUMBER(X, UINT16, STD_U16) \
    DT__H5_NUMBER(X, INT16, STD_I16) DT__H5_NUMBER(X, UINT32, STD_U32) \
    DT__H5_NUMBER(X, INT32, STD_I32) DT__H5_NUMBER(X, UINT64, STD_U64) \
    DT__H5_NUMBER(X, INT64, STD_I64) DT__H5_NUMBER(X, FLOAT, IEEE_F32) \
    DT__H5_NUMBER(X, DOUBLE, IEEE_F64) DT__H5_LOCKING(X)
/* clang-format on */

extern struct dt__h5_symbols {
    DT__H5_SYMBOLS(DT__POINTER)
} dt__h5;
#define H5 dt__h5
#define H5_ID(name) (H5.open(), *H5.name##_g)
#define H5_CLASS(name) H5_ID(P_CLS_##name##_ID)

/* The library's header has constants, such as H5F_ACC_TRUNC, that include a call of the library. */
#undef H5CHECK
#undef H5OPEN
#define H5CHECK
#define H5OPEN

/* Loads the library, unless this was already done. DT_EIO: it is not installed. */
dt_status dt__h5_load(void);
/* Like dt_fail with `what`, followed by the innermost text of the library's error stack, if there
 * is one. */
dt_status dt__h5_library_fail(dt_status status, const char *what);
/* Returns the type of a number in files that this program writes; negative if there is none. */
hid_t dt__h5_stored_type(enum dt__h5_type type);

#endif
