/* The mean of several networks. A running mean adds one member after another, in the space where
 * predictions are averaged (dt__model_to_mean); at the end the mean is converted back to outputs.
 * Source: Welford, "Note on a method for calculating corrected sums of squares and products",
 * Technometrics 1962. */
#include "model/mean.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "model/encoding.h"
#include "model/layer.h"

static const char MEAN[] = "mean(";

bool dt__is_mean(const char *layers)
{
    return !strncmp(layers, MEAN, strlen(MEAN));
}

dt_status dt__mean_text(const struct dt_model_desc *member, bool first, struct dt_text *out)
{
    char word[16];
    dt__text_add(out, "%s", first ? MEAN : " | ");
    if (member->encode)
        dt__text_add(out, "%s", dt__config_choice(DT_ENCODE_CHOICES, member->encode, word));
    if (member->encode_width) dt__text_add(out, " %d", member->encode_width);
    return dt__text_add(out, "%s%s", member->encode ? ", " : "", member->layers);
}

/* ---- members -------------------------------------------------------------------------------- */

/* Parses the encoding at the start of a member's text into `out`. Returns the text after it, the
 * layers. */
static char *encoding_parse(char *text, const struct dt_model_desc *all, struct dt_model_desc *out)
{
    char word[16] = "";
    int width = 0, length = 0;
    const int found = sscanf(text, "%15[a-z] %7d%n", word, &width, &length);
    const int kind = found ? dt__config_choice_index(DT_ENCODE_CHOICES, word) : -1;
    if (kind <= DT_ENCODE_NONE || kind >= DT_ENCODE_AUTO) return text;
    char *rest = found == 2 ? text + length : text + strlen(word);
    rest += strspn(rest, " \t");
    if (*rest != ',') return text;
    out->encode = kind;
    out->encode_columns = all->encode_columns;
    out->encode_width = found == 2 ? width : 0;
    return rest + 1;
}

/* Creates the next member from its text, which is overwritten. *at: offset of the member's table in
 * encode_table; advanced to the next member's. */
static dt_status member_make(struct dt_model *model, char *text, int *at)
{
    const struct dt_model_desc *all = &model->desc;
    struct dt_model_desc desc = *all;
    struct dt_model **member = &model->member[model->members];
    desc.encode = desc.encode_columns = desc.encode_width = desc.encode_count = 0;
    desc.encode_table = NULL;
    while (isspace((unsigned char)*text))
        text++;
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    desc.layers = encoding_parse(text, all, &desc);
    if (!desc.encode && !desc.categories) desc.dense = 0;
    if (dt__is_mean(desc.layers)) return dt_fail(DT_EUSAGE, "a mean in a mean");
    desc.encode_count = (int)dt__encoding_count(&desc);
    if (desc.encode_count > all->encode_count - *at)
        return dt_fail(DT_EUSAGE, "its encoding has no table");
    if (all->encode_table && desc.encode_count) desc.encode_table = all->encode_table + *at;
    DT_TRY(dt__encoding_check(&desc, all->encode_table != NULL));
    *at += desc.encode_count;
    DT_TRY(dt__model_create(&desc, member));
    model->members++;
    return DT_OK;
}

/* Appends the member's tensors to the model's list. */
static dt_status member_add_tensors(struct dt_model *model, int number)
{
    const struct dt_model *member = model->member[number];
    const int layers = model->tensors ? model->tensor[model->tensors - 1].layer + 1 : 0;
    DT_TRY(dt__grow(&model->tensor, &model->tensor_capacity, model->tensors + member->tensors,
                    sizeof *model->tensor, "tensors"));
    for (size_t i = 0; i < member->tensors; i++) {
        struct dt_tensor tensor = member->tensor[i];
        (void)snprintf(tensor.name, sizeof tensor.name, "members/%d/%.32s", number,
                       member->tensor[i].name);
        tensor.offset += model->params;
        tensor.layer += layers;
        model->tensor[model->tensors++] = tensor;
    }
    if (!dt__size_add(model->params, member->params, &model->params))
        return dt_fail(DT_EUSAGE, "more parameters than memory can hold");
    return DT_OK;
}

dt_status dt__mean_members(struct dt_model *model)
{
    char *text, *end;
    int at = 0;
    size_t count = 1;
    DT_TRY(dt__strdup(model->desc.layers + strlen(MEAN), &text));
    dt_status status = DT_OK;
    for (end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        end--;
    if (end == text || end[-1] != ')')
        status = dt_fail(DT_EUSAGE, "expected mean(MEMBER | MEMBER ...)");
    else
        end[-1] = '\0';
    for (const char *bar = text; (bar = strchr(bar, '|')); bar++)
        count++;
    if (!status) status = dt__alloc(count, sizeof(struct dt_model *), "members", &model->member);
    for (char *member = text, *next; member && !status; member = next) {
        next = strchr(member, '|');
        if (next) *next++ = '\0';
        status = member_make(model, member, &at);
        if (!status) status = member_add_tensors(model, model->members - 1);
        if (status) status = dt_fail_prefix(status, "member %d: ", model->members);
    }
    if (!status && at != model->desc.encode_count)
        status = dt_fail(DT_EUSAGE, "%d numbers of encodings, expected %d",
                         model->desc.encode_count, at);
    model->trained = model->shared = model->params;
    dt_free(text);
    return status;
}

/* ---- a pass --------------------------------------------------------------------------------- */

struct dt__mean {
    const struct dt_model *model;
    struct dt_network **network; /* (members) */
    float *member;               /* (max_rows, nout) predictions of the current member */
    float *mean, *squares;       /* (max_rows, nout) running mean, and sum of squared differences
                                  * from it */
    int members;                 /* number of members in the running mean */
    float *plain;                /* (max_rows, dense) rows without z, for members without an
                                  * encoding; NULL: batches have no z */
};

dt_status dt__mean_create(const struct dt_model *model, int max_rows, struct dt__mean **out)
{
    const size_t rows = (size_t)max_rows, nout = (size_t)model->desc.nout;
    const size_t members = (size_t)model->members;
    struct dt__mean *mean;
    dt_status status;
    DT_TRY(dt__alloc(1, sizeof *mean, "members", &mean));
    mean->model = model;
    DT_GUARD(dt__alloc(members, sizeof(struct dt_network *), "members", &mean->network));
    DT_GUARD(dt__alloc(rows, 3 * nout * sizeof(float), "members", &mean->member));
    mean->mean = mean->member + rows * nout;
    mean->squares = mean->mean + rows * nout;
    if (model->desc.encode)
        DT_GUARD(dt__alloc(rows, (size_t)model->desc.dense * sizeof(float), "rows", &mean->plain));
    for (int m = 0; m < model->members; m++) {
        DT_GUARD(
            dt__network_create(model->member[m], max_rows, DT_PRECISION_F32, &mean->network[m]));
        dt__network_set_rowwise(mean->network[m]);
    }
    *out = mean;
    return DT_OK;
done:
    dt__mean_destroy(mean);
    return status;
}

void dt__mean_destroy(struct dt__mean *mean)
{
    if (!mean) return;
    for (int m = 0; mean->network && m < mean->model->members; m++)
        dt__network_destroy(mean->network[m]);
    dt_free(mean->network);
    dt_free(mean->member);
    dt_free(mean->plain);
    dt_free(mean);
}

/* Returns the batch without the z of its numbers, for a member without an encoding. */
static struct dt_batch batch_without_z(struct dt__mean *mean, const struct dt_batch *batch)
{
    const size_t columns = (size_t)mean->model->desc.encode_columns;
    const size_t width = (size_t)batch->ndense, dense = width - columns;
    struct dt_batch plain = *batch;
    for (size_t r = 0; r < (size_t)batch->rows; r++)
        memcpy(mean->plain + r * dense, batch->x + r * width, dense * sizeof *mean->plain);
    plain.x = mean->plain;
    plain.ndense = (int)dense;
    return plain;
}

dt_status dt__mean_forward(struct dt__mean *mean, const float *params, const struct dt_batch *batch,
                           float *out)
{
    const struct dt_model *model = mean->model;
    const size_t count = (size_t)batch->rows * (size_t)model->desc.nout;
    struct dt_batch plain = *batch;
    if (mean->plain && batch->ndense != model->desc.dense + model->desc.encode_columns)
        return dt_fail(DT_EBUG, "rows of %d dense inputs", batch->ndense);
    if (mean->plain) plain = batch_without_z(mean, batch);
    memset(mean->mean, 0, count * sizeof *mean->mean);
    memset(mean->squares, 0, count * sizeof *mean->squares);
    mean->members = 0;
    for (int m = 0; m < model->members; params += model->member[m++]->params) {
        if (model->folds && m % model->folds != model->fold) continue;
        const struct dt_model *member = model->member[m];
        const float weight = 1.0f / (float)++mean->members;
        DT_TRY(dt__network_forward(mean->network[m], params, member->desc.encode ? batch : &plain,
                                   mean->member));
        dt__model_to_mean(model, mean->member, batch->rows, mean->member);
        for (size_t i = 0; i < count; i++) {
            const float difference = mean->member[i] - mean->mean[i];
            mean->mean[i] += difference * weight;
            mean->squares[i] += difference * (mean->member[i] - mean->mean[i]);
        }
    }
    dt__model_from_mean(model, mean->mean, batch->rows, out);
    return DT_OK;
}

void dt__mean_spread(const struct dt__mean *mean, int rows, float *out)
{
    const struct dt_outputs *outputs = &mean->model->outputs;
    const size_t nout = (size_t)outputs->count, count = (size_t)rows * nout;
    const int members = mean->members;
    const size_t each = mean->model->classes == 2 && nout == 1 ? 2 : 1; /* both classes have the
                                                                         * same deviation */
    for (size_t i = 0; i < count; i++) {
        const float unit = outputs->mean ? outputs->std[i % nout / (size_t)outputs->each] : 1.0f;
        const float squares = members > 1 ? mean->squares[i] / (float)(members - 1) : 0.0f;
        for (size_t k = 0; k < each; k++)
            out[i * each + k] = unit * sqrtf(squares);
    }
}
