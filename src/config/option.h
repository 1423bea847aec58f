/* The option table as an array, made from DT_OPTIONS_*. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include "config/config.h"

enum dt__option_type { DT__INT, DT__REAL, DT__BOOL, DT__TEXT, DT__CHOICE };

enum dt__resume { DT__FREE, DT__FIXED, DT__RECORDED };

struct dt__option {
    const char *name; /* "section.key" */
    const char *section, *key;
    enum dt__option_type type;
    enum dt__resume resume; /* whether a resume may change it */
    const char *initial;    /* default, as text */
    double min, max;        /* bounds of INT and REAL */
    const char *choices;    /* "a|b|c" for CHOICE; else NULL */
    const char *commands;   /* commands that take the option: "train eval" */
    const char *help;
    size_t offset; /* of the member in struct dt_config */
};

#define DT__PLUS_ONE(...) +1
#define DT__COUNT_SECTION(section) DT_OPTIONS_##section(DT__PLUS_ONE)
enum { DT__OPTION_COUNT = 0 DT_SECTIONS(DT__COUNT_SECTION) };

_Static_assert((int)DT__OPTION_COUNT <= (int)DT_MAX_OPTIONS, "DT_MAX_OPTIONS is too small");

extern const struct dt__option dt__options[DT__OPTION_COUNT];

/* Finds an option by its name, "section.key". DT_EUSAGE: there is none; the message suggests the
 * most similar name, if one is close. */
dt_status dt__option_find(const char *name, const struct dt__option **out);
/* Returns the index of a word in a list whose words are separated by any of the characters `ends`;
 * -1: it is not in the list. */
int dt__choice_index(const char *choices, const char *ends, const char *text);
/* Returns true if the command takes the option. */
bool dt__option_is_for(const struct dt__option *option, const char *command);
/* Returns true if help and lists omit the option, because it is a hook for tests or a retired
 * key. */
bool dt__option_is_hidden(const struct dt__option *option);

/* Sets the option's member of `config` from text. DT_EUSAGE: "NAME=VALUE: expected ...". */
dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value);
/* Returns the option's value as text that dt__option_set converts back to the same value. The text
 * is in the buffer, is constant, or is the member itself (TEXT). */
const char *dt__option_text(const struct dt_config *config, const struct dt__option *option,
                            char buffer[DT_REAL_TEXT]);

/* The messages of dt__config_check in the order of its checks; NULL ends the list. */
extern const char *const dt__rule_messages[];

/* A name that dt__template_print replaces. It writes `text`, but in place of each mark's name, and
 * of a line end that follows it, what the mark's function prints. A mark without a name ends the
 * list. */
struct dt__mark {
    const char *name;
    void (*print)(FILE *out);
};
void dt__template_print(FILE *out, const char *text, const struct dt__mark *marks);
void dt__version_print(FILE *out);
/* Writes text for a manual page: escaped, on one line; "\n\n" begins a new paragraph. */
void dt__roff_text(FILE *out, const char *text);
/* Writes " run.dir= train.mode=sync ...": the words that a shell can offer after the command. */
void dt__option_completions(FILE *out, const char *command);

#endif
