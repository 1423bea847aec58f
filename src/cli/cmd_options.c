/* `dtrain options`: prints the table of options in the requested form. */
#include <string.h>

#include "cli/cli.h"

dt_status cmd_options(int argc, char **argv)
{
    static const char flags[] = "--text|--markdown|--man|--json-schema"; /* in the order of enum
                                                                          * dt_describe */
    const char *what = NULL;
    int form = DT_DESCRIBE_TEXT;
    for (int i = 1; i < argc; i++) {
        const int flag = dt__config_choice_index(flags, argv[i]);
        if (flag >= 0)
            form = flag;
        else if (argv[i][0] != '-' && !what)
            what = argv[i];
        else
            return dt_fail(DT_EUSAGE,
                           "options: %s: expected a section or a key, and --markdown, --man or "
                           "--json-schema or nothing",
                           argv[i]);
    }
    return dt__config_describe(stdout, (enum dt_describe)form, what);
}
