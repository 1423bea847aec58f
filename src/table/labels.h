/* Class labels: collects the labels of the training data, makes classes of them, and finds the
 * class of a label. */
#ifndef TABLE_LABELS_H
#define TABLE_LABELS_H

#include "config/config.h"
#include "table/schema.h"
#include "text/text.h"

enum { DT__MAX_CLASSES = 1 << 20, DT__MAX_TEXT_CLASSES = 1 << 16 };

/* ---- look-up -------------------------------------------------------------------------------- */

/* The classes of a schema, to look up the labels of files. A number is the class's label
 * (schema.label_numbers) or, without such labels, its position. A text is the class's name or a
 * number. */
struct dt__classes {
    int count;
    bool named;    /* the classes have names */
    bool numbered; /* data.class_names gives the names: labels may still be numbers */
    struct dt__dict names;
    struct dt__dict numbers; /* labels as the 8 bytes of an int64_t; empty: a number is a
                              * position */
};
dt_status dt__classes_init(struct dt__classes *classes, const struct dt_schema *schema,
                           bool numbered);
void dt__classes_free(struct dt__classes *classes);
/* Finds the class of a label. DT_EFORMAT: no class has this label. */
dt_status dt__class_of_text(const struct dt__classes *classes, const char *text, size_t length,
                            int32_t *out);
dt_status dt__class_of_number(const struct dt__classes *classes, int64_t value, int32_t *out);
/* Fails with DT_EFORMAT if `position` is not in 0..classes - 1. */
dt_status dt__class_check(int classes, int64_t position);
/* Replaces `count` labels (int32_t) by their classes, in place; labels that no class has become -1.
 * Without label numbers it does nothing. */
void dt__classes_of_labels(const struct dt__classes *classes, unsigned char *labels, size_t count);

/* ---- learning ------------------------------------------------------------------------------- */

/* The labels seen so far. `known` and `kind` decide what the next label may be:
 *
 *                   as text                             as a number of a binary file
 *       known       a class of the model, as above      a class of the model, as above
 *       NONE        a whole number or a text            a whole number
 *       NUMBERS     a whole number                      a whole number
 *       TEXTS       a text, seen before or not          an error
 *       NAMED       the name of a class                 the position of a class
 *
 * The first label turns NONE into NUMBERS or TEXTS. The kind is NAMED if data.class_names or the
 * first file lists the classes before any label is read. With data.class_names, labels may also be
 * whole numbers: either positions, or K different numbers whose numeric order matches the K names.
 * If the names are numbers themselves, a number is the class of that name. */
struct dt__labels {
    const struct dt_schema *known; /* NULL: the classes are being learned */
    struct dt__classes classes;    /* the classes of `known` */
    bool task_given;               /* model.task is given, so a large number of classes is
                                    * intended */
    bool numbered;                 /* data.class_names gives the names */
    bool numeric;                  /* these names are numbers */
    bool takes_unknown;            /* with `known`: labels that the model lacks become class -1 */
    uint64_t unknown;              /* number of such labels */
    bool named_by_file; /* the current file names its classes: numbers in it are positions */
    enum dt__labels_kind {
        DT__LABELS_NONE,
        DT__LABELS_NUMBERS,
        DT__LABELS_TEXTS,
        DT__LABELS_NAMED
    } kind;                  /* of the labels that are being learned */
    int one_hot;             /* width of one-hot rows; 0: no file has them */
    struct dt__dict numbers; /* numbers seen, as the 8 bytes of an int64_t */
    char *negative;          /* the first negative label: "FILE:LINE: label -3" */
    struct dt__dict texts;   /* TEXTS: texts seen; NAMED, known: names of the classes */
    bool keep_codes;         /* set by the caller: store the code of each row's label in `codes` */
    int32_t *codes;          /* (ncodes), in the order of the rows */
    size_t ncodes, codes_capacity;
    const char *path; /* place of the next label for messages: dt__labels_enter sets the file, the
                       * caller the line */
    uint64_t line;
};
dt_status dt__labels_init(struct dt__labels *labels, const struct dt_schema *known,
                          const struct dt_config *config);
void dt__labels_free(struct dt__labels *labels);
/* Starts a file: the labels added from now on are in `path`, which is borrowed. */
void dt__labels_enter(struct dt__labels *labels, const char *path);

/* Adds a label of a text file. The labels of a data set are all numbers or all texts. Sets
 * *out_code to the class if the classes are known, else to a code for dt__labels_class. DT_EFORMAT:
 * the label is empty, of the other kind, not a whole number or not a known class, or there are too
 * many distinct labels. */
dt_status dt__labels_add_text(struct dt__labels *labels, const char *text, size_t length,
                              int32_t *out_code);
/* Adds a label of a binary file. */
dt_status dt__labels_add_number(struct dt__labels *labels, int64_t value);
/* Adds a file with one-hot rows of `width` classes. DT_EMISMATCH: earlier files have another width.
 * DT_EFORMAT: it is beyond the known classes, or earlier labels are texts. */
dt_status dt__labels_add_width(struct dt__labels *labels, size_t width);
/* Adds the names that a file gives to its classes. DT_EMISMATCH: another file gives different names
 * or none. DT_EFORMAT: two names are the same. */
dt_status dt__labels_add_names(struct dt__labels *labels, char *const *names, size_t count);
/* Writes classes, label_names and label_numbers of the schema. Numbers 0..K-1 that all occur get no
 * names. Other numbers become names in numeric order, texts become names in bytewise order, and
 * names given by data.class_names or a file keep their order. DT_EFORMAT, DT_EMISMATCH: fewer than
 * two classes; numbers that may be amounts, without model.task; names that do not fit the
 * numbers. */
dt_status dt__labels_finish(struct dt__labels *labels, struct dt_schema *schema);
/* dt__labels_codes returns the number of distinct codes: those of texts come first, then those of
 * numbers. dt__labels_class finds the class of a code. */
size_t dt__labels_codes(const struct dt__labels *labels);
dt_status dt__labels_class(const struct dt__labels *labels, const struct dt__classes *classes,
                           size_t code, int32_t *out);

/* Reads a label as a number. DT_EFORMAT: it is missing, not a number, or outside the range that the
 * loss takes. */
dt_status dt__target_read(const struct dt_targets *targets, const struct dt__cell *label,
                          float *out);
/* Fails with DT_EFORMAT if `value` is outside the range that the loss takes. */
dt_status dt__target_check(const struct dt_targets *targets, double value);

#endif
