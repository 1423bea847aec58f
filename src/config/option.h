/* The option table as data, made from DT_OPTIONS_*. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include "dtrain/config.h"

enum dt__option_type { DT__INT, DT__REAL, DT__BOOL, DT__TEXT, DT__WORD };

struct dt__option {
    const char *name; /* "section.key" */
    const char *section, *key;
    enum dt__option_type type;
    bool fixed;          /* a resume may not change it */
    const char *initial; /* default, as text */
    double min, max;     /* INT, REAL */
    const char *words;   /* WORD: "a|b|c" */
    const char *help;
    size_t offset; /* of the field in struct dt_config */
};

#define DT__PLUS_ONE(...) +1
#define DT__COUNT_SECTION(section) DT_OPTIONS_##section(DT__PLUS_ONE)
enum { DT__OPTION_COUNT = 0 DT_SECTIONS(DT__COUNT_SECTION) };

extern const struct dt__option dt__options[DT__OPTION_COUNT];

/* DT_EUSAGE: there is none; the message tells the nearest name. */
dt_status dt__option_find(const char *name, const struct dt__option **out);
/* Hooks for tests stay out of sight. */
bool dt__option_is_hidden(const struct dt__option *option);

/* Sets the option's field. DT_EUSAGE: "NAME=VALUE: expected ...". */
dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value);
/* The field as text, which dt__option_set turns into the same value. Caller frees. */
dt_status dt__option_text(const struct dt_config *config, const struct dt__option *option,
                          char **out);
/* "an integer from 0 to 9" and the like. Caller frees. */
dt_status dt__option_expectation(const struct dt__option *option, char **out);

/* Values in an INI text. What a plain value cannot hold (space at its ends, ';', a leading '"',
 * control characters) is put in double quotes, with \xHH for what is special there. */
dt_status dt__value_quote(struct dt_text *text, const char *value);
/* Undoes it in place. False: a value that begins with '"' and is not well-formed. */
bool dt__value_unquote(char *value);

#endif
