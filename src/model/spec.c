#include "dtrain/model.h"

#include <ctype.h>
#include <stdlib.h>

static const char *skip_blanks(const char *text)
{
    while (isblank((unsigned char)*text))
        text++;
    return text;
}

/* One width at *text, which moves behind it and a comma that follows. */
static bool parse_width(const char **text, int *out)
{
    const char *at = skip_blanks(*text);
    if (!isdigit((unsigned char)*at)) return false;
    char *end;
    long width = strtol(at, &end, 10);
    at = skip_blanks(end);
    if (width < 1 || width > DT_MAX_WIDTH) return false;
    if (*at == ',' && *skip_blanks(at + 1))
        at++;
    else if (*at)
        return false;
    *out = (int)width;
    *text = at;
    return true;
}

static dt_status parse_hidden(struct dt_model_spec *spec, const char *text)
{
    const char *at = text;
    do {
        if (spec->nhidden == DT_MAX_LAYERS - 1)
            return dt_fail(DT_EUSAGE, "model.hidden = %s: more than %d widths", text,
                           DT_MAX_LAYERS - 1);
        if (!parse_width(&at, &spec->hidden[spec->nhidden++]))
            return dt_fail(DT_EUSAGE,
                           "model.hidden = %s: expected widths from 1 to %d, separated by commas",
                           text, DT_MAX_WIDTH);
    } while (*at);
    return DT_OK;
}

dt_status dt_model_spec_init(struct dt_model_spec *spec, const struct dt_config *config)
{
    struct dt_model_spec made = {.kind = config->model.kind,
                                 .activation = config->model.activation,
                                 .task = config->model.task,
                                 .nin = spec->nin,
                                 .nout = spec->nout};
    if (made.kind == DT_KIND_MLP) {
        made.dropout = config->model.dropout;
        DT_TRY(parse_hidden(&made, config->model.hidden));
    }
    *spec = made;
    return DT_OK;
}
