/* Predicts the rows of a CSV file (only numbers, no header) with a model that dtrain has trained:
 *     cc predict.c $(pkg-config --cflags --libs dtrain) -o predict
 *     ./predict RUN_DIR rows.csv
 * Prints one line per row: the class and its probability, or the values. */
#include <dtrain/dtrain.h>

#include <stdio.h>
#include <stdlib.h>

/* Reads one row of features; false at the end of the file, or if the line is not a row. */
static bool read_row(FILE *in, float *row, int features)
{
    for (int i = 0; i < features; i++)
        if (fscanf(in, i ? ",%f " : "%f ", &row[i]) != 1) return false;
    return true;
}

static void print_answer(const struct dt_predictor *predictor, const float *answer, int class)
{
    if (dt_predictor_classes(predictor) == 0) {
        for (int i = 0; i < dt_predictor_width(predictor); i++)
            printf("%s%g", i ? " " : "", answer[i]);
        printf("\n");
        return;
    }
    const char *name = dt_predictor_class_name(predictor, class);
    if (name)
        printf("%s %.4f\n", name, answer[class]);
    else
        printf("%d %.4f\n", class, answer[class]);
}

int main(int argc, char **argv)
{
    struct dt_predictor *predictor;
    FILE *in = argc == 3 ? fopen(argv[2], "r") : NULL;
    if (!in) {
        fprintf(stderr, "usage: predict MODEL|RUN_DIR ROWS.csv\n");
        return 2;
    }
    if (dt_predictor_open(argv[1], &predictor)) {
        fprintf(stderr, "%s\n", dt_error_text());
        return 1;
    }
    int features = dt_predictor_features(predictor), width = dt_predictor_width(predictor);
    float *row = calloc((size_t)features, sizeof *row),
          *answer = calloc((size_t)width, sizeof *row);
    dt_status status = row && answer ? DT_OK : DT_EMEMORY;
    while (!status && read_row(in, row, features)) {
        int32_t class = 0;
        status = dt_predictor_rows(predictor, row, 1, answer, &class);
        if (!status) print_answer(predictor, answer, class);
    }
    if (status) fprintf(stderr, "%s\n", dt_error_text());
    if (!status && !feof(in)) {
        const char *first = dt_predictor_feature_name(predictor, 0); /* NULL: they have no names */
        fprintf(stderr, "%s: expected rows of %d numbers%s%s\n", argv[2], features,
                first ? ", the first is " : "", first ? first : "");
        status = DT_EFORMAT;
    }
    free(answer);
    free(row);
    dt_predictor_close(predictor);
    fclose(in);
    return status != DT_OK;
}
