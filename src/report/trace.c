/* The phases of each rank over time, for a viewer of Chrome traces (chrome://tracing,
 * ui.perfetto.dev).
 *
 * A rank records each change of phase, which costs one reading of the clock, in a ring of fixed
 * size; of a long run only the end is kept. When the run ends, the bank writes the rings of all
 * ranks as one JSON file. Times count from the creation of the trace, which all ranks do at the
 * same time, so the clocks of the hosts need not agree.
 *
 * Source: "Trace Event Format", Chromium project. */
#include <string.h>

#include "report/internal.h"

enum { EVENTS = 16384 };

/* A shorter phase is merged into the next or the previous one. */
static const double LEAST_SECS = 2e-6;

struct event {
    double start; /* seconds since the trace was made */
    float secs;
    int32_t phase;
    uint64_t step;
};

/* A trace has no pointers, so that it can be sent as bytes. */
struct dt_trace {
    char name[DT_TRACE_NAME];
    double made; /* clock of the creation */
    uint64_t count;
    struct event open; /* the current phase; its duration is not known yet */
    struct event events[EVENTS];
};

static const char *const PHASE_WORDS[] = {
    [DT_PHASE_IDLE] = "idle",         [DT_PHASE_DATA] = "data",
    [DT_PHASE_COMPUTE] = "compute",   [DT_PHASE_WAIT] = "wait for weights",
    [DT_PHASE_REDUCE] = "reduce",     [DT_PHASE_EXCHANGE] = "exchange and update",
    [DT_PHASE_SERVE] = "serve",       [DT_PHASE_SYNC] = "synchronization point",
    [DT_PHASE_EVALUATE] = "evaluate", [DT_PHASE_SAVE] = "save",
    [DT_PHASE_LOAD] = "load"};

dt_status dt__trace_create(const char *name, struct dt_trace **out)
{
    DT_TRY(dt__alloc(1, sizeof **out, "a trace", out));
    snprintf((*out)->name, sizeof(*out)->name, "%s", name);
    (*out)->made = dt__clock_secs();
    return DT_OK;
}

void dt__trace_destroy(struct dt_trace *trace)
{
    dt_free(trace);
}

void dt__trace_phase(struct dt_trace *trace, enum dt_phase phase, uint64_t step)
{
    if (!trace) return;
    struct event *open = &trace->open, *last;
    double now = dt__clock_secs() - trace->made;
    if ((int)phase == open->phase && step == open->step) return;
    if (now - open->start >= LEAST_SECS) {
        open->secs = (float)(now - open->start);
        trace->events[trace->count++ % EVENTS] = *open;
        *open = (struct event){now, 0, (int32_t)phase, step};
        return;
    }
    /* The open phase was too short to keep. If the new phase is the one before it, that one
     * continues. */
    last = trace->count ? &trace->events[(trace->count - 1) % EVENTS] : NULL;
    if (last && last->phase == (int)phase && last->step == step) {
        *open = *last;
        trace->count--;
    } else {
        open->phase = (int32_t)phase;
        open->step = step;
    }
}

const void *dt__trace_bytes(struct dt_trace *trace, size_t *out_length)
{
    dt__trace_phase(trace, DT_PHASE_IDLE, UINT64_MAX); /* ends the open phase */
    *out_length = sizeof *trace;
    return trace;
}

/* ---- the file ------------------------------------------------------------------------------- */

struct writing {
    int fd, ranks;
    const char *path;
    const struct dt_trace *traces;
    struct dt_text text;
};

static void add_rank(struct writing *writing, int rank)
{
    const struct dt_trace *trace = &writing->traces[rank];
    struct dt_text *text = &writing->text;
    dt__text_add(text,
                 "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,"
                 "\"args\":{\"name\":",
                 rank ? ",\n" : "", rank);
    dt__json_add_string(text, trace->name);
    dt__text_add(text, "}}");
    uint64_t kept = trace->count < EVENTS ? trace->count : EVENTS;
    for (uint64_t i = trace->count - kept; i < trace->count && !text->status; i++) {
        const struct event *event = &trace->events[i % EVENTS];
        if (event->phase == DT_PHASE_IDLE) continue;
        dt__text_add(text,
                     ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":0,\"ts\":%.1f,"
                     "\"dur\":%.1f,\"args\":{\"step\":%llu}}",
                     PHASE_WORDS[event->phase], rank, event->start * 1e6, (double)event->secs * 1e6,
                     (unsigned long long)event->step);
    }
}

static dt_status flush(struct writing *writing)
{
    struct dt_text *text = &writing->text;
    DT_TRY(text->status);
    DT_TRY(dt__fd_write(writing->fd, writing->path, text->data, text->length));
    dt__text_clear(text);
    return DT_OK;
}

static dt_status fill_trace(int fd, const char *path, void *arg)
{
    struct writing *writing = arg;
    writing->fd = fd;
    writing->path = path;
    dt__text_add(&writing->text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int rank = 0; rank < writing->ranks; rank++) {
        add_rank(writing, rank);
        DT_TRY(flush(writing));
    }
    dt__text_add(&writing->text, "\n]}\n");
    return flush(writing);
}

dt_status dt__trace_write(const char *path, const void *traces, int ranks)
{
    struct writing writing = {.traces = traces, .ranks = ranks};
    dt_status status = dt__file_write_by(path, fill_trace, &writing, NULL, NULL);
    dt__text_free(&writing.text);
    return status;
}
