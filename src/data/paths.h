/* Lists of files and globs. */
#ifndef DATA_PATHS_H
#define DATA_PATHS_H

#include "data/names.h"

/* Expands a comma-separated list: each glob into its files sorted bytewise, all else as it stands.
 * `key` names the option in messages. DT_EIO: a glob that matches nothing. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out);

#endif
