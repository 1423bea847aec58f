/* Prints the records of a run directory, during the run or afterwards:
 *     cc history.c $(pkg-config --cflags --libs dtrain) -o history
 *     ./history RUN_DIR */
#include <dtrain/dtrain.h>

#include <stdio.h>

static void print_evaluations(const struct dt_history *history)
{
    size_t best;
    double value;
    for (size_t i = 0; i < dt_history_count(history, DT_RECORD_EVAL); i++)
        printf("step %.0f: loss %g\n", dt_history_real(history, DT_RECORD_EVAL, i, "step"),
               dt_history_real(history, DT_RECORD_EVAL, i, "loss"));
    if (dt_history_best(history, &best, &value))
        printf("best: %g at step %.0f\n", value,
               dt_history_real(history, DT_RECORD_EVAL, best, "step"));
}

int main(int argc, char **argv)
{
    struct dt_history *history;
    if (argc != 2) {
        fprintf(stderr, "usage: history RUN_DIR\n");
        return 2;
    }
    dt_status status = dt_history_read(argv[1], &history);
    if (!status) {
        /* A program that follows a run calls this every second or so. */
        status = dt_history_update(history);
        if (!status) {
            const char *mode = dt_history_text(history, DT_RECORD_START, 0, "mode");
            const char *rate = dt_history_option(history, "train.lr");
            printf("%s, %s, train.lr %s\n", dt_history_status(history), mode ? mode : "?",
                   rate ? rate : "?");
            print_evaluations(history);
            printf("training loss: %g\n", dt_history_last(history, DT_RECORD_TRAIN, "loss"));
        }
        dt_history_free(history);
    }
    if (status) fprintf(stderr, "%s\n", dt_error_text());
    return dt_status_exit_code(status);
}
