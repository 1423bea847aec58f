/* Two runs, one after the other, in a program that has its own MPI: the second has the bits of the
 * first, and the program's MPI still works afterwards. Fails if a run leaves state in the world or
 * the library.
 *
 * A step with more rows than a network takes in one pass may last longer than run.stall_secs.
 *
 * Wrong rows on one rank are an error on all ranks. An error that only the exchange on several
 * hosts, or a step, can detect is also one on the evaluator, with the same text. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "model/model.h"
#include "train/train.h"
#include "mpi/expect.h"

enum { ROWS = 300 };

static char crc[2][9];

static void record_crc(void *arg, const char *json)
{
    const char *at = strstr(json, "\"params_crc32c\":\"");
    if (at) memcpy(arg, at + strlen("\"params_crc32c\":\""), 8);
}

static bool in_turn; /* ranks act as if they alternated between two hosts */

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    int rank;
    if (!in_turn) return PMPI_Comm_split_type(comm, type, key, info, out);
    MPI_Comm_rank(comm, &rank);
    return MPI_Comm_split(comm, rank % 2, key, out);
}

/* Touched rows cannot be exchanged here: async sends whole gradients between hosts. */
static void expect_refusal_on_hosts(const char *dir)
{
    static const char *const SETTINGS[] = {"data.eval_fraction=0.5", "eval.dedicated=yes",
                                           "train.lazy=yes", "train.mode=async", "model.hidden=4"};
    char assignment[200], path[100];
    MPI_Comm comm = MPI_COMM_WORLD;
    struct dt_world *world;
    struct dt_config config;
    int rank;
    MPI_Comm_rank(comm, &rank);
    snprintf(path, sizeof path, "%s.svm", dir);
    FILE *file = rank == 0 ? fopen(path, "w") : NULL;
    for (int i = 0; file && i < ROWS; i++)
        fprintf(file, "%d %d:1 3000:1\n", i % 2, 1 + i);
    if (file) fclose(file);
    in_turn = true;
    EXPECT(dt_world_attach(&comm, 60, &world) == DT_OK, "%s", dt_error_text());
    in_turn = false;
    EXPECT(dt__config_init(&config) == DT_OK, "%s", dt_error_text());
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++)
        EXPECT(dt_config_set(&config, SETTINGS[i]) == DT_OK, "%s", dt_error_text());
    snprintf(assignment, sizeof assignment, "data.train=%s", path);
    EXPECT(dt_config_set(&config, assignment) == DT_OK, "%s", dt_error_text());
    snprintf(assignment, sizeof assignment, "run.dir=%s", dir);
    EXPECT(dt_config_set(&config, assignment) == DT_OK, "%s", dt_error_text());
    EXPECT(dt_train(world, &config, NULL) == DT_EUSAGE, "%s", dt_error_text());
    EXPECT(strstr(dt_error_text(), "train.lazy=yes: expected"), "%s", dt_error_text());
    dt__config_free(&config);
    dt_world_destroy(world);
}

static dt_status train(struct dt_world *world, const char *dir, const struct dt_arrays *rows,
                       char *out)
{
    static const char *const SETTINGS[] = {"model.hidden=4", "train.epochs=2", "train.batch=50",
                                           "eval.steps=-1"};
    struct dt_train_options options = {
        .size = sizeof(struct dt_train_options), .train = rows, .record = record_crc, .arg = out};
    struct dt_config config;
    char assignment[200];
    EXPECT(dt__config_init(&config) == DT_OK, "%s", dt_error_text());
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++)
        EXPECT(dt_config_set(&config, SETTINGS[i]) == DT_OK, "%s", dt_error_text());
    snprintf(assignment, sizeof assignment, "run.dir=%s", dir);
    EXPECT(dt_config_set(&config, assignment) == DT_OK, "%s", dt_error_text());
    dt_status status = dt_train(world, &config, &options);
    dt__config_free(&config);
    return status;
}

/* A loss that takes half a second for each pass of a network, 4,096 rows. */
static double slow_loss(void *arg, int n, const float *outputs, const float *targets,
                        float *gradient)
{
    enum { AT_ONCE = 4096 };
    if ((*(long *)arg)++ % AT_ONCE == 0) usleep(500000);
    for (int i = 0; i < n; i++)
        gradient[i] = outputs[i] - targets[i];
    return 0;
}

static void expect_long_step(struct dt_world *world, const char *dir)
{
    enum { MANY = 2 * 5 * 4096 }; /* rows for both workers */
    static float x[MANY];
    long losses = 0;
    const struct dt_arrays rows = {.size = sizeof(struct dt_arrays),
                                   .rows = MANY,
                                   .features = 1,
                                   .targets = 1,
                                   .x = x,
                                   .target = x};
    const struct dt_train_options options = {.size = sizeof(struct dt_train_options),
                                             .train = &rows,
                                             .loss = slow_loss,
                                             .loss_arg = &losses};
    static const char *const SETTINGS[] = {"model.task=regress", "model.kind=linear",
                                           "train.batch=0", "train.max_steps=1",
                                           "run.stall_secs=1.5"};
    struct dt_config config;
    char assignment[200];
    for (int i = 0; i < MANY; i++)
        x[i] = (float)(i % 7);
    EXPECT(dt__config_init(&config) == DT_OK, "%s", dt_error_text());
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++)
        EXPECT(dt_config_set(&config, SETTINGS[i]) == DT_OK, "%s", dt_error_text());
    snprintf(assignment, sizeof assignment, "run.dir=%s", dir);
    EXPECT(dt_config_set(&config, assignment) == DT_OK, "%s", dt_error_text());
    EXPECT(dt_train(world, &config, &options) == DT_OK, "%s", dt_error_text());
    dt__config_free(&config);
}

/* Only one rank passes an option, which must be an error. */
static void expect_same_options(struct dt_world *world, const char *dir,
                                const struct dt_arrays *rows)
{
    static long losses;
    struct dt_train_options given[] = {{.train = rows, .eval = rows},
                                       {.train = rows, .loss = slow_loss, .loss_arg = &losses},
                                       {.train = rows}};
    char settings[200], message[60];
    struct dt_config config;
    for (int i = 0; i < 3; i++)
        given[i].size = sizeof given[i];
    snprintf(settings, sizeof settings, "run.dir=%s\nmodel.hidden=4", dir);
    for (int i = 0; i < 4; i++) {
        const int odd = i % 2 * 2; /* the rank that passes the option */
        EXPECT(!dt__config_init(&config) && !dt_config_read_text(&config, "settings", settings),
               "%s", dt_error_text());
        EXPECT(dt_train(world, &config, &given[world->rank == odd ? i / 2 : 2]) == DT_EUSAGE, "%s",
               dt_error_text());
        snprintf(message, sizeof message, "%s: given on rank %d but not on rank %d",
                 i / 2 ? "loss" : "eval", odd, odd ? 0 : 1);
        EXPECT(strstr(dt_error_text(), message), "%s", dt_error_text());
        dt__config_free(&config);
    }
}

static bool saves_late; /* files of this rank take long to reach the disk */

int fsync(int fd)
{
    if (saves_late) sleep(1);
    return (int)syscall(SYS_fsync, fd);
}

static void count_evaluations(void *arg, const char *json)
{
    *(int *)arg += strstr(json, "\"kind\":\"eval\"") != NULL;
}

/* A program that trains on one rank may ask for a stop in the middle of a round of local steps,
 * here of 50 s. Like one of many ranks, it must not wait for the end of the round. */
static bool stop_at_once(void *arg)
{
    (void)arg;
    return true;
}

static void expect_stop_in_round(const char *dir, const struct dt_arrays *rows)
{
    static const char *const SETTINGS =
        "train.local_steps=1000\ntrain.groups=2\nrun.replicas=2\ntrain.epochs=1000\n"
        "test.round_secs=0.5\ntest.slow_rank=0\ntest.slow_secs=0.05\n";
    const struct dt_train_options options = {
        .size = sizeof(struct dt_train_options), .train = rows, .stop = stop_at_once};
    const MPI_Comm comm = MPI_COMM_SELF;
    struct dt_world *world;
    struct dt_config config;
    char settings[400];
    const double start = dt__clock_secs();
    snprintf(settings, sizeof settings, "run.dir=%s\n%s", dir, SETTINGS);
    EXPECT(dt_world_attach(&comm, 60, &world) == DT_OK, "%s", dt_error_text());
    EXPECT(!dt__config_init(&config) && !dt_config_read_text(&config, "settings", settings), "%s",
           dt_error_text());
    EXPECT(dt_train(world, &config, &options) == DT_STOPPED, "%s", dt_error_text());
    EXPECT(dt__clock_secs() - start < 20, "a stop took %g s", dt__clock_secs() - start);
    dt__config_free(&config);
    dt_world_destroy(world);
}

static void count_first_saves(void *arg, const char *json)
{
    *(int *)arg += strstr(json, "\"kind\":\"checkpoint\"") && strstr(json, "\"step\":0,");
    record_crc((char *)arg + sizeof(int), json);
}

/* A search: ranks divide into worlds that train at the same time, run after run, each in its own
 * directory. All end with the same bits, whatever the number of ranks, and none saves step 0. Fails
 * if worlds or runs share state. */
static void expect_trials(int rank, const char *top, const struct dt_arrays *rows)
{
    enum { TRIALS = 3 };
    struct trial {
        int first_saves;
        char crc[12];
    } trial[TRIALS] = {{0}}, first;
    MPI_Comm comm;
    struct dt_world *world;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &comm);
    EXPECT(dt_world_attach(&comm, 60, &world) == DT_OK, "%s", dt_error_text());
    for (int i = 0; i < TRIALS; i++) {
        const struct dt__train_options options = {
            .train = rows, .record = count_first_saves, .arg = &trial[i], .no_first_save = true};
        char settings[300];
        struct dt_config config;
        snprintf(
            settings, sizeof settings,
            "run.dir=%s/"
            "trial-%d-%d\nrun.replicas=2\nmodel.hidden=4\ntrain.epochs=5\ndata.eval_fraction=0.2\n"
            "train.batch=%d",
            top, rank > 0, i, i == 1 ? 10 : 50);
        EXPECT(!dt__config_init(&config) && !dt_config_read_text(&config, "settings", settings),
               "%s", dt_error_text());
        EXPECT(dt__train(world, &config, &options) == DT_OK, "%s", dt_error_text());
        EXPECT(trial[i].first_saves == 0, "trial %d saved step 0", i);
        dt__config_free(&config);
    }
    dt__world_rest(world, false);
    dt_world_destroy(world);
    MPI_Comm_free(&comm);
    memcpy(&first, &trial[0], sizeof first);
    MPI_Bcast(&first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT(rank > 1 || !strcmp(first.crc, trial[0].crc), "worlds differ: %s, %s", first.crc,
           trial[0].crc);
    EXPECT(rank > 1 || !strcmp(trial[2].crc, trial[0].crc), "runs differ: %s, %s", trial[2].crc,
           trial[0].crc);
    EXPECT(rank > 1 || (*first.crc && strcmp(trial[1].crc, trial[0].crc)),
           "another batch has no other bits");
}

/* A run fails while its evaluator exports step 0. That result must not reach the next run, whose
 * evaluator measures only its own last step. */
static void expect_own_evaluation(struct dt_world *world, char dir[2][80],
                                  const struct dt_arrays *rows)
{
    static const char *const
        FAILS = "train.lr=1e9\ntrain.weight_decay=1e9\ntest.slow_rank=1\ntest.slow_secs=0.3\n",
        *const ENDS = "eval.start_delay_secs=1000\ntrain.epochs=1\n";
    int evaluations = 0;
    for (int i = 0; i < 2; i++) {
        struct dt_train_options options = {.size = sizeof(struct dt_train_options),
                                           .train = rows,
                                           .record = count_evaluations,
                                           .arg = &evaluations};
        struct dt_config config;
        char settings[400];
        snprintf(settings, sizeof settings,
                 "run.dir=%s\nrun.preset=none\neval.dedicated=yes\ndata.eval_fraction=0.2\ntrain."
                 "optimizer=sgd\n%s",
                 dir[i], i ? ENDS : FAILS);
        EXPECT(!dt__config_init(&config) && !dt_config_read_text(&config, "settings", settings),
               "%s", dt_error_text());
        evaluations = 0;
        saves_late = world->rank == 2 && i == 0;
        const dt_status status = dt_train(world, &config, &options);
        EXPECT(status == (i ? DT_OK : DT_ENUMERIC), "%s", dt_error_text());
        EXPECT(i || strstr(dt_error_text(), "lower train.lr"), "the error gives no advice: %s",
               dt_error_text());
        dt__config_free(&config);
    }
    EXPECT(evaluations == (world->rank == 0), "%d evaluations", evaluations);
}

int main(int argc, char **argv)
{
    static float x[ROWS];
    static int32_t label[ROWS];
    char top[64], dir[8][80], command[100];
    struct dt_world *world;
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank, total = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    const char *scratch = getenv("SCRATCH");
    snprintf(top, sizeof top, "%s/dtrain-runs-XXXXXX", scratch ? scratch : "/tmp");
    if (rank == 0 && !mkdtemp(top)) MPI_Abort(comm, 1);
    MPI_Bcast(top, sizeof top, MPI_CHAR, 0, comm);
    for (int i = 0; i < 8; i++)
        snprintf(dir[i], sizeof dir[i], "%s/%d", top, i);
    for (int i = 0; i < ROWS; i++) {
        x[i] = (float)(i % 17) - 8;
        label[i] = i % 17 > 8;
    }
    struct dt_arrays rows = {
        .size = sizeof(struct dt_arrays), .rows = ROWS, .features = 1, .x = x, .label = label};
    dt_log_set_level(DT_LOG_WARN);
    EXPECT(dt_world_attach(&comm, 60, &world) == DT_OK, "%s", dt_error_text());
    for (int i = 0; i < 2; i++)
        EXPECT(train(world, dir[i], &rows, crc[i]) == DT_OK, "%s", dt_error_text());
    EXPECT(rank != 0 || (strlen(crc[0]) == 8 && strcmp(crc[0], crc[1]) == 0), "%s",
           dt_error_text());
    if (rank == 1) rows.rows--;
    EXPECT(train(world, dir[2], &rows, crc[0]) == DT_EMISMATCH, "%s", dt_error_text());
    EXPECT(strstr(dt_error_text(), "differ from rank 0's") != NULL, "%s", dt_error_text());
    rows.rows = ROWS; /* one rank has another value; then all have it, in a run that continues */
    if (rank == 1) x[7] += 1;
    EXPECT(train(world, dir[2], &rows, crc[0]) == DT_EMISMATCH, "%s", dt_error_text());
    EXPECT(strstr(dt_error_text(), "differ from rank 0's") != NULL, "%s", dt_error_text());
    if (rank != 1) x[7] += 1;
    EXPECT(train(world, dir[0], &rows, crc[0]) == DT_EMISMATCH, "%s", dt_error_text());
    x[7] -= 1;
    expect_long_step(world, dir[4]);
    expect_same_options(world, dir[2], &rows);
    rows.rows = ROWS;
    expect_own_evaluation(world, dir + 5, &rows);
    dt_world_destroy(world);
    if (rank == 0) expect_stop_in_round(dir[7], &rows);
    expect_trials(rank, top, &rows);
    expect_refusal_on_hosts(dir[3]);
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, comm);
    snprintf(command, sizeof command, "rm -r '%s'", top);
    if (rank == 0 && system(command)) total++;
    if (rank == 0) printf("%s\n", total ? "failed" : "ok");
    MPI_Finalize();
    return total != 0;
}
