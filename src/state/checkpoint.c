/* The tables of records, in which each stored member of a checkpoint is a row, and the order of its
 * vectors: parameters, best model, the optimizer's states, then the states and the difference of
 * each group. */
#include "state/checkpoint.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct dt_checkpoint, member)
#define ROW(name, stored, to, ...)                                                                 \
    {                                                                                              \
        .path = name, .type = DT__H5_##stored, .member = AT(to), __VA_ARGS__                       \
    }
#define OPTIONAL .optional = true
#define POINTER .pointer = true
#define COUNTED_BY(number) .pointer = true, .count = AT(number)

/* A record of dt_certainty: stored only if something was fitted. */
#define FITTED(name, stored, to)                                                                   \
    ROW("/certainty" name, stored, certainty.to, OPTIONAL, .only_if = AT(certainty.known))

static const struct dt__record SCHEMA[] = {
    ROW("/schema@task", TEXT, schema.task, .choices = DT_TASK_CHOICES),
    ROW("/schema@features", I32, schema.features),
    ROW("/schema@height", I32, schema.shape[0]),
    ROW("/schema@width", I32, schema.shape[1]),
    ROW("/schema@channels", I32, schema.shape[2]),
    ROW("/schema@classes", I32, schema.classes),
    ROW("/schema@targets", I32, schema.targets),
    ROW("/schema@scale", F64, schema.scale),
    ROW("/schema@encoded", I32, schema.encoded, OPTIONAL, .only_if = AT(schema.encoded)),
    ROW("/schema@quantiles", I32, schema.quantiles, OPTIONAL, .only_if = AT(schema.encoded)),
    ROW("/schema@clip", F64, schema.clip),
    ROW("/schema@label_column", TEXT, schema.label_column, POINTER, OPTIONAL),
    ROW("/schema/mean", F32, schema.mean, OPTIONAL, COUNTED_BY(schema.features)),
    ROW("/schema/inv_std", F32, schema.inv_std, OPTIONAL, COUNTED_BY(schema.features)),
    ROW("/schema/encoded", I64, schema.encoded_feature, OPTIONAL, COUNTED_BY(schema.encoded)),
    ROW("/schema/quantiles", F32, schema.quantile, OPTIONAL, COUNTED_BY(schema.quantiles)),
    ROW("/schema/target_mean", F32, schema.target_mean, OPTIONAL, COUNTED_BY(schema.targets)),
    ROW("/schema/target_std", F32, schema.target_std, OPTIONAL, COUNTED_BY(schema.targets)),
    ROW("/schema/target_least", F32, schema.target_least, OPTIONAL, COUNTED_BY(schema.targets)),
    ROW("/schema/target_greatest", F32, schema.target_greatest, OPTIONAL,
        COUNTED_BY(schema.targets)),
    ROW("/schema/feature_names", TEXT, schema.feature_names, OPTIONAL, COUNTED_BY(schema.features)),
    ROW("/schema/label_names", TEXT, schema.label_names, OPTIONAL, COUNTED_BY(schema.classes)),
    ROW("/schema/label_numbers", I64, schema.label_numbers, OPTIONAL, COUNTED_BY(schema.classes)),
    {0},
};

static const struct dt__record MODEL[] = {
    ROW("/@step", U64, step),
    ROW("/@config", TEXT, config, POINTER),
    ROW("/@best_known", U8, best.known),
    ROW("/@best_value", F64, best.value),
    ROW("/@best_loss", F64, best.loss),
    ROW("/@best_metric", TEXT, best.metric),
    ROW("/@best_step", U64, best.step),
    ROW("/@best_since", I64, best.since),
    ROW("/@best_plateau", I64, best.plateau),
    ROW("/@best_drops", I64, best.drops),
    ROW("/@best_seen", U64, best.seen),
    ROW("/@best_stop", U8, best.stop),
    ROW("/@best_era", I64, best.era, OPTIONAL),
    ROW("/model@layers", TEXT, desc.layers, POINTER),
    ROW("/model@task", TEXT, desc.task, .choices = DT_TASK_CHOICES),
    ROW("/model@nout", I32, desc.nout),
    ROW("/model@height", I32, desc.shape[0]),
    ROW("/model@width", I32, desc.shape[1]),
    ROW("/model@channels", I32, desc.shape[2]),
    /* `dense` is stored only with an embedding or encoded numbers, `loss` only if it is not the
     * task's default. */
    ROW("/model@dense", I32, desc.dense, OPTIONAL, .only_if = AT(desc.dense)),
    ROW("/model@encode", TEXT, desc.encode, OPTIONAL, .choices = DT_ENCODE_CHOICES,
        .only_if = AT(desc.encode)),
    ROW("/model@encode_columns", I32, desc.encode_columns, OPTIONAL, .only_if = AT(desc.encode)),
    ROW("/model@encode_width", I32, desc.encode_width, OPTIONAL, .only_if = AT(desc.encode)),
    ROW("/model@encode_count", I32, desc.encode_count, OPTIONAL, .only_if = AT(desc.encode)),
    ROW("/model/encoding", F32, desc.encode_table, OPTIONAL, COUNTED_BY(desc.encode_count)),
    ROW("/model@categories", I32, desc.categories, OPTIONAL, .only_if = AT(desc.categories)),
    ROW("/model@loss", TEXT, desc.loss, OPTIONAL, .choices = DT_LOSS_CHOICES,
        .only_if = AT(desc.loss)),
    ROW("/model@quantiles", TEXT, desc.quantiles, POINTER, OPTIONAL, .only_if = AT(desc.loss)),
    ROW("/model@huber_delta", F64, desc.huber_delta, OPTIONAL, .only_if = AT(desc.loss)),
    FITTED("@known", I32, known),
    FITTED("@positive", I32, positive),
    FITTED("@temperature", F64, temperature),
    FITTED("@cut", F64, cut),
    FITTED("@rows_crc", U32, rows_crc),
    FITTED("@coverage", F64, coverage),
    FITTED("@residuals", I32, residuals),
    ROW("/certainty/residuals", F32, certainty.residual, OPTIONAL, COUNTED_BY(certainty.residuals)),
    {0},
};

static const struct dt__record RESUME[] = {
    ROW("/@mode", TEXT, mode, .choices = DT_MODE_CHOICES),
    ROW("/@seed", U64, seed),
    ROW("/@replicas", I32, replicas),
    ROW("/@samples", U64, samples),
    ROW("/@wall_secs", F64, wall_secs),
    ROW("/@train_secs", F64, train_secs),
    ROW("/@loss_rows", F64, loss_rows),
    ROW("/@kernel", TEXT, kernel, POINTER),
    ROW("/@data_crc", U32, data_crc),
    ROW("/@content_crc", U32, content_crc, OPTIONAL),
    ROW("/@history", TEXT, history, POINTER, OPTIONAL),
    ROW("/replicas/draws", U64, draws, COUNTED_BY(replicas)),
    ROW("/replicas/loss_sums", F64, loss_sums, COUNTED_BY(replicas)),
    ROW("/optimizer@state0", TEXT, state_name[0], POINTER, OPTIONAL),
    ROW("/optimizer@state1", TEXT, state_name[1], POINTER, OPTIONAL),
    ROW("/optimizer@state2", TEXT, state_name[2], POINTER, OPTIONAL),
    ROW("/groups@groups", I32, groups, OPTIONAL, .only_if = AT(groups)),
    ROW("/groups@state0", TEXT, group_state_name[0], POINTER, OPTIONAL, .only_if = AT(groups)),
    ROW("/groups@state1", TEXT, group_state_name[1], POINTER, OPTIONAL, .only_if = AT(groups)),
    ROW("/groups@state2", TEXT, group_state_name[2], POINTER, OPTIONAL, .only_if = AT(groups)),
    {0},
};
_Static_assert(DT_CHECKPOINT_STATE == 3, "a row for each vector's name");

const struct dt__record *const dt__records[DT__RECORD_TABLES] = {SCHEMA, MODEL, RESUME};

int dt__record_int(const struct dt_checkpoint *checkpoint, size_t offset)
{
    return *(const int *)((const char *)checkpoint + offset);
}

size_t dt__record_bytes(const struct dt__record *record, const struct dt_checkpoint *checkpoint)
{
    const char *text;
    memcpy(&text, (const char *)checkpoint + record->member, sizeof text);
    if (!record->count) return text ? strlen(text) + 1 : 0;
    return (size_t)dt__record_int(checkpoint, record->count) * dt__h5_type_size(record->type);
}

bool dt__vector_at(struct dt_checkpoint *c, int index, struct dt__vector *out)
{
    const int state = index - DT__FIRST_STATE, per_group = c->group_nstate + 1;
    *out = (struct dt__vector){.path = "/model", .group = -1, .at = &c->params};
    if (index == 0) return true;
    *out =
        (struct dt__vector){.path = "/best", .group = -1, .at = &c->best_params, .optional = true};
    if (index == 1) return true;
    if (state < c->nstate) {
        *out = (struct dt__vector){
            .name = c->state_name[state], .group = -1, .at = &c->state[state], .trained = true};
        snprintf(out->path, sizeof out->path, "/optimizer/%s", out->name);
        return true;
    }
    const int group = (state - c->nstate) / per_group, i = (state - c->nstate) % per_group;
    if (!c->group_state || group >= c->groups) return false;
    *out = (struct dt__vector){.name = DT__DIFFERENCE, .group = group};
    if (i < c->group_nstate) {
        out->name = c->group_state_name[i];
        out->at = &c->group_state[group * c->group_nstate + i];
        out->trained = true;
    } else if (c->group_difference) { /* either all groups have one or none has */
        out->at = &c->group_difference[group];
    }
    snprintf(out->path, sizeof out->path, "/groups/%d/%s", group, out->name);
    return true;
}

void dt__checkpoint_drop(struct dt_checkpoint *checkpoint)
{
    struct dt__vector vector;
    for (int i = 0; dt__vector_at(checkpoint, i, &vector); i++) {
        if (!vector.at) continue;
        dt__free_backed(*vector.at);
        *vector.at = NULL;
    }
}

void dt__checkpoint_free(struct dt_checkpoint *checkpoint)
{
    dt__checkpoint_drop(checkpoint);
    dt_free(checkpoint->group_state);
    dt_free(checkpoint->group_difference);
    dt__schema_free(&checkpoint->schema);
    for (int t = DT__MODEL_RECORDS; t < DT__RECORD_TABLES; t++)
        for (const struct dt__record *record = dt__records[t]; record->path; record++) {
            void *pointer = NULL;
            if (record->pointer)
                memcpy(&pointer, (const char *)checkpoint + record->member, sizeof pointer);
            dt_free(pointer);
        }
    *checkpoint = (struct dt_checkpoint){0};
}
