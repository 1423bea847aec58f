/* `dtrain top`: shows a run, and redraws it every two seconds until q or ^C. Everything comes from
 * the run directory (its history, the age of the newest checkpoint), so it works on any host that
 * sees the directory, and for runs that have ended. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/internal.h"
#include "cli/cli.h"
#include "report/history.h"

enum { REFRESH_MS = 2000, CONTROL_C = 3 };

struct view {
    const char *dir;
    struct dt_history *run;
    bool live; /* the run has a status; false: it has ended, or started less than two seconds ago */
    /* kind of record that has the last step; after an early stop this is no train record */
    enum dt_record_kind reached;
    int width;    /* width of the terminal in columns */
    size_t lines; /* number of lines for ranks that fit */
    bool utf8;
};

/* ---- words ---------------------------------------------------------------------------------- */

/* Returns a duration as "2:03", "1:02:03" or "5d 01:02:03"; "?" if it is unknown. */
static const char *secs_format(double secs, char buffer[32])
{
    if (!(secs >= 0 && secs < 1e9)) return "?";
    unsigned long s = (unsigned long)secs;
    if (s < 3600)
        snprintf(buffer, 32, "%lu:%02lu", s / 60, s % 60);
    else if (s < 86400)
        snprintf(buffer, 32, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buffer, 32, "%lud %02lu:%02lu:%02lu", s / 86400, s / 3600 % 24, s / 60 % 60,
                 s % 60);
    return buffer;
}

/* Returns the value of a key in the run's status or, if it has none, in the last record of a
 * kind. */
static double status_real(const struct view *view, const char *key, enum dt_record_kind kind)
{
    const double value = dt_history_last(view->run, DT_RECORD_STATUS, key);
    return isnan(value) ? dt_history_last(view->run, kind, key) : value;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void progress_print(const struct view *view)
{
    char left[32], wall[32];
    const double step = fmax(0, status_real(view, "step", view->reached));
    const double secs = status_real(view, "wall_secs", view->reached);
    if (!view->live && isnan(secs)) {
        printf("nothing recorded yet\n");
        return;
    }
    const double total = dt_history_last(view->run, DT_RECORD_STATUS, "last_step");
    printf("step %.0f", step);
    if (total > 0) printf(" of %.0f", total);
    printf("  epoch %.2f  %s for %s", status_real(view, "epoch", view->reached),
           view->live ? "running" : "ran", secs_format(secs, wall));
    if (view->live && !strcmp(view->run->status, "running"))
        printf("  %s left",
               secs_format(dt_history_last(view->run, DT_RECORD_STATUS, "secs_left"), left));
    putchar('\n');
    const double fraction = total > 0 ? fmin(1, step / total) : 0;
    const int width = view->width > 100 ? 60 : view->width - 40, full = (int)(fraction * width);
    if (total > 0 && width >= 10) {
        printf("[");
        for (int i = 0; i < width; i++)
            printf("%s", i < full ? (view->utf8 ? "\u2588" : "#") : (view->utf8 ? "\u2591" : "."));
        printf("] %.1f %%\n", 100 * fraction);
    }
    const double loss = status_real(view, "loss", DT_RECORD_TRAIN);
    if (!isnan(loss))
        printf("loss %.6g  rate %.4g  ", loss, status_real(view, "lr", DT_RECORD_TRAIN));
    printf("%.0f samples/s\n", status_real(view, "samples_per_sec", view->reached));
}

/* Prints the training loss since the start, one mark per range of steps. */
static void sparkline_print(const struct view *view)
{
    static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                         "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char *const plain[] = {"_", ".", ",", "-", "=", "+", "*", "#"};
    enum { MOST = 100 };
    size_t marks, used = 0;
    double mark[MOST], low = INFINITY, high = -INFINITY;
    const size_t n = dt_history_count(view->run, DT_RECORD_TRAIN);
    marks = view->width > MOST + 8 ? MOST : view->width > 30 ? (size_t)view->width - 8 : 22;
    if (n < 2) return;
    if (marks > n) marks = n;
    for (size_t m = 0; m < marks; m++) {
        double sum = 0, count = 0;
        for (size_t i = m * n / marks; i < (m + 1) * n / marks; i++) {
            const double loss = dt_history_real(view->run, DT_RECORD_TRAIN, i, "loss");
            if (isfinite(loss)) sum += loss, count++;
        }
        sum /= 2 * count; /* half the mean, so that the difference of two is finite */
        if (!isfinite(sum)) continue;
        mark[used++] = sum;
        low = fmin(low, sum);
        high = fmax(high, sum);
    }
    printf("loss  ");
    for (size_t m = 0; m < used; m++) {
        int level = high > low ? (int)(7.999 * ((mark[m] - low) / (high - low))) : 0;
        printf("%s", view->utf8 ? blocks[level] : plain[level]);
    }
    putchar('\n');
}

static void models_print(const struct view *view)
{
    char path[4096], age[32];
    struct stat info;
    size_t best;
    double value;
    const char *metric = view->run->metric;
    if (dt_history_best(view->run, &best, &value)) {
        dt__text_print(stdout, "best %s %.6g at step %.0f, last %.6g at step %.0f\n", metric, value,
                       dt_history_real(view->run, DT_RECORD_EVAL, best, "step"),
                       dt_history_last(view->run, DT_RECORD_EVAL, metric),
                       dt_history_last(view->run, DT_RECORD_EVAL, "step"));
    }
    snprintf(path, sizeof path, "%s/ckpt/latest.h5", view->dir);
    if (stat(path, &info)) return;
    printf("last checkpoint %s ago", secs_format(difftime(time(NULL), info.st_mtime), age));
    if (dt_history_count(view->run, DT_RECORD_CHECKPOINT))
        printf(", step %.0f", dt_history_last(view->run, DT_RECORD_CHECKPOINT, "step"));
    putchar('\n');
}

/* Returns what a rank does. NULL: unknown, or it is at a synchronization point, as all ranks are
 * when the bank of a sync run writes the status. */
static const char *phase_of(const struct view *view, size_t i)
{
    const char *phase = dt_history_text(view->run, DT_RECORD_RANK, i, "phase");
    return phase && strcmp(phase, "synchronization") ? phase : NULL;
}

static void ranks_print(const struct view *view)
{
    static const struct {
        const char *key;
        double factor;
        int width, digits;
    } columns[] = {{"step", 1, 9, 0},
                   {"samples_per_sec", 1, 9, 0},
                   {"idle_secs", 1, 6, 1},
                   {"wait_share", 100, 5, 0}};
    const size_t ranks = dt_history_count(view->run, DT_RECORD_RANK);
    const size_t shown = ranks > view->lines ? view->lines - 1 : ranks;
    bool does = false;
    if (!ranks) return;
    for (size_t i = 0; i < ranks; i++)
        does |= phase_of(view, i) != NULL;
    printf("\nrank  %-12s  %-9s  %9s  %9s  %6s  %5s%s\n", "host", "role", "step", "samples/s",
           "idle s", "wait%", does ? "  does" : "");
    for (size_t i = 0; i < shown; i++) {
        const char *phase = phase_of(view, i);
        const char *wait = dt_history_text(view->run, DT_RECORD_RANK, i, "waits_for");
        printf("%4.0f  ", dt_history_real(view->run, DT_RECORD_RANK, i, "rank"));
        cli_print_text(dt_history_text(view->run, DT_RECORD_RANK, i, "host"), 12);
        printf("  ");
        cli_print_text(dt_history_text(view->run, DT_RECORD_RANK, i, "role"), 9);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
            double value = dt_history_real(view->run, DT_RECORD_RANK, i, columns[c].key);
            if (isnan(value))
                printf("  %*s", columns[c].width, "");
            else
                printf("  %*.*f", columns[c].width, columns[c].digits, columns[c].factor * value);
        }
        if (phase)
            dt__text_print(stdout, "  %s%s%s", phase, wait ? ", waits for " : "", wait ? wait : "");
        putchar('\n');
    }
    if (shown < ranks) printf("and %zu more, which --once shows\n", ranks - shown);
}

/* ---- the view ------------------------------------------------------------------------------- */

static dt_status view_show(struct view *view)
{
    char lock[4096];
    if (cli_is_search(view->dir)) return cli_search_show(view->dir);
    const dt_status status =
        view->run ? dt_history_update(view->run) : dt_history_read(view->dir, &view->run);
    snprintf(lock, sizeof lock, "%s/lock", view->dir);
    if (status && !view->run && dt__path_exists(lock)) {
        dt__text_print(stdout, "%s: no records yet\n", view->dir);
        return DT_OK;
    }
    DT_TRY(status);
    view->live = dt_history_count(view->run, DT_RECORD_STATUS) > 0;
    const bool beyond = dt_history_last(view->run, DT_RECORD_FINAL, "step") >
                        fmax(0, dt_history_last(view->run, DT_RECORD_TRAIN, "step"));
    view->reached = beyond ? DT_RECORD_FINAL : DT_RECORD_TRAIN;
    dt__text_print(stdout, "%s: %s", view->run->dir, view->run->status);
    if (view->live) {
        const char *host = dt_history_text(view->run, DT_RECORD_STATUS, 0, "host");
        dt__text_print(stdout, " on %s", host ? host : "");
        const double seen = dt_history_last(view->run, DT_RECORD_STATUS, "time_unix");
        if (!isnan(seen)) printf(", seen %.0f s ago", fmax(0, (double)time(NULL) - seen));
    }
    putchar('\n');
    progress_print(view);
    sparkline_print(view);
    models_print(view);
    ranks_print(view);
    return fflush(stdout) ? dt_fail(DT_EIO, "standard output: cannot write") : DT_OK;
}

/* Measures the terminal. Besides the ranks there are up to 9 lines before them, and one for the
 * cursor; with more, the first lines would scroll out of view. */
static void terminal_measure(struct view *view)
{
    enum { OTHERS = 10 };
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    view->width = known ? size.ws_col : 80;
    view->lines = known ? (size_t)(size.ws_row > OTHERS ? size.ws_row - OTHERS : 1) : SIZE_MAX;
}

/* Redraws the view until a key or signal ends it. The terminal cuts lines at its edge (mode 7), so
 * that each line keeps its place. Keys arrive one by one and without echo. ^C is such a key, too,
 * and signals wait, so the terminal is always restored. */
static dt_status view_watch(struct view *view)
{
    struct termios before, raw;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    bool keys = tcgetattr(STDIN_FILENO, &before) == 0;
    if (keys) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    dt_status status = DT_OK;
    struct pollfd in[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = signalfd(-1, &ends, SFD_CLOEXEC), .events = POLLIN}};
    if (in[1].fd < 0) status = dt_fail(DT_EIO, "top: no signals: %s", strerror(errno));
    for (char key = 0; !status && key != 'q' && key != 'Q' && key != CONTROL_C && !in[1].revents;) {
        terminal_measure(view);
        printf("\033[?7l\033[H\033[J");
        status = view_show(view);
        printf("\033[?7h");
        fflush(stdout);
        if (status || poll(in, 2, REFRESH_MS) <= 0 || !in[0].revents) continue;
        /* standard input has ended, so no key can be pressed */
        if (read(STDIN_FILENO, &key, 1) <= 0) poll(&in[1], 1, REFRESH_MS);
    }
    if (keys) tcsetattr(STDIN_FILENO, TCSANOW, &before);
    if (in[1].fd >= 0) close(in[1].fd);
    pthread_sigmask(SIG_UNBLOCK, &ends, NULL); /* a signal that has arrived ends the process here */
    return status;
}

dt_status cmd_top(int argc, char **argv)
{
    struct view view = {0};
    bool once = !isatty(STDOUT_FILENO);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--once"))
            once = true;
        else if (view.dir || *argv[i] == '-')
            return dt_fail(DT_EUSAGE, "top: expected one run directory, and --once or nothing");
        else
            view.dir = argv[i];
    }
    if (!view.dir) return dt_fail(DT_EUSAGE, "top: expected a run directory");
    setlocale(LC_CTYPE, "");
    view.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
    terminal_measure(&view);
    if (once) view.lines = SIZE_MAX;
    dt_status status = once ? view_show(&view) : view_watch(&view);
    dt_history_free(view.run);
    return status;
}
