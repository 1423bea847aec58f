/* Class labels: the labels seen in the training data, and the class of each. */
#ifndef TABLE_LABELS_H
#define TABLE_LABELS_H

#include "config/config.h"
#include "table/schema.h"
#include "text/text.h"

enum { DT__MAX_CLASSES = 1 << 20, DT__MAX_TEXT_CLASSES = 1 << 16 };

/* ---- look-up -------------------------------------------------------------------------------- */

/* The classes of a schema, to be found by the labels in files. A number is a class's label
 * (schema.label_numbers), else its position; a text is its name, or a number. */
struct dt__classes {
    int count;
    bool named;    /* they have names */
    bool numbered; /* data.class_names: a text may be a number although they have names */
    struct dt__dict names;
    struct dt__dict numbers; /* labels as the 8 bytes of an int64_t; empty: positions */
};
dt_status dt__classes_init(struct dt__classes *classes, const struct dt_schema *schema,
                           bool numbered);
void dt__classes_free(struct dt__classes *classes);
/* Finds the class of a label's text. DT_EFORMAT: no class has this label. */
dt_status dt__class_of_text(const struct dt__classes *classes, const char *text, size_t length,
                            int32_t *out);
dt_status dt__class_of_number(const struct dt__classes *classes, int64_t value, int32_t *out);
/* Fails with DT_EFORMAT if no class is at this position. */
dt_status dt__class_check(int classes, int64_t position);
/* Replaces labels (count) int32_t by their classes, in place; -1: no class has this label. */
void dt__classes_of_labels(const struct dt__classes *classes, unsigned char *labels, size_t count);

/* ---- learning ------------------------------------------------------------------------------- */

/* The labels seen so far, which restrict the next one:
 *
 *                 as text                             as a number of a binary file
 *     known       a class of the model, as above      a class of the model, as above
 *     NONE        a whole number or a text            a whole number
 *     NUMBERS     a whole number                      a whole number
 *     TEXTS       a text, seen before or not          an error
 *     NAMED       the name of a class                 the position of a class
 *
 * The first label turns NONE into NUMBERS or TEXTS. NAMED are the classes that data.class_names
 * lists or the first file names, before any label. With names of data.class_names, labels may also
 * be whole numbers: positions, or K of them in numeric order for K names. If these names are
 * numbers themselves, a number is the class of this name. */
struct dt__labels {
    const struct dt_schema *known; /* NULL: the classes are being learned */
    struct dt__classes classes;    /* known classes */
    bool task_given;               /* model.task is given: many classes are intended */
    bool numbered;                 /* data.class_names lists the names */
    bool numeric;                  /* the names are numbers */
    bool takes_unknown;            /* known: labels that the model lacks become class -1 */
    uint64_t unknown;              /* number of these */
    bool named_here; /* the current file names its classes: its numbers are their positions */
    enum dt__labels_kind {
        DT__LABELS_NONE,
        DT__LABELS_NUMBERS,
        DT__LABELS_TEXTS,
        DT__LABELS_NAMED
    } kind;                  /* while they are learned */
    int declared;            /* width of one-hot rows; 0: there are none */
    struct dt__dict numbers; /* numbers seen, as the 8 bytes of an int64_t */
    char *negative;          /* the first negative label: "FILE:LINE: label -3" */
    struct dt__dict texts;   /* TEXTS: the texts seen; NAMED, known: the names of the classes */
    bool keeps;              /* set by the caller: keep the code of each row's label, in order */
    int32_t *codes;          /* (ncodes) */
    size_t ncodes, codes_capacity;
    const char *path; /* place of the next label: dt__labels_enter sets the file, the caller the
                       * line */
    uint64_t line;
};
dt_status dt__labels_init(struct dt__labels *labels, const struct dt_schema *known,
                          const struct dt_config *config);
void dt__labels_free(struct dt__labels *labels);
/* Announces that the next labels are those of this file. The path is borrowed. */
void dt__labels_enter(struct dt__labels *labels, const char *path);

/* Adds a label of a text file. Labels are all numbers or all texts. *out_code: the class, if
 * classes are known; else a code, see dt__labels_class. DT_EFORMAT: empty, of the other kind, no
 * whole number, too many; or not known. */
dt_status dt__labels_add_text(struct dt__labels *labels, const char *text, size_t length,
                              int32_t *out_code);
/* Adds a label of a binary file. */
dt_status dt__labels_add_number(struct dt__labels *labels, int64_t value);
/* Adds a file with one-hot rows of this width. DT_EFORMAT: differs from the earlier files. */
dt_status dt__labels_add_width(struct dt__labels *labels, size_t width);
/* Adds the names that a file gives to its classes; all files must give the same. */
dt_status dt__labels_add_names(struct dt__labels *labels, char *const *names, size_t count);
/* Makes classes, label_names and label_numbers of the schema: numbers 0..K-1 that all occur have no
 * names; other numbers are names in numeric order; texts are names in bytewise order; or the names
 * are in the order of data.class_names or of the file that has them. DT_EFORMAT, DT_EMISMATCH:
 * fewer than two classes; numbers that may be amounts, without model.task; names that do not fit
 * the numbers. */
dt_status dt__labels_finish(struct dt__labels *labels, struct dt_schema *schema);
/* Return the number of codes that labels have, and the class of each: texts come first, then
 * numbers. */
size_t dt__labels_codes(const struct dt__labels *labels);
dt_status dt__labels_class(const struct dt__labels *labels, const struct dt__classes *classes,
                           size_t code, int32_t *out);

/* Reads a label as a number. DT_EFORMAT: it is missing, not a number, or not one that the loss
 * takes. */
dt_status dt__target_read(const struct dt_targets *of, const struct dt__cell *label, float *out);
/* Fails with DT_EFORMAT if the loss does not take this target. */
dt_status dt__target_check(const struct dt_targets *of, double value);

#endif
