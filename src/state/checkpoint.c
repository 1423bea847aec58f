/* The tables of records. A new member of a checkpoint is a row here. */
#include "state/checkpoint.h"

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct dt_checkpoint, member)
#define ROW(name, type, of, ...)                                                                   \
    {                                                                                              \
        .path = name, .kind = DT__RECORD_##type, .member = AT(of), __VA_ARGS__                     \
    }
#define OPTIONAL .optional = true

static const struct dt__record SCHEMA[] = {
    ROW("/schema@task", WORD, schema.task, .words = DT_TASK_WORDS),
    ROW("/schema@features", INT, schema.features),
    ROW("/schema@height", INT, schema.shape[0]),
    ROW("/schema@width", INT, schema.shape[1]),
    ROW("/schema@channels", INT, schema.shape[2]),
    ROW("/schema@classes", INT, schema.classes),
    ROW("/schema@targets", INT, schema.targets),
    ROW("/schema@scale", REAL, schema.scale),
    ROW("/schema@clip", REAL, schema.clip),
    ROW("/schema@label_column", TEXT, schema.label_column, OPTIONAL),
    ROW("/schema/mean", FLOATS, schema.mean, OPTIONAL, .count = AT(schema.features)),
    ROW("/schema/inv_std", FLOATS, schema.inv_std, OPTIONAL, .count = AT(schema.features)),
    ROW("/schema/target_mean", FLOATS, schema.target_mean, OPTIONAL, .count = AT(schema.targets)),
    ROW("/schema/target_std", FLOATS, schema.target_std, OPTIONAL, .count = AT(schema.targets)),
    ROW("/schema/feature_names", NAMES, schema.feature_names, OPTIONAL,
        .count = AT(schema.features)),
    ROW("/schema/label_names", NAMES, schema.label_names, OPTIONAL, .count = AT(schema.classes)),
    {0},
};

static const struct dt__record MODEL[] = {
    ROW("/@step", U64, step),
    ROW("/@config", TEXT, config),
    ROW("/@best_known", BOOL, best.known),
    ROW("/@best_value", REAL, best.value),
    ROW("/@best_loss", REAL, best.loss),
    ROW("/@best_metric", NAME, best.metric),
    ROW("/@best_step", U64, best.step),
    ROW("/@best_since", I64, best.since),
    ROW("/@best_plateau", I64, best.plateau),
    ROW("/@best_drops", I64, best.drops),
    ROW("/@best_seen", U64, best.seen),
    ROW("/@best_stop", BOOL, best.stop),
    ROW("/model@layers", TEXT, desc.layers),
    ROW("/model@task", WORD, desc.task, .words = DT_TASK_WORDS),
    ROW("/model@nout", INT, desc.nout),
    ROW("/model@height", INT, desc.shape[0]),
    ROW("/model@width", INT, desc.shape[1]),
    ROW("/model@channels", INT, desc.shape[2]),
    /* With an embedding; with a loss that is not the task's usual one. */
    ROW("/model@dense", INT, desc.dense, OPTIONAL, .when = AT(desc.categories)),
    ROW("/model@categories", INT, desc.categories, OPTIONAL, .when = AT(desc.categories)),
    ROW("/model@loss", WORD, desc.loss, OPTIONAL, .words = DT_LOSS_WORDS, .when = AT(desc.loss)),
    ROW("/model@huber_delta", REAL, desc.huber_delta, OPTIONAL, .when = AT(desc.loss)),
    {0},
};

static const struct dt__record RESUME[] = {
    ROW("/@mode", WORD, mode, .words = DT_MODE_WORDS),
    ROW("/@seed", U64, seed),
    ROW("/@replicas", INT, replicas),
    ROW("/@samples", U64, samples),
    ROW("/@wall_secs", REAL, wall_secs),
    ROW("/@train_secs", REAL, train_secs),
    ROW("/@loss_rows", REAL, loss_rows),
    ROW("/@kernel", TEXT, kernel),
    ROW("/@data_crc", U32, data_crc),
    ROW("/@history", TEXT, history, OPTIONAL),
    ROW("/replicas/draws", COUNTS, draws, .count = AT(replicas)),
    ROW("/replicas/loss_sums", DOUBLES, loss_sums, .count = AT(replicas)),
    ROW("/optimizer@state0", TEXT, state_name[0], OPTIONAL),
    ROW("/optimizer@state1", TEXT, state_name[1], OPTIONAL),
    ROW("/optimizer@state2", TEXT, state_name[2], OPTIONAL),
    ROW("/groups@groups", INT, groups, OPTIONAL, .when = AT(groups)),
    ROW("/groups@state0", TEXT, group_state_name[0], OPTIONAL, .when = AT(groups)),
    ROW("/groups@state1", TEXT, group_state_name[1], OPTIONAL, .when = AT(groups)),
    ROW("/groups@state2", TEXT, group_state_name[2], OPTIONAL, .when = AT(groups)),
    {0},
};
_Static_assert(DT_CHECKPOINT_STATE == 3, "a row for each vector's name");

const struct dt__record *const dt__records[DT__RECORD_TABLES] = {SCHEMA, MODEL, RESUME};

int dt__record_int(const struct dt_checkpoint *checkpoint, size_t offset)
{
    return *(const int *)((const char *)checkpoint + offset);
}

enum dt__h5_type dt__record_type(const struct dt__record *record)
{
    static const enum dt__h5_type types[] = {
        [DT__RECORD_INT] = DT__H5_I32,     [DT__RECORD_I64] = DT__H5_I64,
        [DT__RECORD_U32] = DT__H5_U32,     [DT__RECORD_U64] = DT__H5_U64,
        [DT__RECORD_REAL] = DT__H5_F64,    [DT__RECORD_BOOL] = DT__H5_U8,
        [DT__RECORD_WORD] = DT__H5_TEXT,   [DT__RECORD_NAME] = DT__H5_TEXT,
        [DT__RECORD_TEXT] = DT__H5_TEXT,   [DT__RECORD_FLOATS] = DT__H5_F32,
        [DT__RECORD_DOUBLES] = DT__H5_F64, [DT__RECORD_COUNTS] = DT__H5_U64,
        [DT__RECORD_NAMES] = DT__H5_TEXT};
    return types[record->kind];
}

size_t dt__record_bytes(const struct dt__record *record, const struct dt_checkpoint *checkpoint)
{
    const char *text;
    memcpy(&text, (const char *)checkpoint + record->member, sizeof text);
    if (record->kind == DT__RECORD_TEXT) return text ? strlen(text) + 1 : 0;
    return (size_t)dt__record_int(checkpoint, record->count) *
           dt__h5_type_size(dt__record_type(record));
}

bool dt__vector_at(struct dt_checkpoint *c, int index, struct dt__vector *out)
{
    const int states = index - 2, a_group = c->group_nstate + 1;
    *out = (struct dt__vector){.group = "/model", .at = &c->params};
    if (index == 0) return true;
    *out = (struct dt__vector){.group = "/best", .at = &c->best_params, .optional = true};
    if (index == 1) return true;
    if (states < c->nstate) {
        *out = (struct dt__vector){.at = &c->state[states], .trained = true};
        snprintf(out->group, sizeof out->group, "/optimizer/%s", c->state_name[states]);
        return true;
    }
    const int group = (states - c->nstate) / a_group, i = (states - c->nstate) % a_group;
    if (!c->group_state || group >= c->groups) return false;
    if (i < c->group_nstate) {
        *out = (struct dt__vector){.at = &c->group_state[group * c->group_nstate + i],
                                   .trained = true};
        snprintf(out->group, sizeof out->group, "/groups/%d/%s", group, c->group_state_name[i]);
        return true;
    }
    /* Beside a group's optimizer; if any group has one, all have. */
    *out = (struct dt__vector){.at = c->group_difference ? &c->group_difference[group] : NULL};
    snprintf(out->group, sizeof out->group, "/groups/%d/difference", group);
    return true;
}

void dt_checkpoint_free(struct dt_checkpoint *checkpoint)
{
    struct dt__vector vector;
    for (int i = 0; dt__vector_at(checkpoint, i, &vector); i++)
        if (vector.at) dt_free(*vector.at);
    dt_free(checkpoint->group_state);
    dt_free(checkpoint->group_difference);
    dt_schema_free(&checkpoint->schema);
    for (int t = DT__MODEL_RECORDS; t < DT__RECORD_TABLES; t++)
        for (const struct dt__record *record = dt__records[t]; record->path; record++) {
            void *pointer = NULL;
            if (record->kind >= DT__RECORD_TEXT)
                memcpy(&pointer, (const char *)checkpoint + record->member, sizeof pointer);
            dt_free(pointer);
        }
    *checkpoint = (struct dt_checkpoint){0};
}
