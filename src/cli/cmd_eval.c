#include "cli/cli.h"
#include "dtrain/report.h"
#include "dtrain/train.h"

static dt_status measure_all(const struct cli_model *model, const struct dt_source *source,
                             struct dt_metrics *metrics)
{
    struct dt_measure *measure;
    uint64_t chunks = dt_measure_chunks(&model->config, source);
    DT_TRY(dt_measure_create(&model->config, source, model->network, 0, chunks, &measure));
    dt_status status = DT_OK;
    for (uint64_t c = 0; c < chunks && !status; c++)
        status = dt_measure_add(measure, model->file.params, c, metrics);
    dt_measure_destroy(measure);
    return status;
}

static dt_status print_metrics(const struct cli_model *model, struct dt_metrics *metrics)
{
    struct dt_metric_values values;
    char *line;
    dt_metrics_values(metrics, &values);
    DT_TRY(dt_metrics_json(&values, dt_metrics_confusion(metrics),
                           dt_metrics_classes(&model->file.spec), model->file.step, &line));
    puts(line);
    dt_free(line);
    return DT_OK;
}

static dt_status evaluate(const struct cli_model *model)
{
    struct dt_source *source = NULL;
    struct dt_metrics *metrics = NULL;
    dt_status status;
    DT_GUARD(dt_source_survey(&model->config, DT_PART_EVAL, &model->file.schema, &source));
    if (!source)
        DT_GUARD(dt_fail(DT_EUSAGE,
                         "%s was trained without held-out data: expected data.eval=FILES",
                         model->path));
    DT_GUARD(dt_metrics_create(&model->file.spec, &metrics));
    DT_GUARD(measure_all(model, source, metrics));
    status = print_metrics(model, metrics);
done:
    dt_metrics_destroy(metrics);
    dt_source_destroy(source);
    return status;
}

dt_status cmd_eval(int argc, char **argv)
{
    struct cli_model model;
    DT_TRY(cli_model_open(&model, argc, argv));
    dt_status status = evaluate(&model);
    cli_model_close(&model);
    return status;
}
