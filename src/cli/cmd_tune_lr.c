/* `dtrain tune-lr`: runs the learning-rate range test, draws its curve in characters, and suggests
 * a rate. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "state/directory.h"
#include "train/train.h"

enum { WIDTH = 64, HEIGHT = 14 };

/* Draws the curve: o marks the least loss, x the suggestion. Rows go from the largest loss to the
 * smallest; a loss far above the first one is drawn in the top row. */
static void curve_draw(const struct dt_lr_test *test)
{
    char cell[HEIGHT][WIDTH + 1];
    double low = test->smooth[test->least];
    double high = test->smooth[0] + 0.2 * fabs(test->smooth[0]); /* fabs: a loss may be negative */
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x <= WIDTH; x++)
            cell[y][x] = x < WIDTH ? ' ' : 0;
    int suggested = test->rises ? -1 : 0;
    while (suggested >= 0 && test->lr[suggested] < test->suggest)
        suggested++;
    for (int i = 0; i < test->points; i++) {
        double up = (test->smooth[i] - low) / (high - low + 1e-12);
        int x = i * (WIDTH - 1) / (DT_LR_TEST_STEPS - 1);
        int y = HEIGHT - 1 - (int)((up < 1 ? up : 1) * (HEIGHT - 1));
        if (i == test->least || i == suggested)
            cell[y][x] = i == test->least ? 'o' : 'x';
        else if (cell[y][x] == ' ')
            cell[y][x] = '*';
    }
    for (int y = 0; y < HEIGHT; y++)
        printf("%10.4g |%s\n", high - (high - low) * y / (HEIGHT - 1), cell[y]);
    printf("%10s +", "loss");
    for (int x = 0; x < WIDTH; x++)
        putchar('-');
    printf("\n%11s %-8g%*s%g\n", "rate (log)", test->lr[0], WIDTH - 10, "", 10.0);
}

/* Prints the curve and the suggestion. preset: the test used the preset, which a given rate would
 * turn off, so the suggestion also turns it on. */
static void test_print(const struct dt_lr_test *test, const struct dt_config *config, bool preset)
{
    const char *normalise =
        config->data.normalize == DT_NORMALIZE_NONE ? "data.normalize=standard, or " : "";
    struct dt_optimizer linear;
    dt__optimizer_init(&linear, config, true);
    /* Rate of the linear path as a fraction of the main rate; 0: it does not depend on it. */
    const double wide = linear.own_rates ? 0 : config->train.wide_lr / config->train.lr;
    curve_draw(test);
    if (test->rises) {
        printf("the loss rises from the start: no rate to suggest\n");
        dt__warn("no rate made the loss fall: try %sother columns (dtrain inspect shows them)",
                 normalise);
        return;
    }
    if (test->flat)
        dt__warn("the loss falls by less than 2 %%: the suggestion is weak; try %sa larger "
                 "train.batch",
                 normalise);
    printf("o: least loss %.4g at a rate of %.3g; x: suggested, well below that:\n",
           test->smooth[test->least], test->lr[test->least]);
    printf("train.lr=%.2g", test->suggest);
    if (wide > 0) printf(" train.wide_lr=%.2g", test->suggest * wide);
    printf("%s\n", preset ? " run.preset=table" : "");
}

/* Runs the test in a directory that is removed afterwards. It is made in the working directory or,
 * if that is not possible, in the directory for temporary files. */
static dt_status tune(struct dt_world *world, struct dt_config *config)
{
    struct dt_lr_test test;
    const bool bank = world->is_bank;
    const char *temporary = dt__temporary_dir();
    char scratch[PATH_MAX] = "tune-lr.XXXXXX";
    dt_status status = DT_OK;
    if (dt__log_get_level() == DT_LOG_INFO)
        dt_log_set_level(DT_LOG_WARN); /* without the messages of the test's run */
    if (bank && !mkdtemp(scratch)) {
        snprintf(scratch, sizeof scratch, "%.4000s/tune-lr.XXXXXX", temporary);
        if (!mkdtemp(scratch)) {
            *scratch = '\0';
            status =
                dt_fail(DT_EIO, "cannot make a directory for the test's run here, nor in %s: %s",
                        temporary, strerror(errno));
        }
    }
    status = dt__ranks_agree(world->all, status);
    if (!status) status = dt__lr_test(world, config, bank ? scratch : "", &test);
    const bool given = dt__config_is_given(config, "run.preset");
    if (!status && bank) test_print(&test, config, config->run.preset == DT_PRESET_TABLE && !given);
    if (bank && *scratch) dt__path_remove(scratch);
    return status;
}

dt_status cmd_tune_lr(int argc, char **argv)
{
    return cli_in_world(tune, argc, argv);
}
