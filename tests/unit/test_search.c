/* A search without ranks: its space and draws, its journal, the choice of members, and a network
 * that is the mean of several. Fails if a value leaves its range, a draw depends on other keys, an
 * incomplete line counts, a member is chosen twice or makes the mean worse, or the mean is one of
 * logits instead of predictions. */
#include <math.h>

#include "model_text.h"
#include "search/search.h"
#include "suite.h"

/* ---- the space ------------------------------------------------------------------------------ */

#define EXPECT_REFUSED(text, message) EXPECT_FAIL(dt__space_parse(text, &space), DT_EUSAGE, message)

START_TEST(draws_are_from_the_space)
{
    struct dt__space space;
    int seen[3] = {0}, dropped = 0;
    EXPECT_OK(dt__space_parse("train.lr = log 1e-4..1e-1 ;model.hidden=64|128 | 256,128; "
                              "train.batch=32..34; model.dropout=0|0.1..0.4;"
                              "model.activation=turn relu|tanh",
                              &space));
    ck_assert_int_eq((int)space.axes, 5);
    for (int t = 0; t < 200; t++) {
        char *lr, *hidden, *batch, *dropout, *activation, *end;
        EXPECT_OK(dt__space_draw(&space, 7, t, 0, &lr));
        EXPECT_OK(dt__space_draw(&space, 7, t, 1, &hidden));
        EXPECT_OK(dt__space_draw(&space, 7, t, 2, &batch));
        EXPECT_OK(dt__space_draw(&space, 7, t, 3, &dropout));
        EXPECT_OK(dt__space_draw(&space, 7, t, 4, &activation));
        const double rate = dt__real_read(lr, &end), drop = dt__real_read(dropout, &end);
        EXPECT(rate >= 1e-4 && rate <= 1e-1);
        EXPECT(!strcmp(hidden, "64") || !strcmp(hidden, "128") || !strcmp(hidden, "256,128"));
        EXPECT(strlen(batch) == 2 && batch[1] >= '2' && batch[1] <= '4');
        seen[batch[1] - '2']++;
        EXPECT(drop == 0 || (drop >= 0.1 && drop <= 0.4));
        dropped += drop > 0;
        EXPECT(!strcmp(activation, t % 2 ? "tanh" : "relu"));
        char *all[] = {lr, hidden, batch, dropout, activation};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            dt_free(all[i]);
    }
    for (int i = 0; i < 3; i++)
        EXPECT(seen[i] > 40); /* 200 draws of three equally likely values */
    EXPECT(dropped > 70 && dropped < 130);
    dt__space_free(&space);
}
END_TEST

/* Half of the draws from three decades are below their geometric mean, and each seed has other
 * draws. */
START_TEST(log_draws_are_even_over_decades)
{
    struct dt__space space;
    int below_mean = 0, same = 0;
    EXPECT_OK(dt__space_parse("train.lr=log 1e-4..1e-1", &space));
    for (int t = 0; t < 400; t++) {
        char *value, *other, *end;
        EXPECT_OK(dt__space_draw(&space, 1, t, 0, &value));
        EXPECT_OK(dt__space_draw(&space, 2, t, 0, &other));
        below_mean += dt__real_read(value, &end) < sqrt(1e-4 * 1e-1);
        same += !strcmp(value, other);
        dt_free(value);
        dt_free(other);
    }
    EXPECT(below_mean > 160 && below_mean < 240 && same < 5);
    dt__space_free(&space);
}
END_TEST

START_TEST(wrong_spaces_are_refused)
{
    struct dt__space space;
    EXPECT_REFUSED("train.lr", "expected KEY=VALUES");
    EXPECT_REFUSED("train.lrr=1|2", "did you mean train.lr");
    EXPECT_REFUSED("train.lr=log 0..1", "0 below LOW");
    EXPECT_REFUSED("train.lr=2..1", "LOW below HIGH");
    EXPECT_REFUSED("train.lr=log 0.1", "expected log LOW..HIGH");
    EXPECT_REFUSED("train.lr=0.1|", "a value is missing");
    EXPECT_REFUSED("train.batch=1.5..3", "expected an integer");
    EXPECT_REFUSED("train.lr=1|2; train.lr=3", "appears twice");
    EXPECT_REFUSED("run.dir=a|b", "all trials have the same");
    EXPECT_REFUSED("data.label=a|b", "all trials have the same");
    EXPECT_REFUSED("train.loss=mse|mae", "all trials have the same");
    EXPECT_REFUSED("model.activation=relu|sinus", "expected one of");
}
END_TEST

/* The default space lies around the settings of a run, and is within what each key takes. */
START_TEST(the_default_space_is_a_space)
{
    static const struct {
        const char *key, *expected;
    } cases[] = {{"train.lr=0.006", "train.lr=log 0.002..0.012"},
                 {"train.lr=0", "train.lr=log"},
                 {"train.weight_decay=1e9", "train.weight_decay=log"},
                 {"model.hidden=40,30", "model.hidden=20|40|80|20,20|40,40|80,80|20,20,20|"},
                 {"model.hidden=1", "model.hidden=1|2|4|1,1|"},
                 {"model.dropout=0.4", "model.dropout=0.2..0.6"},
                 {"model.dropout=0.95", "model.dropout=0.475..0.95"},
                 {"data.encode_bins=2", "data.encode_bins=log 2..4"},
                 {"data.encode_bins=256", "data.encode_bins=log 128..256"}};
    static const float x[40] = {1, 2, 3}, target[40] = {1, 2, 3};
    const struct dt_arrays arrays = {
        .size = sizeof arrays, .rows = 40, .features = 1, .targets = 1, .x = x, .target = target};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dt_config config;
        struct dt_source *rows;
        struct dt__space space;
        char *text;
        EXPECT_OK(dt__config_init(&config));
        EXPECT_OK(dt_config_set(&config, "run.preset=table"));
        EXPECT_OK(dt_config_set(&config, "model.task=regress"));
        EXPECT_OK(dt_config_set(&config, "data.encode=normal"));
        EXPECT_OK(dt__source_from_arrays(&config, &arrays, NULL, &rows));
        EXPECT_OK(dt_config_set(&config, "data.encode=auto"));
        EXPECT_OK(dt_config_set(&config, cases[i].key));
        EXPECT_OK(dt__space_usual(&config, rows, &text));
        EXPECT(strstr(text, cases[i].expected));
        EXPECT_OK(dt__space_parse(text, &space));
        dt__space_free(&space);
        dt_free(text);
        dt__source_destroy(rows);
        dt__config_free(&config);
    }
}
END_TEST

/* ---- the journal ---------------------------------------------------------------------------- */

static void file_write(const char *path, const char *text)
{
    EXPECT_OK(dt__file_write(path, text, strlen(text), NULL, NULL));
}

START_TEST(the_journal_continues_after_complete_lines)
{
    char dir[64], *text;
    size_t length;
    struct dt__journal journal;
    scratch_enter(dir);
    const char whole[] =
        "{\"kind\":\"trial\",\"trial\":0,\"status\":\"completed\",\"score\":0.25}\n"
        "{\"kind\":\"trial\",\"trial\":1,\"status\":\"diverged\"}\n"
        "{\"kind\":\"trial\",\"trial\":1,\"epochs\":2,\"status\":\"completed\","
        "\"score\":3}\n";
    char incomplete[512];
    snprintf(incomplete, sizeof incomplete, "%s{\"kind\":\"trial\",\"trial\":2,\"sta", whole);
    file_write("search.jsonl", incomplete);
    EXPECT_OK(dt__journal_open(".", 3, &journal));
    ck_assert(journal.whole[0].known && journal.whole[0].score == 0.25);
    ck_assert(journal.whole[1].known && isinf(journal.whole[1].score));
    ck_assert(journal.first[1].known && journal.first[1].score == 3);
    ck_assert(!journal.whole[2].known && !journal.finished);
    struct dt_json line = {0};
    dt__json_start(&line);
    dt__json_text(&line, "kind", "finish");
    EXPECT_OK(dt__journal_add(&journal, &line));
    dt__json_free(&line);
    dt__journal_close(&journal);
    EXPECT_OK(dt__file_read("search.jsonl", 1000, &text, &length));
    ck_assert(!strncmp(text, whole, strlen(whole)));
    const char last[] = "{\"kind\":\"finish\",\"time_unix\":";
    ck_assert(!strncmp(text + strlen(whole), last, strlen(last)));
    dt_free(text);
    EXPECT_OK(dt__journal_open(".", 1, &journal)); /* fewer trials than before */
    ck_assert(journal.finished);
    dt__journal_close(&journal);
    file_write("search.jsonl", "{\"kind\":\"trial\",\"trial\":-1}\n");
    EXPECT_FAIL(dt__journal_open(".", 1, &journal), DT_EFORMAT, "search.jsonl:1");
    scratch_leave(dir);
}
END_TEST

START_TEST(scores_are_compared_at_six_digits)
{
    ck_assert(dt__score_round(0.12345649) == dt__score_round(0.12345551));
    ck_assert(dt__score_round(0.1234561) != dt__score_round(0.1234569));
    ck_assert(isinf(dt__score_round(NAN)));
}
END_TEST

/* ---- members -------------------------------------------------------------------------------- */

enum { ROWS = 4, TRIALS = 5 };

/* Chooses members from trials with these errors: the first two cancel each other, the third is
 * better alone, the fourth equals the first, the fifth is bad. */
static void members_choose(struct dt_config *config, struct dt__members *out)
{
    static const float target[ROWS] = {1, 2, 3, 4}, x[ROWS] = {0};
    static const float error[TRIALS][ROWS] = {
        {2, -2, 2, -2}, {-2, 2, -2, 2}, {1, 1, 1, 1}, {2, -2, 2, -2}, {9, 9, 9, 9}};
    const struct dt_arrays arrays = {
        .size = sizeof arrays, .rows = ROWS, .features = 1, .targets = 1, .x = x, .target = target};
    struct dt__fold fold = {0};
    const struct dt__search search = {.config = config, .folds = 1, .fold = &fold};
    struct dt__verdict verdict[TRIALS] = {{0}};
    struct dt__scorer scorer = {0};
    struct dt_checkpoint like = {.desc = desc_of("linear", 1, 1, DT_TASK_REGRESS)};
    EXPECT_OK(dt_config_set(config, "model.task=regress"));
    EXPECT_OK(dt_config_set(config, "data.normalize_target=no"));
    EXPECT_OK(dt_config_set(config, "search.trials=5"));
    EXPECT_OK(dt_config_set(config, "run.dir=."));
    EXPECT_OK(dt__source_from_arrays(config, &arrays, NULL, &fold.held_out));
    EXPECT_OK(dt__scorer_make(&search, &like, &scorer));
    for (int t = 0; t < TRIALS; t++) {
        char path[64];
        float outputs[ROWS], *mean[] = {outputs};
        snprintf(path, sizeof path, "trials/%04d", t);
        EXPECT_OK(dt__dir_make(path));
        for (int r = 0; r < ROWS; r++)
            outputs[r] = target[r] + error[t][r];
        snprintf(path, sizeof path, "trials/%04d/held-out.f32", t);
        EXPECT_OK(dt__file_write(path, outputs, sizeof outputs, NULL, NULL));
        verdict[t].known = true;
        EXPECT_OK(dt__scorer_score(&search, &scorer, mean, &verdict[t].score));
    }
    ck_assert_double_eq(verdict[0].score, 2);
    ck_assert_double_eq(verdict[2].score, 1);
    EXPECT_OK(dt__members_choose(&search, &scorer, verdict, out));
    dt__scorer_free(&scorer, 1);
    dt__source_destroy(fold.held_out);
}

/* Trial 2 alone has an rmse of 1; trials 2 and 0 together have errors .5 + (1, -1), an rmse of
 * 1.118, and no pair is better than trial 2 alone. */
START_TEST(the_choice_stops_if_no_member_helps)
{
    char dir[64];
    struct dt_config config;
    struct dt__members members;
    scratch_enter(dir);
    EXPECT_OK(dt__config_init(&config));
    members_choose(&config, &members);
    ck_assert_int_eq(members.count, 1);
    ck_assert_int_eq(members.trial[0], 2);
    ck_assert_double_eq(members.score, 1);
    dt_free(members.trial);
    dt__config_free(&config);
    scratch_leave(dir);
}
END_TEST

/* ---- the mean of networks ------------------------------------------------------------------- */

enum { NIN = 5, BATCH = 7 };

static void network_predict(const struct dt_model_desc *desc, const float *params, const float *x,
                            float *out, float *spread)
{
    struct dt_model *model;
    struct dt_network *network;
    const struct dt_batch batch = {.rows = BATCH, .ndense = NIN, .x = x};
    EXPECT_OK(dt__model_create(desc, &model));
    EXPECT_OK(dt__network_create(model, BATCH, DT_PRECISION_F32, &network));
    EXPECT_OK(dt__network_forward(network, params, &batch, out));
    if (spread) dt__network_spread(network, BATCH, spread);
    dt__model_predict(model, out, BATCH, out);
    dt__network_destroy(network);
    dt__model_destroy(model);
}

/* Whatever the task, the mean is that of the members' predictions. */
START_TEST(the_mean_is_that_of_predictions)
{
    static const struct {
        int task, loss, nout;
    } cases[] = {{DT_TASK_CLASSIFY, DT_LOSS_AUTO, 1},    {DT_TASK_CLASSIFY, DT_LOSS_AUTO, 3},
                 {DT_TASK_REGRESS, DT_LOSS_AUTO, 2},     {DT_TASK_REGRESS, DT_LOSS_POISSON, 1},
                 {DT_TASK_REGRESS, DT_LOSS_QUANTILE, 6}, {DT_TASK_MULTILABEL, DT_LOSS_AUTO, 2}};
    float *x = randoms(BATCH * NIN, 1);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        static const char *const text[] = {"dense 4 relu, dropout 0.5", "linear",
                                           "dropout 0.1, dense 3 tanh, wide"};
        float *params[3], single[BATCH * 6], mean[BATCH * 6] = {0}, all[BATCH * 6],
                                                          spread[BATCH * 6];
        struct dt_model_desc desc = desc_of("", NIN, cases[c].nout, cases[c].task);
        size_t count[3], total = 0;
        desc.loss = cases[c].loss;
        desc.quantiles =
            cases[c].loss == DT_LOSS_QUANTILE ? (char *)(uintptr_t) "0.1,0.5,0.9" : NULL;
        const int width =
            cases[c].nout == 1 && cases[c].task == DT_TASK_CLASSIFY ? 2 : cases[c].nout;
        for (int m = 0; m < 3; m++) {
            struct dt_model *model;
            desc.layers = (char *)(uintptr_t)text[m];
            EXPECT_OK(dt__model_create(&desc, &model));
            count[m] = model->params;
            total += count[m];
            params[m] = randoms(count[m], 10 + (uint64_t)m);
            network_predict(&desc, params[m], x, single, NULL);
            for (int i = 0; i < BATCH * width; i++)
                mean[i] += single[i] / 3;
            dt__model_destroy(model);
        }
        desc.layers = (char *)(uintptr_t) "mean(dense 4 relu, dropout 0.5 | linear|dropout 0.1, "
                                          "dense 3 tanh, wide )";
        float *joined = randoms(total, 20);
        for (int m = 0, at = 0; m < 3; at += (int)count[m++])
            memcpy(joined + at, params[m], count[m] * sizeof *joined);
        network_predict(&desc, joined, x, all, spread);
        for (int i = 0; i < BATCH * width; i++) {
            EXPECT(fabsf(all[i] - mean[i]) <= 2e-6f * (1 + fabsf(mean[i])));
            EXPECT(spread[i] > 0 && isfinite(spread[i]));
        }
        for (int m = 0; m < 3; m++)
            dt_free(params[m]);
        dt_free(joined);
    }
    dt_free(x);
}
END_TEST

START_TEST(wrong_means_are_refused)
{
    static const char *const texts[] = {"mean(linear",       "mean()",
                                        "mean(linear|)",     "mean(mean(linear)|linear)",
                                        "mean(linear) relu", "dense 3, mean(linear)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct dt_model_desc desc = desc_of(texts[i], NIN, 1, DT_TASK_REGRESS);
        struct dt_model *model;
        ck_assert_int_eq(dt__model_create(&desc, &model), DT_EUSAGE);
    }
}
END_TEST

SUITE("search", draws_are_from_the_space, log_draws_are_even_over_decades, wrong_spaces_are_refused,
      the_default_space_is_a_space, the_journal_continues_after_complete_lines,
      scores_are_compared_at_six_digits, the_choice_stops_if_no_member_helps,
      the_mean_is_that_of_predictions, wrong_means_are_refused)
