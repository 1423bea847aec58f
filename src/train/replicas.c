/* The assignment of replicas to workers and groups. */
#include "train/replicas.h"

int dt__part_begin(int n, int parts, int index)
{
    return (int)((int64_t)n * index / parts);
}

dt_status dt__choose_groups(struct dt_job *job)
{
    const struct dt_bank *bank = job->bank;
    const int asked = (int)job->config->train.groups, hosts = job->world->hosts;
    const bool grouped = dt__is_grouped(job);
    const struct dt_config *before = &bank->start.before; /* zeros in a new run */
    const bool were = before->train.local_steps > 1 || before->train.wire != DT_WIRE_F32;
    job->groups = asked ? asked : were ? (int)before->train.groups : 0;
    if (!job->replicas) job->replicas = job->world->workers;
    if (!bank->start.resumed && !job->config->run.replicas && grouped &&
        job->replicas < job->groups)
        job->replicas = job->groups;
    if (!job->groups) job->groups = hosts < job->replicas ? hosts : job->replicas;
    if (!grouped || job->groups <= job->replicas) return DT_OK;
    return dt_fail(DT_EUSAGE, "train.groups=%d: expected at most run.replicas=%d", job->groups,
                   job->replicas);
}

int dt__group_begin(const struct dt_job *job, int group)
{
    return dt__part_begin(job->replicas, job->groups, group);
}

dt_status dt__assign_replicas(struct dt_job *job)
{
    const int workers = job->world->workers, replicas = job->replicas;
    const int groups = dt__is_grouped(job) ? job->groups : 1;
    DT_TRY(
        DT__ARENA_ALLOC(&job->arena, "replica table", DT__TABLE(job->worker_of, (size_t)replicas)));
    for (int g = 0, worker = 0; g < groups; g++) {
        const int begin = dt__part_begin(replicas, groups, g);
        const int count = dt__part_begin(replicas, groups, g + 1) - begin;
        int members = 1;
        if (workers >= groups) {
            worker = dt__part_begin(workers, groups, g);
            members = dt__part_begin(workers, groups, g + 1) - worker;
        } else { /* each worker has one or more whole groups */
            worker += dt__part_begin(groups, workers, worker + 1) <= g;
        }
        for (int m = 0, first, n; m < members; m++) {
            dt__replicas_assign(members, m, count, &first, &n);
            for (int r = first; r < first + n; r++)
                job->worker_of[begin + r] = worker + m;
        }
    }
    return DT_OK;
}

void dt__worker_replicas(const struct dt_job *job, int worker, int *first, int *count)
{
    *first = *count = 0;
    for (int r = job->replicas - 1; r >= 0; r--) {
        if (job->worker_of[r] != worker) continue;
        *first = r;
        ++*count;
    }
}

int dt__idle_workers(const struct dt_job *job)
{
    int busy = 1;
    for (int r = 1; r < job->replicas; r++)
        busy += job->worker_of[r] != job->worker_of[r - 1];
    return job->world->workers - busy;
}

double dt__group_part(const struct dt_group *group, uint64_t begin, uint64_t end)
{
    const struct dt_job *job = group->job;
    const uint64_t all = dt__samples_at(job, end) - dt__samples_at(job, begin);
    uint64_t rows = 0;
    for (uint64_t step = begin; step < end; step++)
        for (int r = group->first; r < group->first + group->count; r++)
            rows += dt__plan_local_batch(job->plan, step, r).count;
    return all ? (double)rows / (double)all : 0;
}

float *dt__local_vector(const struct dt_job *job, int group, int index)
{
    const struct dt_group *at = job->steps->local->group;
    while (at->index != group)
        at++;
    const bool state = index < job->rules->optimizer.nstate;
    return state ? dt__exchange_vectors(at->exchange)[1 + index] : at->difference;
}

float **dt__group_vector(struct dt_bank *bank, int group, int index)
{
    struct dt_checkpoint *state = &bank->state;
    const bool own = index < bank->job->rules->optimizer.nstate;
    return own ? &state->group_state[group * state->group_nstate + index]
               : &state->group_difference[group];
}

/* ---- what the start says ------------------------------------------------------------------ */

void dt__groups_print(const struct dt_bank *bank)
{
    const struct dt_job *job = bank->job;
    const struct dt_config *config = job->config;
    const double mb = dt__weights_mb(job), all = mb * job->groups;
    const bool local = job->mode == DT_MODE_SYNC && config->train.local_steps > 1;
    char word[16];
    if (local && job->groups == 1)
        dt__warn("train.local_steps saves nothing, and changes the result: all replicas are one "
                 "group, which has no other to exchange with (train.groups)");
    else if ((local || dt__is_rounded(job)) && job->world->hosts == 1)
        dt__info("all groups are on this host: train.local_steps and train.wire save time only "
                 "between hosts");
    if (local && job->groups > 1)
        dt__info("local steps: %d groups exchange every %lld steps%s (outer rate %g, momentum %g); "
                 "the optimizer states of the groups take %.4g MB each on the workers, at the bank "
                 "and in a checkpoint",
                 job->groups, (long long)config->train.local_steps,
                 config->train.local_after ? ", from train.local_after on" : "",
                 config->train.outer_lr, config->train.outer_momentum,
                 all * job->rules->optimizer.nstate);
    if (local && config->train.overlap)
        dt__info("overlap: groups exchange while the next round computes; their differences take "
                 "%.4g MB at the groups, %.4g MB at the bank and in each checkpoint",
                 2 * all, all);
    dt__config_choice(DT_WIRE_CHOICES, config->train.wire, word);
    if (dt__is_rounded(job))
        dt__info("wire: the sums of %d group%s, and each update, are rounded to %s; the rounding "
                 "errors take %.4g MB at the bank, and at most that in a checkpoint",
                 job->groups, job->groups == 1 ? "" : "s", word, all + mb);
    else if (config->train.wire != DT_WIRE_F32)
        dt__info("wire: nothing leaves this host: train.wire=%s has no effect", word);
}

void dt__groups_record(const struct dt_job *job, struct dt_json *record)
{
    const struct dt_config *config = job->config;
    char word[16];
    if (dt__is_grouped(job)) dt__json_int(record, "groups", job->groups);
    if (config->train.local_steps > 1) {
        dt__json_int(record, "local_steps", config->train.local_steps);
        dt__json_text(record, "overlap", config->train.overlap ? "yes" : "no");
    }
    if (dt__is_rounded(job))
        dt__json_text(record, "wire", dt__config_choice(DT_WIRE_CHOICES, config->train.wire, word));
}
