/* Descriptions of the options, all made from the table: for a terminal, as a Markdown table, as the
 * manual page dtrain-config(5), as a JSON Schema, and as words for shell completion. */
#include <jansson.h>
#include <string.h>

#include "base/embed.h"
#include "config/option.h"

/* ---- parts ---------------------------------------------------------------------------------- */

/* One sentence for each section. Test hooks have none. */
static const struct {
    const char *name, *about;
} SECTIONS[] = {
    {"run", "The run: its directory, seed, replicas and machine, and when it saves and logs."},
    {"data", "Files to train on and to measure on, and how their rows become numbers."},
    {"model", "The network."},
    {"train", "Batches, update rule, schedule, and how gradients and weights travel."},
    {"eval", "When the model is measured, and what makes it the best."},
    {"export", "Models for prediction."},
    {"report", "Further records of a run."},
    {"predict", "What dtrain predict reads and writes."},
    {"serve", "The HTTP server."},
    {"search", "Many trials in one job."},
    {"importance", "What each column is worth to a model."},
};

static const char RESUME[] =
    "whether a key may change when a run is resumed. free: it may, and no `change` record is "
    "written. recorded: it may, and a `change` record is written. fixed: it must stay the same.";

/* Writes the type and range, or the choices. Bounds of 1e6 and more only exclude nonsense, so they
 * are left out. */
static void option_range(const struct dt__option *option, char *buffer, size_t size)
{
    const char *type = option->type == DT__INT ? "integer" : "number";
    if (option->type == DT__CHOICE)
        snprintf(buffer, size, "%s", option->choices);
    else if (option->type == DT__BOOL)
        snprintf(buffer, size, "yes|no");
    else if (option->type == DT__TEXT)
        snprintf(buffer, size, "text");
    else if (option->min <= -1e6)
        snprintf(buffer, size, "%s", type);
    else if (option->max >= 1e6)
        snprintf(buffer, size, "%s >= %g", type, option->min);
    else
        snprintf(buffer, size, "%s %g to %.10g", type, option->min, option->max);
}

/* Returns what a resume may do with the option, in a phrase or (brief) in a word. FREE keys of the
 * network are other ways to write model.layers, which must stay the same, so they count as
 * fixed. */
static const char *resume_text(const struct dt__option *option, bool brief)
{
    static const char *const texts[][2] = {
        [DT__FREE] = {"may change", "free"},
        [DT__FIXED] = {"must stay the same", "fixed"},
        [DT__RECORDED] = {"may change, and is recorded", "recorded"}};
    if (!strcmp(option->section, "model") && option->resume == DT__FREE)
        return brief ? texts[DT__FIXED][1] : "must give the same layers as before";
    return texts[option->resume][brief];
}

/* Returns the next selected option after `option`, or the first one if it is NULL. `what` selects a
 * section or a key; NULL: all. Returns NULL after the last one. */
static const struct dt__option *option_next(const struct dt__option *option, const char *what)
{
    for (option = option ? option + 1 : dt__options; option < dt__options + DT__OPTION_COUNT;
         option++) {
        if (what && !strcmp(what, option->name)) return option;
        if (!dt__option_is_hidden(option) && (!what || !strcmp(what, option->section)))
            return option;
    }
    return NULL;
}

/* ---- text ----------------------------------------------------------------------------------- */

static int wider(int width, const char *text)
{
    int length = (int)strlen(text);
    return length > width ? length : width;
}

/* Describes one key in detail, or a section or all keys as a table. */
static void describe_text(FILE *out, const char *what)
{
    char range[128];
    int name = 0, initial = 0, type = 0;
    for (const struct dt__option *option = NULL; (option = option_next(option, what));) {
        option_range(option, range, sizeof range);
        name = wider(name, option->name);
        initial = wider(initial, option->initial);
        type = wider(type, range);
        if (!what || strcmp(what, option->name)) continue;
        fprintf(out, "%s = %s\n  %s\n\n  type      %s\n  resume    %s\n  commands  %s\n",
                option->name, option->initial, option->help, range, resume_text(option, false),
                option->commands);
        return;
    }
    initial = wider(initial, "default");
    fprintf(out, "resume: %s\n\n", RESUME);
    fprintf(out, "%-*s  %-*s  %-8s  %-*s  %s\n", name, "key", initial, "default", "resume", type,
            "type and range", "meaning");
    for (const struct dt__option *option = NULL; (option = option_next(option, what));) {
        option_range(option, range, sizeof range);
        fprintf(out, "%-*s  %-*s  %-8s  %-*s  %s\n", name, option->name, initial, option->initial,
                resume_text(option, true), type, range, option->help);
    }
}

/* ---- templates ------------------------------------------------------------------------------ */

void dt__template_print(FILE *out, const char *text, const struct dt__mark *marks)
{
    while (*text) {
        const struct dt__mark *mark = marks;
        while (mark->name && strncmp(text, mark->name, strlen(mark->name)))
            mark++;
        if (!mark->name) {
            fputc(*text++, out);
            continue;
        }
        mark->print(out);
        text += strlen(mark->name);
        text += *text == '\n';
    }
}

void dt__version_print(FILE *out)
{
    fprintf(out, "%s", DT_VERSION);
}

/* ---- Markdown ------------------------------------------------------------------------------- */

/* Writes a table cell, with each '|' escaped, since it would end the cell. */
static void markdown_cell(FILE *out, const char *text, bool code)
{
    const char *tick = code && *text ? "`" : "";
    fprintf(out, " %s", tick);
    for (; *text; text++)
        fprintf(out, "%s%c", *text == '|' ? "\\" : "", *text);
    fprintf(out, "%s |", tick);
}

static void describe_markdown(FILE *out, const char *what)
{
    char range[128];
    fprintf(out, "| key | default | type and range | on a resume | meaning |\n"
                 "| --- | --- | --- | --- | --- |\n");
    for (const struct dt__option *option = NULL; (option = option_next(option, what));) {
        option_range(option, range, sizeof range);
        fprintf(out, "|");
        markdown_cell(out, option->name, true);
        markdown_cell(out, option->initial, true);
        markdown_cell(out, range, false);
        markdown_cell(out, resume_text(option, false), false);
        markdown_cell(out, option->help, false);
        fprintf(out, "\n");
    }
}

/* ---- the manual page ------------------------------------------------------------------------ */

void dt__roff_text(FILE *out, const char *text)
{
    if (!*text) return;
    if (strchr(".'", *text)) fprintf(out, "\\&");
    for (; *text; text++) {
        if (!strncmp(text, "\n\n", 2)) {
            fprintf(out, "\n.IP\n");
            text++;
        } else if (*text == '\n') {
            fprintf(out, "%s", text[1] ? " " : "");
        } else {
            fprintf(out, "%s%c", strchr("\\-", *text) ? "\\" : "", *text == '\\' ? 'e' : *text);
        }
    }
    fprintf(out, "\n");
}

/* Settings for the table of combinations, each with a second setting that it needs to be valid. */
static const char *const COMBINED[][2] = {
    {"train.mode=async"},
    {"train.exchange=reduce"},
    {"run.reproducible=yes"},
    {"train.local_steps=32"},
    {"train.overlap=yes", "train.local_steps=32"},
    {"train.wire=q8"},
    {"train.lazy=yes"},
    {"train.optimizer=ftrl"},
    {"train.wide_optimizer=ftrl"},
    {"train.optimizer=lamb"},
    {"train.schedule=cosine"},
    {"train.schedule=plateau", "data.eval_fraction=0.1"},
    {"eval.dedicated=yes", "data.eval_fraction=0.1"},
    {"model.task=regress"},
    {"model.task=multilabel"},
    {"train.class_weight=balanced"},
    {"data.encode=ple"},
    {"data.augment=flip", "data.shape=8x8x1"},
};
enum { COMBINED_COUNT = sizeof COMBINED / sizeof *COMBINED };

/* Returns '+' if the rules allow both settings together, '.' if they do not, and ' ' if both are
 * values of the same key. */
static char combination(const char *const a[2], const char *const b[2])
{
    const char *const settings[] = {"data.train=rows", a[0], b[0], a[1], b[1]};
    const size_t key = strcspn(*a, "=") + 1;
    struct dt_config config;
    if (!strncmp(*a, *b, key)) return ' ';
    dt_status status = dt__config_init(&config);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && !status; i++)
        if (settings[i]) status = dt_config_set(&config, settings[i]);
    if (!status) status = dt__config_check(&config, 0);
    dt__config_free(&config);
    return status ? '.' : '+';
}

/* Writes the table of combinations: one row per setting, and one column, named by a letter. */
static void manual_combinations(FILE *out)
{
    for (int a = 0; a < COMBINED_COUNT; a++) {
        fprintf(out, "%-30s %c", COMBINED[a][0], 'a' + a);
        for (int b = 0; b < a; b++)
            fprintf(out, " %c", combination(COMBINED[a], COMBINED[b]));
        fprintf(out, "\n");
    }
    fprintf(out, "%-32s", "");
    for (int b = 0; b + 1 < COMBINED_COUNT; b++)
        fprintf(out, " %c", 'a' + b);
    fprintf(out, "\n");
}

static void manual_rules(FILE *out)
{
    for (int i = 0; dt__rule_messages[i]; i++) {
        fprintf(out, ".IP \\(bu 2\n");
        dt__roff_text(out, dt__rule_messages[i]);
    }
}

static void manual_sections(FILE *out)
{
    const char *section = "";
    for (const struct dt__option *option = NULL; (option = option_next(option, NULL));) {
        char range[128];
        if (strcmp(section, option->section)) {
            const char *about = "";
            for (size_t s = 0; s < sizeof SECTIONS / sizeof *SECTIONS; s++)
                if (!strcmp(SECTIONS[s].name, option->section)) about = SECTIONS[s].about;
            fprintf(out, ".SH SECTION [%s]\n%s\n", option->section, about);
        }
        section = option->section;
        option_range(option, range, sizeof range);
        fprintf(out, ".TP\n.B %s\n(", option->name);
        for (const char *at = range; *at; at++)
            fprintf(out, "%s%c", *at == '|' ? "\\:" : *at == '-' ? "\\" : "", *at);
        fprintf(out, "%s%s; %s)\n.br\n", *option->initial ? "; default " : "", option->initial,
                resume_text(option, false));
        dt__roff_text(out, option->help);
    }
}

DT__EMBED(dt__config_manual, "src/config/manual.roff");

/* Writes the manual page, which always covers all options: `what` is ignored. */
static void describe_manual(FILE *out, const char *what)
{
    static const struct dt__mark marks[] = {{"@VERSION@", dt__version_print},
                                            {"@SECTIONS@", manual_sections},
                                            {"@COMBINATIONS@", manual_combinations},
                                            {"@RULES@", manual_rules},
                                            {NULL, NULL}};
    (void)what;
    dt__template_print(out, dt__config_manual, marks);
}

/* ---- JSON Schema ---------------------------------------------------------------------------- */

static json_t *schema_of(const struct dt__option *option)
{
    const char *initial = option->initial, *help = option->help;
    const char *choices = option->type == DT__BOOL ? "yes|no" : option->choices;
    if (option->type == DT__INT || option->type == DT__REAL)
        return json_pack("{s:s, s:f, s:f, s:o, s:s}", "type",
                         option->type == DT__INT ? "integer" : "number", "minimum", option->min,
                         "maximum", option->max, "default",
                         json_loads(initial, JSON_DECODE_ANY, NULL), "description", help);
    if (option->type == DT__TEXT)
        return json_pack("{s:[s,s], s:s, s:s}", "type", "string", "number", "default", initial,
                         "description", help);
    json_t *list = option->type == DT__BOOL ? json_pack("[b,b]", 1, 0) : json_array();
    for (const char *choice = choices; choice; choice = strchr(choice, '|')) {
        choice += *choice == '|';
        json_array_append_new(list, json_stringn(choice, strcspn(choice, "|")));
    }
    return json_pack("{s:o, s:s, s:s}", "enum", list, "default", initial, "description", help);
}

static void describe_schema(FILE *out, const char *what)
{
    json_t *sections = json_object();
    json_t *schema =
        json_pack("{s:s, s:s, s:s, s:b, s:o}", "$schema", "http://json-schema.org/draft-07/schema#",
                  "title", "configuration of dtrain " DT_VERSION, "type", "object",
                  "additionalProperties", 0, "properties", sections);
    for (const struct dt__option *option = NULL; (option = option_next(option, what));) {
        if (!json_object_get(sections, option->section))
            json_object_set_new(sections, option->section,
                                json_pack("{s:s, s:b, s:{}}", "type", "object",
                                          "additionalProperties", 0, "properties"));
        json_t *section = json_object_get(sections, option->section);
        json_object_set_new(json_object_get(section, "properties"), option->key, schema_of(option));
    }
    json_dumpf(schema, out, JSON_INDENT(2));
    fprintf(out, "\n");
    json_decref(schema);
}

/* ---- all together --------------------------------------------------------------------------- */

dt_status dt__config_describe(FILE *out, enum dt_describe form, const char *what)
{
    static void (*const forms[])(FILE *, const char *) = {
        [DT_DESCRIBE_TEXT] = describe_text,
        [DT_DESCRIBE_MARKDOWN] = describe_markdown,
        [DT_DESCRIBE_MANUAL] = describe_manual,
        [DT_DESCRIBE_SCHEMA] = describe_schema,
    };
    const struct dt__option *option = option_next(NULL, what);
    if (!option) return dt__option_find(what, &option);
    forms[form](out, what);
    return DT_OK;
}

void dt__option_completions(FILE *out, const char *command)
{
    for (int i = 0; i < DT__OPTION_COUNT; i++) {
        const struct dt__option *option = &dt__options[i];
        if (dt__option_is_hidden(option) || !dt__option_is_for(option, command)) continue;
        const char *choices = option->type == DT__BOOL ? "yes|no" : option->choices;
        for (; choices && *choices;
             choices += strcspn(choices, "|") + (strchr(choices, '|') != NULL))
            fprintf(out, " %s=%.*s", option->name, (int)strcspn(choices, "|"), choices);
        if (!choices) fprintf(out, " %s=", option->name);
    }
}
