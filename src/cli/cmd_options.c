/* dtrain options: the table of options, in the form that is asked for. */
#include <string.h>

#include "cli/cli.h"

dt_status cmd_options(int argc, char **argv)
{
    static const char *const flags[] = {[DT_DESCRIBE_TEXT] = "--text",
                                        [DT_DESCRIBE_MARKDOWN] = "--markdown",
                                        [DT_DESCRIBE_MANUAL] = "--man",
                                        [DT_DESCRIBE_SCHEMA] = "--json-schema"};
    enum { FORMS = sizeof flags / sizeof *flags };
    const char *what = NULL;
    int form = DT_DESCRIBE_TEXT;
    for (int i = 1; i < argc; i++) {
        int f = 0;
        while (f < FORMS && strcmp(argv[i], flags[f]))
            f++;
        if (f < FORMS)
            form = f;
        else if (argv[i][0] != '-' && !what)
            what = argv[i];
        else
            return dt_fail(DT_EUSAGE,
                           "options: %s: expected a section or a key, and --markdown, --man or "
                           "--json-schema or nothing",
                           argv[i]);
    }
    return dt_config_describe(stdout, (enum dt_describe)form, what);
}
