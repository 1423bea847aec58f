/* All pairs of settings: each pair of AXES either goes together or is refused by the rules of src/config/check.c.
 *
 * What is refused is one line that names a key of either side, before anything has begun. What is allowed is covered
 * by as few runs as a greedy search finds: each begins with a pair that is not covered yet, and takes of each other
 * axis the value with the most such pairs that the rules let it have. Each sync run is made by one process, by one
 * that stops after a step and by three that go on from there, and by three on two hosts: the same bits, but for
 * train.exchange=reduce, which promises them for the same ranks alone. Each async run applies as many gradients as
 * its epochs have.
 *
 * Would catch: a pair that the rules allow and that a start refuses, that crashes, diverges or has other bits in one
 * place; a setting that a checkpoint forgets beside another one; a rule that names one key alone. */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/world.h"
#include "dtrain/dtrain.h"
#include "mpi/expect.h"

/* ---- settings ------------------------------------------------------------------------------- */

enum { MOST_VALUES = 11 };

/* Values of an axis: settings, between bars; the first is what the other pairs have. "@" is the directory of the data. */
static const char *const AXES[][MOST_VALUES] = {
    {"data.train=@/rows.csv|model.hidden=7,5|data.weight=w",
     "data.train=@/rows.csv|model.kind=linear|data.ignore=w",
     "data.train=@/rows.csv|model.layers=dense 6 tanh, batchnorm, residual(dense 6 relu), dropout 0.3, layernorm",
     "data.train=@/pictures.csv|data.shape=6x4x2|data.augment=shift 1, flip, noise 0.01|"
     "model.layers=conv 3 3x3 pad same relu, maxpool 2, batchnorm, dense 5 relu",
     "model.task=regress|data.train=@/targets.csv|data.normalize_target=yes|model.hidden=6",
     "data.train=@/rows.svm|model.kind=linear",
     "data.train=@/rows.svm|model.layers=dense 6 relu, batchnorm, dropout 0.2",
     "model.embedding=3|data.train=@/table.csv|model.hidden=6",
     "model.wide=yes|data.train=@/table.csv|model.embedding=2|data.hash_bits=8|model.hidden=6",
     "train.wide_optimizer=ftrl|train.wide_lr=0.1|train.l1=0.01|data.train=@/table.csv|model.embedding=2|model.wide=yes|"
     "model.hidden=5",
     "train.wide_optimizer=adagrad|data.train=@/rows.csv|model.wide=yes|model.hidden=5"},
    {"train.mode=sync", "train.mode=async", "train.mode=async|train.staleness=2|train.staleness_lr=yes",
     "train.mode=async|train.staleness=0", "train.mode=async|train.delay_compensation=0.1",
     "train.mode=async|train.warm_start_steps=3"},
    {"train.exchange=auto", "train.exchange=reduce", "train.exchange=node", "train.exchange=ordered"},
    {"train.local_steps=1", "train.local_steps=2", "train.local_steps=3|train.local_after=2|train.outer_momentum=0",
     "train.overlap=yes|train.local_steps=2|train.outer_lr=0.5"},
    {"train.wire=f32", "train.wire=bf16", "train.wire=q8"},
    {"train.clip_norm=0", "train.clip_norm=0.1"},
    {"train.optimizer=sgd", "train.optimizer=sgd|train.momentum=0", "train.optimizer=nesterov",
     "train.optimizer=adagrad", "train.optimizer=rmsprop", "train.optimizer=adam", "train.optimizer=adamw",
     "train.optimizer=ftrl", "train.l1=0.01|train.optimizer=ftrl"},
    {"train.lazy=no", "train.lazy=yes"},
    {"train.weight_decay=0", "train.weight_decay=0.01"},
    {"run.precision=f32", "run.precision=bf16"},
    {"run.replicas=4|train.groups=2", "run.replicas=1|train.groups=1", "run.replicas=5|train.groups=3",
     "run.replicas=3|train.groups=1"},
    {"train.batch=16", "train.batch=0", "train.batch=6|train.epochs=1"},
    {"run.reproducible=no", "run.reproducible=yes"},
    {"train.schedule=constant", "train.schedule=cosine|train.warmup_steps=2", "train.schedule=linear",
     "train.schedule=exponential|train.decay_steps=2", "train.schedule=step|train.decay_steps=3",
     "train.schedule=plateau|data.eval_fraction=0.25|train.plateau_evals=1"},
    {"eval.batches=0", "data.eval_fraction=0.25|eval.steps=2", "eval.patience=2|data.eval_fraction=0.25",
     "eval.dedicated=yes|data.eval_fraction=0.25"},
    {"data.normalize=none", "data.normalize=standard|data.scale=0.5", "data.normalize=standard|data.clip=1.5",
     "data.normalize=robust"},
    {"train.class_weight=none", "train.class_weight=balanced"},
    {"run.checkpoint_steps=0", "run.checkpoint_steps=1|run.keep=1"},
    {"report.trace=no", "report.trace=yes|report.tensorboard=yes|report.prometheus=@/dtrain.prom"},
};
enum { COUNT = sizeof AXES / sizeof *AXES, MOST_CASES = 300 };

/* One value an axis. */
struct choice {
    int value[COUNT];
};

static char top[64] = "/tmp/dtrain-pairs-XXXXXX";

/* Sets what stands between bars. */
static dt_status set_all(struct dt_config *config, const char *settings)
{
    char one[300];
    for (size_t length; *settings; settings += length + (settings[length] == '|')) {
        length = strcspn(settings, "|");
        const char *at = memchr(settings, '@', length);
        const int before = (int)((at ? at : settings + length) - settings);
        snprintf(one, sizeof one, "%.*s%s%.*s", before, settings, at ? top : "",
                 at ? (int)length - before - 1 : 0, at ? at + 1 : "");
        DT_TRY(dt_config_set(config, one));
    }
    return DT_OK;
}

/* DT_EUSAGE: a rule is broken; the error text is its. */
static dt_status make_config(const struct choice *choice, struct dt_config *config)
{
    dt_status status = dt_config_init(config);
    if (!status) status = set_all(config, "data.header=yes|train.epochs=2|run.log_steps=1|export.latest=no");
    for (int a = 0; a < COUNT && !status; a++)
        status = set_all(config, AXES[a][choice->value[a]]);
    EXPECT(!status, "%s", dt_error_text());
    return dt_config_check(config, 3);
}

static bool is_allowed(const struct choice *choice)
{
    struct dt_config config;
    dt_status status = make_config(choice, &config);
    dt_config_free(&config);
    return !status;
}

/* What a choice has that is not the first of its axis, for who reads a failure. */
static const char *told(const struct choice *choice)
{
    static char text[2000];
    size_t length = 0;
    for (int a = 0; a < COUNT; a++)
        if (choice->value[a] && length < sizeof text)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s ", AXES[a][choice->value[a]]);
    return text;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

/* (values of all axes, twice): the pair needs no run any more. */
static bool is_done[COUNT][MOST_VALUES][COUNT][MOST_VALUES];
static struct choice cases[MOST_CASES];
static int cases_count, refused_count;

static bool has_key_of(const char *text, const char *settings)
{
    char key[64];
    for (; *settings; settings += strcspn(settings, "|"), settings += *settings == '|') {
        snprintf(key, sizeof key, "%.*s", (int)strcspn(settings, "="), settings);
        if (strstr(text, key)) return true;
    }
    return false;
}

/* A start with it is refused on every rank. */
static void expect_refusal(struct dt_world *world, const struct choice *choice, int a, int b)
{
    struct dt_config config;
    char rule[500];
    EXPECT(make_config(choice, &config) == DT_EUSAGE, "%s", told(choice));
    snprintf(rule, sizeof rule, "%s", dt_error_text());
    EXPECT(!strchr(rule, '\n'), "%s", rule);
    EXPECT(has_key_of(rule, AXES[a][choice->value[a]]) && has_key_of(rule, AXES[b][choice->value[b]]),
           "%s and %s: '%s' does not name both", AXES[a][choice->value[a]], AXES[b][choice->value[b]], rule);
    EXPECT(dt_train(world, &config, NULL) == DT_EUSAGE && !strcmp(dt_error_text(), rule), "%s", dt_error_text());
    dt_config_free(&config);
    refused_count++;
}

/* Pairs that the choice would cover with this value of an axis, of those axes that are set. */
static int gain_of(const struct choice *choice, const bool *is_set, int axis, int value)
{
    int gain = 0;
    for (int a = 0; a < COUNT; a++)
        gain += is_set[a] && a != axis && !is_done[a][choice->value[a]][axis][value];
    return gain;
}

/* Gives an axis the value with the greatest gain that is allowed. */
static void choose_value(struct choice *choice, const bool *is_set, int axis)
{
    int best = 0, best_gain = -1;
    for (int v = 0; v < MOST_VALUES && AXES[axis][v]; v++) {
        const int gain = gain_of(choice, is_set, axis, v);
        choice->value[axis] = v;
        if (gain > best_gain && is_allowed(choice)) best = v, best_gain = gain;
    }
    choice->value[axis] = best;
}

/* A case of the pair that stands in the choice, and of as many others as go with it. */
static void add_case(struct choice choice, int a, int b)
{
    bool is_set[COUNT] = {false};
    is_set[a] = is_set[b] = true;
    for (int i = 0; i < COUNT; i++) {
        const int axis = (i + cases_count) % COUNT;
        if (is_set[axis]) continue;
        choose_value(&choice, is_set, axis);
        is_set[axis] = true;
    }
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++)
            is_done[i][choice.value[i]][k][choice.value[k]] = true;
    EXPECT(cases_count < MOST_CASES, "more than %d cases", cases_count);
    if (cases_count < MOST_CASES) cases[cases_count++] = choice;
}

/* Collective: all ranks come to the same cases. */
static void sort_pairs(struct dt_world *world)
{
    for (int a = 0; a < COUNT; a++)
        for (int b = a + 1; b < COUNT; b++)
            for (int v = 0; v < MOST_VALUES && AXES[a][v]; v++)
                for (int w = 0; w < MOST_VALUES && AXES[b][w]; w++) {
                    struct choice pair = {{0}};
                    pair.value[a] = v;
                    pair.value[b] = w;
                    if (is_done[a][v][b][w]) continue;
                    if (is_allowed(&pair))
                        add_case(pair, a, b);
                    else
                        expect_refusal(world, &pair, a, b);
                }
}

/* ---- data ----------------------------------------------------------------------------------- */

enum { ROWS = 48, PICTURE = 48 };

static float noise(int row, int column)
{
    struct dt_rng rng = dt_rng_make(5, DT_STREAM_TEST, (uint64_t)row, 0);
    return (float)(dt_rng_uniform(&rng, (uint64_t)column) - 0.5);
}

static FILE *open_data(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", top, name);
    FILE *file = fopen(path, "w");
    if (!file) MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

static void write_data(void)
{
    static const char *const TEXTS[] = {"red", "green", "blue", "grey", "black"};
    FILE *rows = open_data("rows.csv"), *targets = open_data("targets.csv"), *table = open_data("table.csv");
    FILE *pictures = open_data("pictures.csv"), *sparse = open_data("rows.svm");
    fprintf(rows, "a,b,c,w,y\n");
    fprintf(targets, "a,b,y\n");
    fprintf(table, "size,color,shape,y\n");
    for (int p = 0; p < PICTURE; p++)
        fprintf(pictures, "p%d,", p);
    fprintf(pictures, "y\n");
    for (int r = 0; r < ROWS; r++) {
        const float a = noise(r, 0), b = noise(r, 1);
        const int class = r % 7 == 0 ? 2 : a + b > 0;
        fprintf(rows, "%g,%g,%g,%g,%d\n", a, b, noise(r, 2), 1 + noise(r, 3), class);
        fprintf(targets, "%g,%g,%g\n", a, b, 50 + 3 * a - b);
        fprintf(table, "%g,%s,%s,%s\n", a, TEXTS[r % 5], TEXTS[(r / 3 + class) % 4], TEXTS[class]);
        for (int p = 0; p < PICTURE; p++)
            fprintf(pictures, "%g,", noise(r, p) + (p % 3 == class));
        fprintf(pictures, "%d\n", class);
        fprintf(sparse, "%d", class);
        for (int f = 1 + r % 9, k = 0; k < 4; k++, f += 1 + (r * 31 + k * 97) % 400)
            fprintf(sparse, " %d:%g", f, 1 + noise(r, k));
        fprintf(sparse, " %d:1\n", 1700 + class);
    }
    fclose(rows);
    fclose(targets);
    fclose(table);
    fclose(pictures);
    fclose(sparse);
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* What a run's last record says. */
struct result {
    dt_status status;
    char crc[9];
    double loss, step, sent, applied;
};

static double number_of(const char *json, const char *key)
{
    const char *at = strstr(json, key);
    return at ? strtod(at + strlen(key), NULL) : -1;
}

static void note_final(void *arg, const char *json)
{
    struct result *result = arg;
    const char *crc = strstr(json, "\"params_crc32c\":\"");
    if (!strstr(json, "\"kind\":\"final\"")) return;
    if (crc) memcpy(result->crc, crc + strlen("\"params_crc32c\":\""), 8);
    result->loss = number_of(json, "\"loss\":");
    result->step = number_of(json, "\"step\":");
    result->sent = number_of(json, "\"gradients_sent\":");
    result->applied = number_of(json, "\"gradients_applied\":");
}

static bool stop_at_once(void *arg)
{
    (void)arg;
    return true;
}

/* Case `index` in the directory of a name, e.g. "7-alone"; `more` wins over the case's settings. */
static struct result run(struct dt_world *world, int index, const char *name, const char *more, bool stops)
{
    struct result result = {.status = DT_OK};
    struct dt_train_options options = {.record = note_final, .stop = stops ? stop_at_once : NULL, .arg = &result};
    struct dt_config config;
    char dir[100];
    make_config(&cases[index], &config);
    snprintf(dir, sizeof dir, "run.dir=@/%d-%s", index, name);
    EXPECT(!set_all(&config, dir) && !set_all(&config, more), "%s", dt_error_text());
    result.status = dt_train(world, &config, &options);
    dt_config_free(&config);
    return result;
}

static void expect_end(int index, const char *where, const struct result *result)
{
    EXPECT(result->status == DT_OK, "%d, %s: %s: %s", index, where, dt_error_text(), told(&cases[index]));
    EXPECT(!*result->crc || (isfinite(result->loss) && result->loss >= 0), "%d, %s: loss %g: %s", index, where,
           result->loss, told(&cases[index]));
}

/* How the exchange goes. */
static enum { SYNC, BOUND_0, ASYNC } mode_of(int index)
{
    struct dt_config config;
    make_config(&cases[index], &config);
    const bool async = config.train.mode == DT_MODE_ASYNC, bound_0 = config.train.staleness == 0;
    dt_config_free(&config);
    return !async ? SYNC : bound_0 ? BOUND_0 : ASYNC;
}

/* One process: whole, into alone; and until it is stopped, for others to go on. It has no evaluator and is sync: where
 * the model is measured changes no bit. */
static void run_alone(struct dt_world *self, int index, struct result *alone)
{
    *alone = run(self, index, "alone", "eval.dedicated=no|train.mode=sync", false);
    expect_end(index, "alone", alone);
    if (mode_of(index) != SYNC) return; /* nobody could go on in its mode */
    const struct result stopped = run(self, index, "stopped", "eval.dedicated=no", true);
    EXPECT(stopped.status == DT_STOPPED || stopped.status == DT_OK, "%d, stopped: %s: %s", index,
           dt_error_text(), told(&cases[index]));
}

static void expect_same(int index, const char *where, const struct result *result, const struct result *alone)
{
    struct dt_config config;
    make_config(&cases[index], &config);
    const bool any = config.train.exchange == DT_REDUCER_REDUCE; /* order of the sum */
    dt_config_free(&config);
    expect_end(index, where, result);
    if (!*result->crc) return; /* another rank has the records */
    EXPECT(any || !strcmp(result->crc, alone->crc), "%d, %s: %s, alone %s: %s", index, where, result->crc,
           alone->crc, told(&cases[index]));
    EXPECT(result->step == alone->step, "%d, %s: step %g, alone %g", index, where, result->step, alone->step);
    EXPECT(fabs(result->loss - alone->loss) <= 0.01 * alone->loss, "%d, %s: loss %g, alone %g: %s", index, where,
           result->loss, alone->loss, told(&cases[index]));
}

/* On several hosts some gradients are whole, so that nobody knows which rows a batch touched. */
static bool is_refused_on_hosts(const struct dt_config *config, bool async)
{
    return config->train.lazy && (async || config->train.exchange == DT_REDUCER_NODE);
}

static void run_together(struct dt_world *one, struct dt_world *two, int index, const struct result *alone)
{
    struct dt_config config;
    make_config(&cases[index], &config);
    const bool async = mode_of(index) == ASYNC;
    const bool refused = is_refused_on_hosts(&config, async), may_end_early = config.eval.patience > 0;
    dt_config_free(&config);
    const struct result here = run(one, index, async ? "here" : "stopped", "", false);
    if (async)
        expect_end(index, "one host", &here);
    else
        expect_same(index, "one host, from a stop", &here, alone);
    const struct result there = run(two, index, "there", "", false);
    const bool names = there.status == DT_EUSAGE && strstr(dt_error_text(), "train.lazy=yes: expected");
    if (refused && names) return;
    if (!async) expect_same(index, "two hosts", &there, alone);
    if (!async) return;
    expect_end(index, "two hosts", &there);
    EXPECT(there.sent == there.step && there.applied == there.step && (may_end_early || here.sent == there.sent),
           "%d: %g and %g gradients sent, %g applied: %s", index, here.sent, there.sent, there.applied,
           told(&cases[index]));
}

/* ---- hosts ---------------------------------------------------------------------------------- */

/* Ranks of a host: rank * 2 / size, or in turn, as with `mpirun --map-by node`. */
static enum placing { ONE_HOST, IN_A_ROW, IN_TURN } hosts;

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    int rank, size;
    if (hosts == ONE_HOST) return PMPI_Comm_split_type(comm, type, key, info, out);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return MPI_Comm_split(comm, hosts == IN_TURN ? rank % 2 : rank * 2 / size, key, out);
}

static struct dt_world *attach(MPI_Comm comm, enum placing how)
{
    struct dt_world *world = NULL;
    hosts = how;
    EXPECT(dt_world_attach(&comm, 600, &world) == DT_OK, "%s", dt_error_text());
    hosts = ONE_HOST;
    return world;
}

/* A case's run by one process is one rank's, whose result goes to all. */
int main(int argc, char **argv)
{
    static struct result alone[MOST_CASES];
    int rank, size, total = 0;
    char command[100];
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("OMPI_MCA_osc", "^ucx", 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0 && !mkdtemp(top)) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Bcast(top, sizeof top, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) write_data();
    dt_log_set_level(DT_LOG_ERROR);
    struct dt_world *self = attach(MPI_COMM_SELF, ONE_HOST), *one = attach(MPI_COMM_WORLD, ONE_HOST);
    struct dt_world *two[] = {attach(MPI_COMM_WORLD, IN_A_ROW), attach(MPI_COMM_WORLD, IN_TURN)};
    sort_pairs(one);
    for (int i = rank; i < cases_count; i += size)
        if (mode_of(i) != ASYNC) run_alone(self, i, &alone[i]);
    for (int i = 0; i < cases_count; i++) {
        MPI_Bcast(&alone[i], sizeof *alone, MPI_BYTE, i % size, MPI_COMM_WORLD);
        run_together(one, two[i % 2], i, &alone[i]);
    }
    dt_world_destroy(two[1]);
    dt_world_destroy(two[0]);
    dt_world_destroy(one);
    dt_world_destroy(self);
    MPI_Allreduce(&failures, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    snprintf(command, sizeof command, "rm -r '%s'", top);
    if (rank == 0 && system(command)) total++;
    if (rank == 0)
        printf("%d pairs refused, the others run in %d cases: %s\n", refused_count, cases_count,
               total ? "failed" : "ok");
    MPI_Finalize();
    return total != 0;
}
