/* onednn: the functions of oneDNN as members of `dnnl`: dnnl.memory_create is dnnl_memory_create.
 * Call them only after dt__onednn_load has succeeded. */
#ifndef MODEL_ONEDNN_H
#define MODEL_ONEDNN_H

#include <dnnl.h>

#include "base/load.h"

#define DT__ONEDNN_SYMBOLS(X)                                                                      \
    X(dnnl_, convolution_backward_data_desc_init)                                                  \
    X(dnnl_, convolution_backward_weights_desc_init)                                               \
    X(dnnl_, convolution_forward_desc_init)                                                        \
    X(dnnl_, engine_create)                                                                        \
    X(dnnl_, engine_destroy)                                                                       \
    X(dnnl_, get_effective_cpu_isa)                                                                \
    X(dnnl_, matmul_desc_init)                                                                     \
    X(dnnl_, memory_create)                                                                        \
    X(dnnl_, memory_desc_equal)                                                                    \
    X(dnnl_, memory_desc_get_size)                                                                 \
    X(dnnl_, memory_desc_init_by_strides)                                                          \
    X(dnnl_, memory_desc_init_by_tag)                                                              \
    X(dnnl_, memory_destroy)                                                                       \
    X(dnnl_, memory_get_data_handle)                                                               \
    X(dnnl_, memory_set_data_handle)                                                               \
    X(dnnl_, primitive_create)                                                                     \
    X(dnnl_, primitive_desc_create)                                                                \
    X(dnnl_, primitive_desc_destroy)                                                               \
    X(dnnl_, primitive_desc_query)                                                                 \
    X(dnnl_, primitive_desc_query_md)                                                              \
    X(dnnl_, primitive_destroy)                                                                    \
    X(dnnl_, primitive_execute)                                                                    \
    X(dnnl_, primitive_get_primitive_desc)                                                         \
    X(dnnl_, reorder_primitive_desc_create)                                                        \
    X(dnnl_, set_max_cpu_isa)                                                                      \
    X(dnnl_, sgemm)                                                                                \
    X(dnnl_, stream_create)                                                                        \
    X(dnnl_, stream_destroy)                                                                       \
    X(dnnl_, stream_wait)                                                                          \
    X(dnnl_, version)

extern struct dt__dnnl {
    DT__ONEDNN_SYMBOLS(DT__POINTER)
} dt__dnnl;
#define dnnl dt__dnnl

/* Loads oneDNN, unless it is loaded. DT_EIO: the library was not found. */
dt_status dt__onednn_load(void);
/* Converts the status of a call to DT_OK, DT_EMEMORY or DT_EBUG; `what` is for the message: what
 * the call should have done. */
dt_status dt__dnnl_check(unsigned status, const char *what);

#endif
