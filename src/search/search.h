/* search: many runs in one job, and one model of the best.
 *
 * A trial is one setting of the configuration. Rank 0 leads; the other ranks form teams, each with
 * a separate world, in which the trainer trains one trial after another. Trials exchange nothing.
 *
 *     leader (leader.c)                        team (team.c)
 *       order: trial, fold, epochs  ------->     settings (trial.c, space.c), dt__train
 *       held-out outputs, step      <-------     outputs of the trial's best model
 *       decides in the order of trials, records it (journal.c)
 *       members and model (ensemble.c)
 *
 * A trial's bits depend only on the configuration, the search's seed and the trial's number, and
 * the leader decides in the order of trials, not of arrival. So a kill, a stop or another number of
 * ranks changes nothing but times. */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include "base/json.h"
#include "comm/comm.h"
#include "config/option.h"
#include "data/data.h"
#include "dtrain/train.h"
#include "model/model.h"
#include "state/state.h"

/* ---- space.c: values that trials draw -------------------------------------------------------- */

/* One of the values of an axis: a text, or a range of numbers from which trials draw. */
struct dt__choice {
    char *value;
    bool range, log;
    double low, high;
};
struct dt__axis {
    const struct dt__option *option;
    bool turn; /* trials take the choices in turn, instead of drawing one */
    struct dt__choice *choice;
    size_t choices, choice_capacity;
};
struct dt__space {
    struct dt__axis *axis;
    size_t axes, axis_capacity;
};
/* Parses search.space. DT_EUSAGE: the message says what is wrong, and where. Not collective. */
dt_status dt__space_parse(const char *text, struct dt__space *out);
void dt__space_free(struct dt__space *space);
/* Draws a trial's value of an axis, which is a pure function of seed, trial and axis. The caller
 * frees it. */
dt_status dt__space_draw(const struct dt__space *space, uint64_t seed, int trial, size_t axis,
                         char **out);
/* Writes the default space for the configuration and the kind and number of rows. The caller frees
 * it. */
dt_status dt__space_usual(const struct dt_config *config, const struct dt_source *rows, char **out);

/* ---- the search ----------------------------------------------------------------------------- */

/* The rows that a trial trains on, and the rows that it holds out. */
struct dt__fold {
    struct dt_source *rows, *held_out;
};

enum { DT__DATA_TEXT = 40 };

/* State of a search. Each rank creates it once; afterwards it is const. */
struct dt__search {
    struct dt_world *world;
    struct dt_world *team; /* NULL: this rank leads, and is in no team */
    const struct dt_config *config;
    struct dt__space space;
    bool linear;                  /* trial 1 is linear */
    struct dt__shared *memory[2]; /* training rows, and rows of data.eval; one copy per host; NULL:
                                   * none */
    char data[DT__DATA_TEXT];     /* rank 0: checksums of the data files, which show whether a
                                   * resumed search has the same rows */
    int folds;                    /* at least 1 */
    struct dt__fold *fold;
};

/* Returns the directory of a trial's run: "DIR/trials/0003"; with search.folds
 * "DIR/trials/0003-1". */
struct dt__path dt__trial_dir(const struct dt__search *search, int trial, int fold);
/* Writes the configuration of a trial's run. epochs: where the run ends; 0: at its regular end.
 * DT_EUSAGE: the trial's settings contradict each other. */
dt_status dt__trial_config(const struct dt__search *search, int trial, int fold, int epochs,
                           struct dt_config *out);
dt_status dt__config_copy(const struct dt_config *from, struct dt_config *out);
/* Creates a JSON object of the keys in which the trial differs from others; the values are texts.
 * The caller calls json_decref on it. DT_EMEMORY. */
dt_status dt__trial_settings(const struct dt__search *search, int trial, json_t **out);

/* ---- team.c --------------------------------------------------------------------------------- */

struct dt__assignment {
    int trial, fold; /* trial -1: there is nothing more to train */
    int epochs;
};
struct dt__result {
    struct dt__assignment order;
    int status;      /* status of the run, a dt_status */
    uint64_t step;   /* step of its best model */
    uint64_t floats; /* number of outputs that follow in messages */
    double secs;
    char error[DT_ERROR_MAX];
};
enum { DT__TAG_ORDER = 70, DT__TAG_RESULT, DT__TAG_OUTPUTS, DT__TAG_STOP };
enum { DT__OUTPUTS_AT_ONCE = 1 << 22 }; /* most floats in a message */

/* Trains a trial in one fold. On the team's rank 0, *out gets the outputs of its best model for the
 * held-out rows, (result->floats), in the space of dt__model_to_mean; the caller frees them.
 * Collective over the team. */
void dt__unit_run(const struct dt__search *search, const struct dt__assignment *order,
                  struct dt__result *result, float **out);
/* Trains what the leader assigns, until the leader ends the search. Collective over the team. */
void dt__team_serve(const struct dt__search *search);

/* ---- journal.c: search.jsonl ---------------------------------------------------------------- */

struct dt__verdict {
    bool known;
    char status[16]; /* "completed", "diverged", "memory", "failed" */
    double score;    /* rounded to 6 digits; infinite unless the trial completed */
};
struct dt__journal {
    int fd;
    char path[4096];
    struct dt__verdict *first, *whole; /* (trials) verdicts after search.first_epochs, and after
                                        * whole runs */
    int trials;
    bool finished;            /* the trials to train to the end have been chosen */
    char data[DT__DATA_TEXT]; /* checksums of the rows of the search that wrote the journal; "": not
                               * recorded */
    bool reported;            /* a "final" line follows the last "ensemble" line */
    double secs;              /* seconds of training in all trials of the journal */
    char *ensemble;           /* last line of kind "ensemble"; NULL: there is none */
};
/* Opens the journal for appending, and reads its decisions; a torn last line is cut off.
 * DT_EFORMAT: a line is not one that a search writes. */
dt_status dt__journal_open(const char *dir, int trials, struct dt__journal *out);
void dt__journal_close(struct dt__journal *journal);
/* Adds the time to a line, ends it and appends it durably. */
dt_status dt__journal_add(struct dt__journal *journal, struct dt_json *line);
/* Returns the score rounded to six digits, with which scores are compared. */
double dt__score_round(double score);

/* ---- ensemble.c ----------------------------------------------------------------------------- */

/* The means of computing scores. A score is the loss of the held-out rows of all folds. */
struct dt__scorer {
    struct dt_model *model; /* a model with the trials' task and loss; NULL: not created yet */
    bool root;              /* scores are roots of mean squared errors */
    struct dt_batch *truth; /* (folds) labels or targets of the held-out rows */
    uint64_t rows;          /* number of held-out rows in all folds */
};
dt_status dt__scorer_make(const struct dt__search *search, const struct dt_checkpoint *like,
                          struct dt__scorer *out);
void dt__scorer_free(struct dt__scorer *scorer, int folds);
/* Computes the score of predictions, which are given as one array of outputs per fold, in the space
 * of dt__model_to_mean. DT_EMEMORY. */
dt_status dt__scorer_score(const struct dt__search *search, const struct dt__scorer *scorer,
                           float *const *mean, double *out);

/* Computes the score of the baseline: the constant with the least loss on the training rows. */
dt_status dt__scorer_baseline(const struct dt__search *search, const struct dt__scorer *scorer,
                              double *out);
/* Computes the score that the model at path has on `rows`. path: as in dt_predictor_open. */
dt_status dt__model_score(const struct dt__search *search, const struct dt__scorer *scorer,
                          const char *path, const struct dt_source *rows, double *out);

/* The trials that the model is made of, in the order in which they were chosen. */
struct dt__members {
    int *trial;
    int count;
    double score; /* score of the members' mean */
};
/* Returns true if the trial is a member. */
bool dt__members_have(const struct dt__members *members, int trial);
/* Chooses the members by the verdicts on all trials. */
dt_status dt__members_choose(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__verdict *verdict, struct dt__members *out);
/* Writes the members' model to DIR/export/best. */
dt_status dt__members_export(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__members *members);
/* Reads a trial's outputs for a fold's held-out rows from the file in which the leader has saved
 * them. */
dt_status dt__outputs_read(const struct dt__search *search, const struct dt__scorer *scorer,
                           int trial, int fold, float **out);
struct dt__path dt__outputs_path(const struct dt__search *search, int trial, int fold);

#endif
