/* Trains with a configuration file; the library starts MPI:
 *     cc train_file.c $(pkg-config --cflags --libs dtrain) -o train_file
 *     mpirun -np 3 ./train_file [search] CONFIG.ini [section.key=value ...]
 * With `search` it trains the trials of search.*, and writes one model made of the best.
 * SIGTERM and ^C save a checkpoint first; run it again to continue. */
#include <dtrain/dtrain.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Prints log lines to stdout, with their level's number. */
static void print_line(void *arg, enum dt_log_level level, const char *line)
{
    (void)arg;
    printf("[%d] %s\n", (int)level, line);
}

/* Reads the file, then the settings of the command line, which override it. */
static dt_status read_settings(struct dt_config *config, int argc, char **argv)
{
    dt_status status = dt_config_read_text(config, "defaults", "run.log_steps=1000");
    if (!status) status = dt_config_read_file(config, argv[1]);
    for (int i = 2; !status && i < argc; i++)
        status = dt_config_set(config, argv[i]);
    return status;
}

static void print_settings(const struct dt_config *config)
{
    char *text;
    if (dt_config_print(config, &text)) return;
    printf("%s", text);
    dt_free(text);
}

int main(int argc, char **argv)
{
    struct dt_world *world = NULL;
    struct dt_config *config = NULL;
    const bool searches = argc > 1 && !strcmp(argv[1], "search");
    argc -= searches, argv += searches;
    if (argc < 2) {
        fprintf(stderr, "usage: train_file [search] CONFIG.ini [section.key=value ...]\n");
        return 2;
    }
    dt_status status = dt_stop_install(); /* before MPI starts */
    if (!status) status = dt_world_create(&world);
    const int rank = world ? dt_world_rank(world) : 0;
    if (rank == 0) dt_log_set_sink(print_line, NULL);
    if (!status) status = dt_config_create(&config);
    /* Every rank reads the same settings, so all fail together. */
    if (!status) status = read_settings(config, argc, argv);
    if (!status) status = searches ? dt_search(world, config) : dt_train(world, config, NULL);
    if (!status && rank == 0) {
        print_settings(config); /* includes the settings that the run chose */
        printf("dtrain %s: trained by %d ranks\n", dt_version(), dt_world_size(world));
    }
    if (status && rank == 0) fprintf(stderr, "%s\n", dt_error_text());
    dt_config_destroy(config);
    if (world) dt_world_destroy(world);
    return dt_status_exit_code(status);
}
