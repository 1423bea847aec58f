/* Stores the columns of a table in an HDF5 file. */
#ifndef TABLE_COLUMNS_FILE_H
#define TABLE_COLUMNS_FILE_H

#include "hdf5/read.h"
#include "hdf5/write.h"
#include "table/columns.h"

/* Write and read the columns, dense and hash_bits of a schema. In the file they are two lists of
 * texts in `group`: columns and categories. dt__columns_get needs schema->features, or computes it
 * if it is 0; without a list of columns in the group it changes nothing. DT_EFORMAT. */
dt_status dt__columns_put(struct dt__h5_layout *layout, const char *group,
                          const struct dt_schema *schema);
dt_status dt__columns_get(const struct dt__h5_file *file, const char *group,
                          struct dt_schema *schema);

#endif
