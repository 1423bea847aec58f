/* The option table as data, made from DT_OPTIONS_*. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include "config/config.h"

enum dt__option_type { DT__INT, DT__REAL, DT__BOOL, DT__TEXT, DT__CHOICE };

enum dt__resume { DT__FREE, DT__FIXED, DT__RECORDED };

struct dt__option {
    const char *name; /* "section.key" */
    const char *section, *key;
    enum dt__option_type type;
    enum dt__resume resume; /* effect of a change when a run is resumed */
    const char *initial;    /* default, as text */
    double min, max;        /* INT, REAL */
    const char *choices;    /* CHOICE: "a|b|c"; else NULL */
    const char *commands;   /* commands that take it: "train eval" */
    const char *help;
    size_t offset; /* of the member in struct dt_config */
};

#define DT__PLUS_ONE(...) +1
#define DT__COUNT_SECTION(section) DT_OPTIONS_##section(DT__PLUS_ONE)
enum { DT__OPTION_COUNT = 0 DT_SECTIONS(DT__COUNT_SECTION) };

_Static_assert((int)DT__OPTION_COUNT <= (int)DT_MAX_OPTIONS, "room for what was given");

extern const struct dt__option dt__options[DT__OPTION_COUNT];

/* Finds an option by name. DT_EUSAGE: there is none; the message has the nearest name, if one is
 * similar. */
dt_status dt__option_find(const char *name, const struct dt__option **out);
/* Returns the index of a choice among those that each end with one of the characters `ends`; -1:
 * not found. */
int dt__choice_index(const char *choices, const char *ends, const char *text);
/* Returns true if a command, one word, takes the option. */
bool dt__option_is_for(const struct dt__option *option, const char *command);
/* Returns true if help and lists leave the option out: a hook for tests, or a retired key. */
bool dt__option_is_hidden(const struct dt__option *option);

/* Sets the option's member. DT_EUSAGE: "NAME=VALUE: expected ...". */
dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value);
/* Returns the member as text, which dt__option_set converts back to the same value: in the buffer,
 * or the member itself. */
const char *dt__option_text(const struct dt_config *config, const struct dt__option *option,
                            char buffer[DT_REAL_TEXT]);

/* The messages of dt__config_check, in its order; NULL after the last one. */
extern const char *const dt__rule_messages[];

/* Writes a text in which each mark is replaced by what its function writes, including the end of
 * the line after the mark. The last mark has no name. */
struct dt__mark {
    const char *name;
    void (*print)(FILE *out);
};
void dt__template_print(FILE *out, const char *text, const struct dt__mark *marks);
void dt__version_print(FILE *out);
/* Writes text for a manual page, escaped; "\n\n" begins a paragraph. */
void dt__roff_text(FILE *out, const char *text);
/* Writes " run.dir= train.mode=sync ...", the choices that may follow a command, for
 * completions. */
void dt__option_completions(FILE *out, const char *command);

#endif
