/* config: the settings of a run, "section.key=value". `dtrain options` and dtrain-config(5) list
 * all keys with type, range and default. Not collective. */
#ifndef DTRAIN_CONFIG_H
#define DTRAIN_CONFIG_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_config;

/* Creates a configuration with all defaults. DT_EMEMORY. */
dt_status dt_config_create(struct dt_config **out);
void dt_config_destroy(struct dt_config *config); /* NULL is fine */

/* Sets the keys that an INI file names; other keys keep their values. Lines are [section],
 * key = value, or, before the first [section], section.key = value. Comments start with ';' or '#'
 * at the start of a line, or with " ;" after a value. A value may be in double quotes, with \\, \"
 * and \xHH inside.
 * DT_EUSAGE: the file cannot be read; a section or key is unknown (the text names the nearest), a
 * value has the wrong type or is out of range, or a key appears twice. The error text begins with
 * "FILE:LINE: ". */
dt_status dt_config_read_file(struct dt_config *config, const char *path);
/* Sets the keys in a text such as "train.lr=0.1\nmodel.hidden=64". Error texts give `name` where
 * those of a file give its path. DT_EUSAGE. */
dt_status dt_config_read_text(struct dt_config *config, const char *name, const char *text);
/* Sets one key from "section.key=value". DT_EUSAGE. */
dt_status dt_config_set(struct dt_config *config, const char *assignment);

/* Prints all keys as an INI text, from which dt_config_read_text reads the same values. The caller
 * frees the text with dt_free. DT_EMEMORY. */
dt_status dt_config_print(const struct dt_config *config, char **out_text);

#ifdef __cplusplus
}
#endif

#endif
