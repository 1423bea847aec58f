/* The columns of a table, in a file of HDF5. */
#ifndef TABLE_COLUMNS_FILE_H
#define TABLE_COLUMNS_FILE_H

#include "hdf5/read.h"
#include "hdf5/write.h"
#include "table/columns.h"

/* Write and read the columns of a schema, dense and hash_bits in a file of HDF5: two lists of texts
 * in `group`, of the columns and of the categories. get: reads them for schema->features, which it
 * computes if it is 0; members that the group lacks are not changed. DT_EFORMAT. */
dt_status dt__columns_put(struct dt__h5_layout *layout, const char *group,
                          const struct dt_schema *schema);
dt_status dt__columns_get(const struct dt__h5_file *file, const char *group,
                          struct dt_schema *schema);

#endif
