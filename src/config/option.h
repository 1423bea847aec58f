/* The option table as data, made from DT_OPTIONS_*. */
#ifndef CONFIG_OPTION_H
#define CONFIG_OPTION_H

#include "config/config.h"

enum dt__option_type { DT__INT, DT__REAL, DT__BOOL, DT__TEXT, DT__WORD };

enum dt__resume { DT__FREE, DT__FIXED, DT__TOLD };

struct dt__option {
    const char *name; /* "section.key" */
    const char *section, *key;
    enum dt__option_type type;
    enum dt__resume resume; /* what a change of it means for a resume */
    const char *initial;    /* default, as text */
    double min, max;        /* INT, REAL */
    const char *words;      /* WORD: "a|b|c" */
    const char *commands;   /* those that take it: "train eval" */
    const char *help;
    size_t offset; /* of the field in struct dt_config */
};

#define DT__PLUS_ONE(...) +1
#define DT__COUNT_SECTION(section) DT_OPTIONS_##section(DT__PLUS_ONE)
enum { DT__OPTION_COUNT = 0 DT_SECTIONS(DT__COUNT_SECTION) };

_Static_assert((int)DT__OPTION_COUNT <= (int)DT_MAX_OPTIONS, "room for what was given");

extern const struct dt__option dt__options[DT__OPTION_COUNT];

/* DT_EUSAGE: there is none; the message tells the nearest name, if one is near. */
dt_status dt__option_find(const char *name, const struct dt__option **out);
/* The place of a word among words with one of the characters `ends` behind each; -1: it is none of
 * them. */
int dt__word_index(const char *words, const char *ends, const char *word);
/* Whether a command, one word, takes it. */
bool dt__option_is_for(const struct dt__option *option, const char *command);
/* Whether help and lists leave it out: a hook for tests, or a retired key. */
bool dt__option_is_hidden(const struct dt__option *option);

/* Sets the option's field. DT_EUSAGE: "NAME=VALUE: expected ...". */
dt_status dt__option_set(struct dt_config *config, const struct dt__option *option,
                         const char *value);
/* The field as text, which dt__option_set turns into the same value: in the buffer, or the field's
 * own. */
const char *dt__option_text(const struct dt_config *config, const struct dt__option *option,
                            char buffer[DT_REAL_TEXT]);

/* What dt__config_check says, in its order; NULL behind the last. */
extern const char *const dt__rule_messages[];

/* Writes a text in which marks stand for what functions write; the end of the line behind a mark is
 * the mark's own. The last mark has no name. */
struct dt__mark {
    const char *name;
    void (*print)(FILE *out);
};
void dt__template_print(FILE *out, const char *text, const struct dt__mark *marks);
void dt__version_print(FILE *out);
/* Text on a manual page: escaped, "\n\n" begins a paragraph. */
void dt__roff_text(FILE *out, const char *text);
/* " run.dir= train.mode=sync ...": what may stand behind a command, for completions. */
void dt__option_words(FILE *out, const char *command);

#endif
