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

/* A value, or a range of numbers. */
struct dt__choice {
    char *value;
    bool range, log;
    double low, high;
};
struct dt__axis {
    const struct dt__option *option;
    bool turn; /* trials use the choices in turn */
    struct dt__choice *choice;
    size_t choices, choice_capacity;
};
struct dt__space {
    struct dt__axis *axis;
    size_t axes, axis_capacity;
};
/* Parses a search.space. DT_EUSAGE: reports what is wrong, and where. Not collective. */
dt_status dt__space_parse(const char *text, struct dt__space *out);
void dt__space_free(struct dt__space *space);
/* Draws the value of an axis in a trial: a pure function of seed, trial and axis. The caller frees
 * it. */
dt_status dt__space_draw(const struct dt__space *space, uint64_t seed, int trial, size_t axis,
                         char **out);
/* Writes the default space for data of this kind and size. The caller frees it. */
dt_status dt__space_usual(const struct dt_config *config, const struct dt_source *rows, char **out);

/* ---- the search ----------------------------------------------------------------------------- */

/* Rows that a trial trains on, and rows that it holds out. */
struct dt__fold {
    struct dt_source *rows, *held_out;
};

enum { DT__DATA_TEXT = 40 };

/* The state that all ranks share. Created once; const afterwards. */
struct dt__search {
    struct dt_world *world;
    struct dt_world *team; /* NULL: this is a leader without a team */
    const struct dt_config *config;
    struct dt__space space;
    bool linear;                  /* trial 1 is the linear model */
    struct dt__shared *memory[2]; /* rows to train on and rows of data.eval, one copy per host */
    char data[DT__DATA_TEXT];     /* rank 0: checksums of the files, by which other rows are
                                   * recognised */
    int folds;                    /* at least 1 */
    struct dt__fold *fold;
};

/* Directory of a trial's run: "DIR/trials/0003", of a fold "DIR/trials/0003-1". */
struct dt__path dt__trial_dir(const struct dt__search *search, int trial, int fold);
/* Writes the configuration of a trial's run; epochs: where it ends, 0: at its regular end.
 * DT_EUSAGE: the setting contradicts itself. */
dt_status dt__trial_config(const struct dt__search *search, int trial, int fold, int epochs,
                           struct dt_config *out);
dt_status dt__config_copy(const struct dt_config *from, struct dt_config *out);
/* Writes the keys in which the trial differs from others, an object of texts by keys. The caller
 * calls json_decref. DT_EMEMORY. */
dt_status dt__trial_settings(const struct dt__search *search, int trial, json_t **out);

/* ---- team.c --------------------------------------------------------------------------------- */

struct dt__assignment {
    int trial, fold; /* trial -1: the search has ended */
    int epochs;
};
struct dt__result {
    struct dt__assignment order;
    int status;      /* dt_status of the run */
    uint64_t step;   /* of its best model */
    uint64_t floats; /* of outputs */
    double secs;
    char error[DT_ERROR_MAX];
};
enum { DT__TAG_ORDER = 70, DT__TAG_RESULT, DT__TAG_OUTPUTS, DT__TAG_STOP };
enum { DT__OUTPUTS_AT_ONCE = 1 << 22 }; /* floats in a message */

/* Trains a trial. *out: (floats) outputs of its best model for the held-out rows, in the space of
 * dt__model_to_mean; the caller frees them. Collective over the team. */
void dt__unit_run(const struct dt__search *search, const struct dt__assignment *order,
                  struct dt__result *result, float **out);
/* Trains assigned units until the leader ends the search. */
void dt__team_serve(const struct dt__search *search);

/* ---- journal.c: search.jsonl ---------------------------------------------------------------- */

struct dt__verdict {
    bool known;
    char status[16]; /* "completed", "diverged", "memory", "failed" */
    double score;    /* rounded to 6 digits; infinite unless completed */
};
struct dt__journal {
    int fd;
    char path[4096];
    struct dt__verdict *first, *whole; /* (trials) verdicts after search.first_epochs, and at the
                                        * end */
    int trials;
    bool finished;            /* the trials that continue are chosen */
    char data[DT__DATA_TEXT]; /* checksums of the search that wrote it; "": not recorded */
    bool reported;            /* a "final" line follows it */
    double secs;              /* of training, in all trials of the journal */
    char *ensemble;           /* the last line of kind "ensemble"; NULL: there is none */
};
/* Opens the journal for appending, and reads the decisions in it; a torn last line is cut.
 * DT_EFORMAT: a line that no search writes. */
dt_status dt__journal_open(const char *dir, int trials, struct dt__journal *out);
void dt__journal_close(struct dt__journal *journal);
/* Ends a line with the time, and appends it durably. */
dt_status dt__journal_add(struct dt__journal *journal, struct dt_json *line);
/* Returns the score rounded to six digits, at which scores are compared. */
double dt__score_round(double score);

/* ---- ensemble.c ----------------------------------------------------------------------------- */

/* Data for scores: the loss of the held-out rows of all folds. */
struct dt__scorer {
    struct dt_model *model; /* of the trials' task; NULL: not created yet */
    bool root;              /* scores are roots of squared errors */
    struct dt_batch *truth; /* (folds) labels or targets of all held-out rows */
    uint64_t rows;          /* of all folds */
};
dt_status dt__scorer_make(const struct dt__search *search, const struct dt_checkpoint *like,
                          struct dt__scorer *out);
void dt__scorer_free(struct dt__scorer *scorer, int folds);
/* Computes the score of the mean of outputs, one array per fold. DT_EMEMORY. */
dt_status dt__scorer_score(const struct dt__search *search, const struct dt__scorer *scorer,
                           float *const *mean, double *out);

/* Computes the score of the constant with the least loss on the training rows. */
dt_status dt__scorer_baseline(const struct dt__search *search, const struct dt__scorer *scorer,
                              double *out);
/* Computes the score of a model, at a path for dt_predictor_open, on other rows. */
dt_status dt__model_score(const struct dt__search *search, const struct dt__scorer *scorer,
                          const char *path, const struct dt_source *rows, double *out);

/* Chosen trials, in the order of the choice. */
struct dt__members {
    int *trial;
    int count;
    double score; /* of their mean */
};
/* Returns true if a trial is a member. */
bool dt__members_have(const struct dt__members *members, int trial);
/* Chooses members among the verdicts. */
dt_status dt__members_choose(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__verdict *verdict, struct dt__members *out);
/* Writes the members' model below DIR/export/best. */
dt_status dt__members_export(const struct dt__search *search, const struct dt__scorer *scorer,
                             const struct dt__members *members);
/* Reads the outputs of a trial from the leader's files. */
dt_status dt__outputs_read(const struct dt__search *search, const struct dt__scorer *scorer,
                           int trial, int fold, float **out);
struct dt__path dt__outputs_path(const struct dt__search *search, int trial, int fold);

#endif
