/* A search from its start to its end: what all ranks do together. */
#include "search/search.h"
#include "train/certify.h"

#include <string.h>

#include "base/internal.h"
#include "search/leader.h"
#include "state/directory.h"
#include "train/train.h"

/* ---- the configuration ---------------------------------------------------------------------- */

static const double USUAL_FRACTION = 0.2; /* held-out fraction if none is configured */
static const char USUAL_TEXT[] = "data.eval_fraction=0.2";

/* Checks the keys that matter to a search, against each other and the number of ranks. */
static dt_status config_check(const struct dt_config *config, int size)
{
    const int64_t folds = config->search.folds, ranks = config->search.ranks;
    const struct {
        bool wrong;
        const char *text;
    } rules[] = {
        {!*config->run.dir, "run.dir: expected a directory's name"},
        {folds == 1 || (folds && config->data.folds),
         "search.folds: expected 0, or at least 2, without data.folds"},
        {folds && (*config->data.eval || config->data.eval_fraction > 0),
         "search.folds and data.eval or data.eval_fraction: expected one of them: each fold is "
         "held out in turn"},
        {config->train.mode == DT_MODE_ASYNC,
         "train.mode=async: the weights of a trial would depend on timing; expected sync"},
        {config->eval.dedicated, "eval.dedicated=yes: trials evaluate in place; expected no"},
        {config->search.finish && !config->search.first_epochs,
         "search.finish: expected search.first_epochs as well"},
        {strcmp(config->run.resume, "auto") && strcmp(config->run.resume, "never"),
         "run.resume: expected auto or never: a search continues from its own trials"},
        {size == 1 && ranks > 1, "search.ranks: expected 1 in a process alone (mpirun -np N)"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].wrong) return dt_fail(DT_EUSAGE, "%s", rules[i].text);
    if (size == 1 || (size - 1) % ranks == 0) return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "search.ranks=%lld: rank 0 leads, the other %d ranks form teams: expected a "
                   "divisor of %d",
                   (long long)ranks, size - 1, size - 1);
}

/* Rank 0: checks the configuration, and decides run.preset=auto, since all trials have the same
 * preset. */
static dt_status config_resolve(struct dt_config *config, int size)
{
    char preset[32], word[16];
    DT_TRY(config_check(config, size));
    if (!config->search.folds && !*config->data.eval && !(config->data.eval_fraction > 0)) {
        config->data.eval_fraction = USUAL_FRACTION;
        DT_TRY(dt_config_set(config, USUAL_TEXT));
        dt__info("%s: a fifth of the rows chooses among the trials", USUAL_TEXT);
    }
    if (config->run.preset == DT_PRESET_AUTO) {
        const bool given = dt__config_is_given(config, "train.optimizer") ||
                           dt__config_is_given(config, "train.lr");
        const bool table = dt__data_trains_on_table(config) && !given;
        (void)snprintf(
            preset, sizeof preset, "run.preset=%s",
            dt__config_choice(DT_PRESET_CHOICES, table ? DT_PRESET_TABLE : DT_PRESET_NONE, word));
        DT_TRY(dt_config_set(config, preset));
    }
    return DT_OK;
}

/* Broadcasts rank 0's configuration, unless `status` is a failure on some rank. Collective. */
static dt_status config_send(const struct dt_world *world, struct dt_config *config,
                             dt_status status)
{
    void *bytes = NULL;
    size_t length = 0;
    if (world->rank == 0 && !status) status = dt__config_pack(config, &bytes, &length);
    DT_GUARD(dt__ranks_agree(world->all, status));
    DT_GUARD(dt__ranks_bcast_blob(world->all, &bytes, &length, 0));
    if (world->rank != 0) status = dt__config_unpack(config, bytes, length);
    status = dt__ranks_agree(world->all, status);
done:
    dt_free(bytes);
    return status;
}

/* ---- the directory -------------------------------------------------------------------------- */

static struct dt__path config_path(const struct dt_config *config)
{
    return dt__path("%s/config.ini", config->run.dir);
}

/* Returns true if the run directory holds a search. */
static bool search_exists(const struct dt_config *config)
{
    return dt__path_exists(dt__path("%s/search.jsonl", config->run.dir).text) &&
           dt__path_exists(config_path(config).text);
}

/* Rank 0: locks the run directory, checks that a search in it is the same search, and writes
 * config.ini. It lists only the given keys, since each trial's preset decides the others. */
static dt_status directory_take(const struct dt_config *config, int *lock)
{
    const char *dir = config->run.dir;
    const struct dt__path path = config_path(config);
    struct dt_config before;
    char *text = NULL;
    DT_TRY(dt__dir_make(dir));
    DT_TRY(dt__lock_take(dir, lock));
    if (search_exists(config)) {
        if (!strcmp(config->run.resume, "never"))
            return dt_fail(DT_EMISMATCH, "%s: there is a search, and run.resume=never", dir);
        DT_TRY(dt__config_init(&before));
        dt_status status = dt_config_read_file(&before, path.text);
        if (!status) status = dt__config_match_search(&before, config);
        dt__config_free(&before);
        if (status) return dt_fail_prefix(status, "%s: ", dir);
    } else if (dt__path_exists(dt__path("%s/metrics.jsonl", dir).text)) {
        return dt_fail(DT_EIO, "%s: holds a run, not a search: expected another run.dir", dir);
    }
    DT_TRY(dt__config_given_text(config, &text));
    const dt_status status = dt__file_write(path.text, text, strlen(text), NULL, NULL);
    dt_free(text);
    return status;
}

/* Locks the run directory, and checks that every rank sees it. Collective. */
static dt_status directory_share(const struct dt__search *search, int *lock)
{
    const struct dt_world *world = search->world;
    const char *dir = search->config->run.dir;
    char holder[DT_LOCK_HOLDER] = "";
    dt_status status = world->rank == 0 ? directory_take(search->config, lock) : DT_OK;
    DT_TRY(dt__ranks_agree(world->all, status));
    if (world->rank == 0) dt__lock_holder(dir, holder);
    dt__ranks_bcast(world->all, holder, sizeof holder, 0);
    status = dt__lock_seen(dir, holder, world->host_name[world->rank], world->host_name[0]);
    return dt__ranks_agree(world->all, status);
}

/* ---- rows and space ------------------------------------------------------------------------- */

/* Reads the rows of a source into shared memory of each host, from which all its teams take them.
 * If this is not possible, each team reads the rows itself. Collective. */
static dt_status rows_lend(struct dt__search *search, struct dt_source *rows, int number)
{
    struct dt_world *world = search->world;
    bool first = false;
    if (!rows) return DT_OK;
    const size_t bytes = dt__borrowed_rows_bytes(rows);
    if (dt__world_share(world, bytes, "rows of data", &search->memory[number], &first)) {
        if (world->rank == 0) dt__warn("%s: each team reads the rows itself", dt_error_text());
        return DT_OK;
    }
    void *memory = dt__shared_memory(search->memory[number]);
    const dt_status status = memory && first ? dt__borrowed_rows_fill(rows, memory) : DT_OK;
    DT_TRY(dt__ranks_agree(world->all, status));
    dt__borrowed_rows_attach(rows, memory);
    return DT_OK;
}

/* Surveys and reads the rows as the first trial would, but with quantiles of numbers, since some
 * trials may need them. Collective. */
static dt_status rows_share(struct dt__search *search, struct dt_source **rows,
                            struct dt_source **held_out)
{
    struct dt_config config;
    dt_status status = dt__config_copy(search->config, &config);
    if (!status) status = dt__config_resolve(&config, false); /* the preset is already chosen */
    if (config.data.encode == DT_ENCODE_AUTO) config.data.encode = DT_ENCODE_NORMAL;
    status = dt__ranks_agree(search->world->all, status);
    if (!status) status = dt__data_share(search->world, &config, NULL, rows, held_out);
    if (!status) status = rows_lend(search, *rows, 0);
    if (!status && *config.data.eval) status = rows_lend(search, *held_out, 1);
    if (!status && *held_out && !*config.data.eval)
        dt__borrowed_rows_attach(*held_out, dt__shared_memory(search->memory[0]));
    dt__config_free(&config);
    return status;
}

/* Rank 0: writes checksums of the files that were surveyed. */
static dt_status data_sum(const struct dt_source *rows, const struct dt_source *held_out,
                          char out[DT__DATA_TEXT])
{
    uint32_t content, other = 0;
    DT_TRY(dt__source_content(rows, &content));
    if (held_out) DT_TRY(dt__source_content(held_out, &other));
    (void)snprintf(out, DT__DATA_TEXT, "%08x-%08x-%08x", dt__source_crc(rows), content, other);
    return DT_OK;
}

static dt_status folds_make(struct dt__search *search)
{
    const struct dt_config *config = search->config;
    struct dt_source *rows = NULL, *held_out = NULL;
    search->folds = config->search.folds ? (int)config->search.folds : 1;
    DT_TRY(dt__alloc((size_t)search->folds, sizeof *search->fold, "folds", &search->fold));
    dt_status status = rows_share(search, &rows, &held_out);
    if (!status && search->world->rank == 0) status = data_sum(rows, held_out, search->data);
    for (int f = 0; f < search->folds && !status; f++) {
        struct dt__fold *fold = &search->fold[f];
        if (config->search.folds) {
            status = dt__source_fold(rows, f, DT__TRAIN, &fold->rows);
            if (!status) status = dt__source_fold(rows, f, DT__HELD_OUT, &fold->held_out);
        } else {
            status = dt__source_copy(rows, &fold->rows);
            if (!status) status = dt__source_copy(held_out, &fold->held_out);
        }
    }
    dt__source_destroy(held_out);
    dt__source_destroy(rows);
    return dt__ranks_agree(search->world->all, status);
}

/* Returns true if trial 1 should be linear: unless the configuration is linear itself, or the layer
 * would be large. */
static bool linear_pays(const struct dt__search *search)
{
    const double MOST_WEIGHTS = 1e7;
    const struct dt_config *config = search->config;
    const struct dt_schema *schema = dt__source_schema(search->fold[0].rows);
    const char *reason = NULL;
    if (config->model.kind == DT_KIND_LINEAR || !strcmp(config->model.layers, "linear"))
        reason = "the configuration is linear";
    else if ((double)schema->features * dt__schema_nout(schema) > MOST_WEIGHTS)
        reason = "it would have more than 10 million weights";
    if (reason && search->world->rank == 0) dt__info("there is no linear trial: %s", reason);
    return !reason;
}

/* Checks the settings of all trials before the first one trains. */
static dt_status trials_check(const struct dt__search *search)
{
    for (int t = 0; t < search->config->search.trials; t++) {
        struct dt_config config;
        DT_TRY(dt__trial_config(search, t, 0, 0, &config));
        dt_status status = dt__config_resolve(&config, false);
        if (!status) status = dt__config_check(&config, (int)config.search.ranks);
        if (!status) status = dt__model_resolve(&config);
        dt__config_free(&config);
        if (status) return dt_fail_prefix(status, "trial %d: ", t);
    }
    return DT_OK;
}

/* Checks now that calibration will have the data that it needs at the end: rows of both classes, or
 * enough rows for intervals. */
static dt_status certainty_check(const struct dt__search *search)
{
    const struct dt_config *config = search->config;
    const struct dt__fold *fold = search->fold;
    struct dt_certainty certainty;
    struct dt_source *test;
    DT_TRY(dt__certainty_begin(config, dt__source_schema(fold->rows), &certainty));
    DT_TRY(dt__source_side(fold->rows, DT__TEST, &test));
    if (config->predict.interval > 0 && !test && !config->search.folds)
        return dt_fail(DT_EUSAGE, "predict.interval: expected data.test_fraction or search.folds");
    /* with folds, each row is held out once */
    const uint64_t residuals = test ? dt__source_rows(test)
                                    : dt__source_rows(fold->rows) + dt__source_rows(fold->held_out);
    dt__source_destroy(test);
    return dt__certainty_check(config, config->search.folds ? NULL : fold->held_out, residuals);
}

/* Rank 0: sets search.space, which is not given, to that of the search to resume or, for a new
 * search, to the default. It does so even if no trial draws, since a later search may have more
 * trials. */
static dt_status space_choose(const struct dt__search *search, struct dt_config *config)
{
    char *text = NULL, *pair = NULL;
    struct dt_config before;
    dt_status status = DT_OK;
    if (search_exists(config)) {
        DT_TRY(dt__config_init(&before));
        status = dt_config_read_file(&before, config_path(config).text);
        if (!status && *before.search.space) status = dt__strdup(before.search.space, &text);
        dt__config_free(&before);
    }
    if (!status && !text) status = dt__space_usual(config, search->fold[0].rows, &text);
    if (!status) status = dt__format(&pair, "search.space=%s", text);
    if (!status) status = dt_config_set(config, pair);
    if (!status && config->search.trials > 1 + search->linear) dt__info("%s", pair);
    dt_free(pair);
    dt_free(text);
    return status;
}

/* Chooses (on rank 0), broadcasts and parses the space, and checks all trials. Collective. */
static dt_status space_make(struct dt__search *search, struct dt_config *config)
{
    dt_status status = DT_OK;
    const bool leads = search->world->rank == 0;
    search->linear = linear_pays(search);
    if (leads && !*config->search.space) status = space_choose(search, config);
    DT_TRY(config_send(search->world, config, status));
    status = dt__space_parse(config->search.space, &search->space);
    if (!status && leads) status = trials_check(search);
    if (!status && leads) status = certainty_check(search);
    return dt__ranks_agree(search->world->all, status);
}

/* ---- the search on all ranks ----------------------------------------------------------------- */

static void start_print(const struct dt__search *search)
{
    const struct dt_config *config = search->config;
    const int ranks = (int)config->search.ranks;
    const int teams = search->world->size > 1 ? (search->world->size - 1) / ranks : 1;
    const long long trials = config->search.trials, runs = trials * search->folds;
    const double shared = (double)dt__borrowed_rows_bytes(search->fold[0].rows) / 1e6;
    char memory[64] = "";
    if (search->memory[0])
        (void)snprintf(memory, sizeof memory, ", in %.3g MB of memory once a host", shared);
    dt__info("%s: %lld trial%s, %d team%s of %d rank%s, %llu rows to learn from, %llu held out%s",
             config->run.dir, trials, trials > 1 ? "s" : "", teams, teams > 1 ? "s" : "", ranks,
             ranks > 1 ? "s" : "", (unsigned long long)dt__source_rows(search->fold[0].rows),
             (unsigned long long)dt__source_rows(search->fold[0].held_out), memory);
    if (teams > runs)
        dt__warn("%lld of %d teams stay idle: there %s only %lld run%s to train", teams - runs,
                 teams, runs > 1 ? "are" : "is", runs, runs > 1 ? "s" : "");
}

static dt_status search_open(struct dt__search *search, struct dt_config *config, int *lock)
{
    struct dt_world *world = search->world;
    const bool leads = world->rank == 0, alone = world->size == 1;
    dt_status status = leads ? config_resolve(config, world->size) : DT_OK;
    DT_TRY(config_send(world, config, status));
    dt__world_watch(world, config->run.stall_secs);
    DT_TRY(folds_make(search));
    DT_TRY(space_make(search, config));
    DT_TRY(directory_share(search, lock));
    const int color = leads ? -1 : (world->rank - 1) / (int)config->search.ranks;
    if (alone)
        search->team = world;
    else
        DT_TRY(dt__world_split(world, color, &search->team));
    if (leads) start_print(search);
    if (alone) dt__world_rest(world, false); /* the training watches it */
    return DT_OK;
}

static void search_close(struct dt__search *search)
{
    if (search->team != search->world) dt_world_destroy(search->team);
    for (int f = 0; f < search->folds && search->fold; f++) {
        dt__source_destroy(search->fold[f].held_out);
        dt__source_destroy(search->fold[f].rows);
    }
    dt_free(search->fold);
    dt__world_unshare(search->memory[1]);
    dt__world_unshare(search->memory[0]);
    dt__space_free(&search->space);
}

dt_status dt_search(struct dt_world *world, struct dt_config *config)
{
    struct dt__search search = {.world = world, .config = config};
    int lock = -1;
    dt_status status = search_open(&search, config, &lock);
    if (!status && world->rank == 0)
        status = dt__leader_run(&search);
    else if (!status)
        dt__team_serve(&search);
    if (status != DT_STOPPED || world->size > 1) status = dt__ranks_agree(world->all, status);
    search_close(&search);
    dt__lock_drop(lock);
    dt__world_rest(world, status == DT_STOPPED);
    return status;
}
