/* Class labels: what is seen of them in the training data, and which class each is. */
#ifndef DATA_LABELS_H
#define DATA_LABELS_H

#include "data/text.h"
#include "dtrain/config.h"
#include "dtrain/data.h"

enum { DT__MAX_CLASSES = 1 << 20, DT__MAX_TEXT_CLASSES = 1 << 16 };

/* What has been seen of the labels so far, which says what the next one may be:
 *
 *                 as text                             as a number of a binary file
 *     known       a class of the model: its name, or its number if it has none
 *     NONE        a whole number or a text            a whole number
 *     NUMBERS     a whole number                      a whole number
 *     TEXTS       a text, seen before or not          an error
 *     NAMED       the name of a class                 the number of a class
 *
 * The first label makes NUMBERS or TEXTS of NONE. NAMED are the classes that data.class_names lists
 * or the first file names, before any label; by data.class_names a text may be the number of a
 * class as well. */
struct dt__labels {
    const struct dt_schema *known; /* NULL: the classes are being learned */
    bool task_given;               /* model.task: many classes are meant */
    bool numbered;                 /* data.class_names: a text may be a class's number */
    bool named_here; /* the file at hand names its classes: 0 and 1 where the model has -1 and 1 */
    enum dt__labels_kind {
        DT__LABELS_NONE,
        DT__LABELS_NUMBERS,
        DT__LABELS_TEXTS,
        DT__LABELS_NAMED
    } kind; /* while they are learned */
    /* NUMBERS */
    int64_t min, max; /* max -1: none is above */
    bool zero;        /* a label was 0 */
    char *negative;   /* the first negative label: "FILE:LINE: label -3" */
    /* TEXTS: those seen; NAMED, known: the names of the classes, in order */
    struct dt__dict texts;
    const char *path; /* where the next label stands; set by the caller */
    uint64_t line;
};
dt_status dt__labels_init(struct dt__labels *labels, const struct dt_schema *known,
                          const struct dt_config *config);
void dt__labels_free(struct dt__labels *labels);

/* A label as text stands in a text file. Labels are numbers or texts throughout.
 * *out_code: the class, if it is known; the number; or the number of the text among those seen.
 * DT_EFORMAT: empty, of the other kind, no whole number, too large; or not known. */
dt_status dt__labels_add_text(struct dt__labels *labels, const char *text, size_t length,
                              int32_t *out_code);
/* A label of a binary file. */
dt_status dt__labels_add_number(struct dt__labels *labels, int64_t value);
/* A file names its classes; all files must name the same. */
dt_status dt__labels_add_names(struct dt__labels *labels, char *const *names, size_t count);
/* Classes and label_names of the schema: numbers 0..max, or -1 and 1; or the distinct texts; or the
 * names in the order of the file that has them. DT_EFORMAT, DT_EMISMATCH: less than two classes; or
 * more than 1,000 by number, where nothing says that they are classes. */
dt_status dt__labels_finish(struct dt__labels *labels, struct dt_schema *schema);

/* The class of a label; `names` has the schema's label_names in order; `numbered` as above.
 * DT_EFORMAT: no such label. */
dt_status dt__label_of_text(const struct dt_schema *schema, const struct dt__dict *names,
                            bool numbered, const char *text, size_t length, int32_t *out);
/* DT_EFORMAT: a target that the loss does not take. */
dt_status dt__target_check(const struct dt_targets *of, double value);
/* Numbers -1 and 1 of a binary file, where those are the two classes, to 0 and 1, in place. */
void dt__labels_to_classes(const struct dt_schema *schema, unsigned char *labels, size_t count);
dt_status dt__label_of_number(const struct dt_schema *schema, int64_t value, int32_t *out);

#endif
