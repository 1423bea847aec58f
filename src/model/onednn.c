#include "model/onednn.h"

#include <stdio.h>

#include "model/model.h"

struct dt__dnnl dt__dnnl;

static const char *const symbols[] = {DT__ONEDNN_SYMBOLS(DT__NAME)};
static struct dt__library library = DT__LIBRARY("dnnl", symbols, &dt__dnnl);

dt_status dt__onednn_load(void)
{
    return dt__library_load(&library);
}

dt_status dt__dnnl_check(unsigned status, const char *what)
{
    if (status == dnnl_success) return DT_OK;
    return dt_fail(status == dnnl_out_of_memory ? DT_EMEMORY : DT_EBUG,
                   "oneDNN: %s failed with status %u", what, status);
}

const char *dt__onednn_version(char buffer[DT_ONEDNN_VERSION])
{
    snprintf(buffer, DT_ONEDNN_VERSION, "%d.%d.%d", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
             DNNL_VERSION_PATCH);
    return buffer;
}
