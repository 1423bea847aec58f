/* `dtrain report`: writes runs and searches as one self-contained HTML page. */
#include <string.h>

#include "cli/cli.h"
#include "report/page.h"

dt_status cmd_report(int argc, char **argv)
{
    struct dt__names paths = {0}; /* of runs; a search adds the runs of its trials */
    size_t count = 0;
    struct dt_history **histories = NULL;
    struct dt_predictor **predictors = NULL;
    struct dt_page_run *runs = NULL;
    json_t *searches;
    dt_status status;
    if (argc < 3) return dt_fail(DT_EUSAGE, "report: expected RUN_DIR... OUT.html");
    /* If the page is forgotten, the last argument is a run, which must not be overwritten. */
    const char *out = argv[argc - 1], *dot = strrchr(out, '.');
    if (!dot || strcmp(dot, ".html") != 0 || dt__path_is_dir(out))
        return dt_fail(DT_EUSAGE, "%s: expected the page, a file whose name ends in .html", out);
    searches = json_array();
    for (int i = 1; i < argc - 1; i++)
        DT_GUARD(cli_is_search(argv[i]) ? cli_search_page(argv[i], searches, &paths)
                                        : dt__names_add(&paths, argv[i], strlen(argv[i])));
    count = paths.count;
    DT_GUARD(dt__alloc(count, sizeof *histories, "runs", &histories));
    DT_GUARD(dt__alloc(count, sizeof *predictors, "runs", &predictors));
    DT_GUARD(dt__alloc(count, sizeof *runs, "runs", &runs));
    for (size_t i = 0; i < count; i++) {
        DT_GUARD(dt_history_read(paths.items[i], &histories[i]));
        runs[i].history = histories[i];
        /* without a model, the page shows the numbers of classes in place of their names */
        if (dt__predictor_load(paths.items[i], &predictors[i])) continue;
        runs[i].labels = predictors[i]->file.schema.label_names;
        runs[i].nlabels = (size_t)predictors[i]->classes;
    }
    status = dt__page_write(out, runs, count, searches);
done:
    for (size_t i = 0; i < count; i++) {
        if (histories) dt_history_free(histories[i]);
        if (predictors) dt_predictor_close(predictors[i]);
    }
    json_decref(searches);
    dt__names_free(paths.items, paths.count);
    dt_free(histories);
    dt_free(predictors);
    dt_free(runs);
    return status;
}
