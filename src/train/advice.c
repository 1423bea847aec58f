/* Warnings about data and settings that are probably mistakes, with a suggested fix. */
#include <math.h>
#include <string.h>

#include "comm/split.h"
#include "model/layer.h"
#include "train/advice.h"

/* ---- data ----------------------------------------------------------------------------------- */

/* Reads rows from `begin` on, at most DT_EVAL_CHUNK of them. The caller destroys *table even after
 * an error. */
static dt_status rows_read(const struct dt_job *job, const struct dt_source *source, uint64_t begin,
                           struct dt_table **table, struct dt_batch *out)
{
    const uint64_t left = dt__source_rows(source) - begin;
    const int rows = left < DT_EVAL_CHUNK ? (int)left : DT_EVAL_CHUNK;
    DT_TRY(dt__table_create(job->config, source, begin, begin + (uint64_t)rows, table));
    return dt__table_read(*table, begin, rows, out);
}

/* Prints which label each class has, if some label is not the number of its class. */
static void advise_numbers(const struct dt_schema *schema)
{
    enum { MOST = 20 };
    struct dt_text table = {0};
    char *text = NULL;
    bool same = true, own = true; /* same: each label is the number of its class; own: each
                                   * class's name is its label */
    for (int c = 0; schema->label_numbers && c < schema->classes; c++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)schema->label_numbers[c]);
        const char *name = schema->label_names ? schema->label_names[c] : number;
        same &= schema->label_numbers[c] == c;
        const bool is_own = strcmp(name, number) == 0;
        own &= is_own;
        if (c < MOST)
            dt__text_add(&table, "%s%d is %s%s%s%s%s", c ? ", " : "", c, c ? "" : "label ", number,
                         is_own ? "" : " (", is_own ? "" : name, is_own ? "" : ")");
    }
    if (!dt__text_end(&table, &text) && text && !same && (schema->classes > 2 || !own))
        dt__info("class %s%s", text, schema->classes > MOST ? ", ..." : "");
    dt_free(text);
}

void dt__advise_labels(const struct dt_job *job)
{
    const struct dt_schema *schema = dt__source_schema(job->train);
    advise_numbers(schema);
    if (schema->classes == 2 && schema->label_names) {
        const char *one = schema->label_names[1], *other = schema->label_names[0];
        char turn[256] = "";
        if (!*job->config->data.class_names && !strpbrk(one, ", '") && !strpbrk(other, ", '"))
            snprintf(turn, sizeof turn, "; data.class_names=%s,%s swaps them", one, other);
        dt__info("two classes: '%s' is the positive one, '%s' the negative%s", one, other, turn);
    }
    if (!schema->target_mean) return;
    const bool chosen = job->config->data.normalize_target == DT_NORMALIZE_TARGET_AUTO;
    dt__info("targets are standardised for training: mean %g, deviation %g%s; losses and "
             "predictions are "
             "in the original units%s",
             (double)schema->target_mean[0], (double)schema->target_std[0],
             schema->targets > 1 ? " of the first" : "",
             chosen ? " (data.normalize_target=no learns them unchanged)" : "");
}

/* Warns, in a new run without normalisation, of a feature whose values in the first rows are larger
 * than 30. Does not report rows that cannot be read: the worker's open does. */
static void advise_scale(const struct dt_job *job)
{
    static const double LARGE = 30;
    enum { MOST_FEATURES = 1 << 16 };
    const struct dt_config *config = job->config;
    char *const *names = dt__source_schema(job->train)->feature_names;
    int at = 0;
    struct dt_table *table = NULL;
    struct dt_batch batch = {0};
    double most = 0; /* mean square */
    if (job->step > 0 || config->data.normalize != DT_NORMALIZE_NONE ||
        dt__source_schema(job->train)->features > MOST_FEATURES)
        return;
    const bool good = !rows_read(job, job->train, 0, &table, &batch);
    for (int f = 0; f < batch.ndense && good; f++) {
        double sum = 0;
        for (int r = 0; r < batch.rows; r++) {
            const double value = batch.x[(size_t)r * (size_t)batch.ndense + (size_t)f];
            sum += value * value;
        }
        if (sum > most * batch.rows) at = f, most = sum / batch.rows;
    }
    if (most > LARGE * LARGE && dt__source_schema(job->train)->shape[0])
        dt__warn(
            "pixels have values of about %.2g, and values should be near 1: try data.scale (for "
            "bytes 0.00392156862745098, 1/255) or data.normalize=standard",
            sqrt(most));
    else if (most > LARGE * LARGE)
        dt__warn("feature %d%s%s%s has values of about %.2g, and values should be near 1: try "
                 "data.normalize=standard or data.scale",
                 at, names ? " ('" : "", names ? names[at] : "", names ? "')" : "", sqrt(most));
    dt__table_destroy(table);
}

/* Warns of batch normalisation over local batches of one row, where it has no effect. */
static void advise_batchnorm(const struct dt_job *job)
{
    const struct dt_model *model = job->model;
    if (dt__plan_batch(job->plan) > (uint64_t)job->replicas) return;
    for (size_t i = 0; i < model->layers; i++) {
        const struct dt__layer *layer = &model->layer[i];
        if (layer->kind != &dt__batchnorm_layer || layer->in.h * layer->in.w > 1) continue;
        dt__warn(
            "'%s' has no effect: it needs several rows per replica, and a batch of %llu gives each "
            "of %d replicas at most one; expected a larger train.batch, or a smaller run.replicas",
            layer->text, (unsigned long long)dt__plan_batch(job->plan), job->replicas);
        return;
    }
}

/* ---- split layers --------------------------------------------------------------------------- */

/* Returns whether this configuration allows splitting layers of `least` weights or more. */
static bool may_split(const struct dt_config *config, size_t least)
{
    struct dt_config changed = *config; /* its texts are only read */
    changed.model.split = (int64_t)least;
    return dt__config_check(&changed, 0) == DT_OK;
}

/* Prints, for each dense layer, how many MB a step sends if the layer is split and if it is whole;
 * without split layers suggests model.split if it would halve what a step sends. */
static void advise_split(const struct dt_job *job)
{
    const int nodes = job->world->hosts, rows = (int)dt__plan_batch(job->plan);
    const int count = (int)job->config->run.parts;
    const struct dt_schema *schema = dt__source_schema(job->train);
    const double mb = sizeof(float) / 1e6;
    struct dt_split_layer layer;
    const bool any = job->model->splits > 0;
    double all = 2 * (1 - 1.0 / nodes) * (double)job->model->params, saved = 0;
    size_t least = 0;
    bool split;
    if (nodes == 1) return;
    for (int l = 0; dt__model_dense(job->model, l, &layer, &split); l++) {
        const double parts = dt__split_sent(&layer, count, rows, nodes);
        const double whole = dt__split_sent_whole(&layer, nodes);
        if (any)
            dt__info("dense layer of %zu x %zu, %s: in a step of %d rows a host sends %.3g MB if "
                     "the layer is split, %.3g MB if it is whole: less if %s",
                     layer.nin, layer.nout, split ? "split" : "whole", rows, mb * parts, mb * whole,
                     parts < whole ? "split" : "whole");
        if (parts >= whole || layer.nout < (size_t)count) continue;
        if (schema->dense < schema->features && !layer.inputs) continue;
        saved += whole - parts;
        if (!least || layer.nin * layer.nout < least) least = layer.nin * layer.nout;
    }
    if (!any && saved > all / 2 && may_split(job->config, least))
        dt__info("a step sends %.3g MB a host; with model.split=%zu it would send %.3g MB",
                 mb * all, least, mb * (all - saved));
}

void dt__advise_start(const struct dt_job *job)
{
    advise_scale(job);
    advise_batchnorm(job);
    advise_split(job);
}

/* ---- losses --------------------------------------------------------------------------------- */

/* Returns the loss of a guess. For classes: any class at random. For targets: their mean, from
 * which they differ by about a deviation, squared in most losses. Targets that
 * data.normalize_target=auto left unstandardised have a mean and a deviation up to 10. INFINITY:
 * not known. */
static double guess_loss(const struct dt_job *job)
{
    const struct dt_config *config = job->config;
    const struct dt_schema *schema = dt__source_schema(job->train);
    const int loss = config->train.loss;
    const double power = loss == DT_LOSS_MAE || loss == DT_LOSS_QUANTILE ? 1 : 2;
    double sum = 0;
    if (schema->classes) return log(schema->classes);
    if (config->model.task != DT_TASK_REGRESS || loss == DT_LOSS_POISSON) return INFINITY;
    if (!schema->target_std)
        return config->data.normalize_target == DT_NORMALIZE_TARGET_AUTO ? pow(sqrt(200), power)
                                                                         : (double)INFINITY;
    for (int i = 0; i < schema->targets; i++)
        sum += pow((double)schema->target_std[i], power);
    return sum / schema->targets;
}

bool dt__advise_loss(const struct dt_bank *bank)
{
    const struct dt_config *config = bank->job->config;
    const double guess = guess_loss(bank->job);
    if (bank->options->test || !(bank->log.last_loss > 10 * guess)) return false;
    dt__warn("step %llu: the loss is %.3g, a guess has %.3g: %sa lower train.lr than %g%s may help",
             (unsigned long long)bank->job->step, bank->log.last_loss, guess,
             config->data.normalize == DT_NORMALIZE_NONE ? "data.normalize=standard, or " : "",
             config->train.lr, config->train.clip_norm > 0 ? "" : ", or train.clip_norm=1,");
    return true;
}

/* ---- the wire ------------------------------------------------------------------------------- */

/* Steps of a span that are measured. The first ones are not, since they make connections. */
enum { LOOK_FROM = 5, LOOK_UNTIL = 25 };

/* Returns whether this configuration allows these values. */
static bool may_set(const struct dt_config *config, int local_steps, int wire)
{
    struct dt_config changed = *config; /* its texts are only read */
    changed.train.local_steps = local_steps;
    changed.train.wire = wire;
    return dt__config_check(&changed, 0) == DT_OK;
}

void dt__advise_wire(const struct dt_job *job, struct dt_worker *worker, struct dt_span *span)
{
    enum { MOST_STEPS = 512 };
    if (worker->wire_reported || job->world->hosts == 1 || job->world->worker > 0) return;
    const struct dt_exchange_times *times = job->steps->times;
    double now = dt__clock_secs(), waited = times->wait + times->network;
    if (++span->wire_steps == LOOK_FROM) span->wire_start = now, span->wire_waited = waited;
    if (span->wire_steps < LOOK_UNTIL) return;
    worker->wire_reported = true;
    double step = now - span->wire_start, wait = waited - span->wire_waited;
    if (wait < 0.3 * step) return;
    /* The exchange may take a tenth of a step. A round also computes with what it exchanges,
     * so only half of that tenth is left for waiting. */
    int rarely = 2;
    while (rarely < MOST_STEPS && wait / rarely > 0.05 * (step - wait))
        rarely *= 2;
    double ms = 1e3 / (LOOK_UNTIL - LOOK_FROM);
    const struct dt_config *config = job->config;
    /* local steps exchange whole tables */
    const bool touched = dt__exchange_slot(job->steps->exchange, 0).touched != NULL;
    const bool rounds = !touched && may_set(config, rarely, (int)config->train.wire);
    const bool wire = config->train.wire != DT_WIRE_Q8 && may_set(config, 1, DT_WIRE_Q8);
    char text[40] = "a larger train.batch";
    if (rounds) snprintf(text, sizeof text, "train.local_steps=%d", rarely);
    dt__info("the exchange with other hosts takes %.3g ms of a %.3g ms step: try %s%s%s", ms * wait,
             ms * step, text, wire ? ", or train.wire=q8, which stays in step with " : "",
             !wire                                ? ""
             : touched                            ? "half of the bytes or less"
             : config->train.wire == DT_WIRE_BF16 ? "half of the bytes"
                                                  : "a quarter of the bytes");
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Returns the MB that this host needs at least: weights, and on the bank's host the optimizer
 * state. owned: floats that only their owners have; this host has those of its workers. */
static double needed_mb(const struct dt_job *job, double owned)
{
    const struct dt_world *world = job->world;
    const int host = world->host_of[world->rank], vectors = 1 + job->rules->optimizer.nstate;
    const double whole = (double)job->model->params - owned;
    const double part = (double)world->workers_of[host] / world->workers;
    return (whole * (host == world->host_of[0] ? vectors : 1) + owned * vectors * part) *
           sizeof(float) / 1e6;
}

dt_status dt__check_memory(const struct dt_job *job)
{
    const struct dt_model *model = job->model;
    const struct dt_schema *schema = dt__source_schema(job->train);
    const double have = dt__memory_limit() / 1e6;
    double owned = (double)(model->params - model->shared), split_owned;
    struct dt_split_layer layer;
    size_t least = 0;
    bool split;
    for (size_t i = 0; i < model->tensors && job->world->hosts > 1; i++)
        if (model->tensor[i].row_sparse && schema->dense < schema->features)
            owned += (double)model->tensor[i].count;
    const double need = needed_mb(job, owned);
    if (need <= have) return DT_OK;
    split_owned = owned;
    for (int l = 0; dt__model_dense(model, l, &layer, &split); l++) {
        const size_t weights = layer.nin * layer.nout;
        if (split || layer.nout < DT_SPLIT_PARTS || weights < model->params / 100) continue;
        split_owned += (double)weights;
        if (!least || weights < least) least = weights;
    }
    if (least && needed_mb(job, split_owned) <= have && may_split(job->config, least))
        return dt_fail(
            DT_EMEMORY,
            "weights and optimizer state need %.4g MB on this host, which has %.4g MB: expected "
            "model.split=%zu, with which they need %.4g MB (split layers), or more memory",
            need, have, least, needed_mb(job, split_owned));
    return dt_fail(DT_EMEMORY,
                   "weights and optimizer state need %.4g MB on this host, which has %.4g MB: "
                   "expected more memory, or more hosts with model.split",
                   need, have);
}
