#include "state/snapshot.h"

#include <string.h>

/* Copies n items into *to, which has room for *room of them. */
static dt_status copy(void *to, size_t *room, const void *from, size_t n, size_t size)
{
    void *at;
    DT_TRY(dt_grow(to, room, n, size, "a snapshot"));
    memcpy(&at, to, sizeof at);
    memcpy(at, from, n * size);
    return DT_OK;
}

static dt_status copy_text(char **to, const char *from)
{
    dt_free(*to);
    *to = NULL;
    return from ? dt_strdup(from, to) : DT_OK;
}

/* Texts and names: small, and never more than a few. */
static dt_status copy_words(struct dt_checkpoint *to, const struct dt_checkpoint *from)
{
    DT_TRY(copy_text(&to->config, from->config));
    DT_TRY(copy_text(&to->kernel, from->kernel));
    for (int i = 0; i < DT_MAX_STATE; i++) {
        char *name = (char *)to->state_name[i];
        to->state_name[i] = NULL;
        dt_status status = copy_text(&name, i < from->nstate ? from->state_name[i] : NULL);
        to->state_name[i] = name;
        if (status) return status;
    }
    dt_schema_free(&to->schema);
    return dt_schema_copy(&from->schema, &to->schema);
}

static dt_status copy_vectors(struct dt__snapshot *snapshot, const struct dt_checkpoint *from)
{
    struct dt_checkpoint *to = &snapshot->checkpoint;
    size_t params = (size_t)from->params_count, replicas = (size_t)from->replicas;
    DT_TRY(copy(&to->params, &snapshot->params_room, from->params, params, sizeof *to->params));
    for (int i = 0; i < from->nstate; i++)
        DT_TRY(copy(&to->state[i], &snapshot->state_room[i], from->state[i], params,
                    sizeof *to->params));
    DT_TRY(copy(&to->draws, &snapshot->draws_room, from->draws, replicas, sizeof *to->draws));
    return copy(&to->loss_sums, &snapshot->sums_room, from->loss_sums, replicas,
                sizeof *to->loss_sums);
}

/* All that is no pointer. */
static void copy_numbers(struct dt_checkpoint *to, const struct dt_checkpoint *from)
{
    struct dt_checkpoint own = *to;
    *to = *from;
    to->draws = own.draws;
    to->loss_sums = own.loss_sums;
    to->config = own.config;
    to->kernel = own.kernel;
    to->schema = own.schema;
    to->params = own.params;
    memcpy(to->state_name, own.state_name, sizeof to->state_name);
    memcpy(to->state, own.state, sizeof to->state);
}

dt_status dt__snapshot_take(struct dt__snapshot *snapshot, const struct dt_checkpoint *from)
{
    copy_numbers(&snapshot->checkpoint, from);
    DT_TRY(copy_words(&snapshot->checkpoint, from));
    return copy_vectors(snapshot, from);
}

void dt__snapshot_free(struct dt__snapshot *snapshot)
{
    dt_checkpoint_free(&snapshot->checkpoint);
    *snapshot = (struct dt__snapshot){0};
}
