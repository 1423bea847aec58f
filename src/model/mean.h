/* mean: a network whose predictions are the mean of its members' predictions.
 *
 *     model.layers   mean(MEMBER | MEMBER ...)
 *     MEMBER         [ENCODING WIDTH, ] the layers of a network: "ple 16, dense 128 relu"
 *
 * A member is a separate network over the same rows; ENCODING is normal, ple or cosine (normal
 * without WIDTH). The tensors of member 3 are called "members/3/layers/0/weight" and so on, and the
 * encodings' tables follow each other in the description's encode_table. Such networks are
 * assembled from trained ones (src/search); they are not trained. */
#ifndef MODEL_MEAN_H
#define MODEL_MEAN_H

#include "model/model.h"

/* Returns true if a text of layers is a mean. */
bool dt__is_mean(const char *layers);
/* Adds a member's text. */
dt_status dt__mean_text(const struct dt_model_desc *member, bool first, struct dt_text *out);
/* Creates the members of model->desc, and the list of their tensors. DT_EUSAGE: names the
 * member. */
dt_status dt__mean_members(struct dt_model *model);

/* The members' networks, and the mean of their predictions. */
struct dt__mean;
dt_status dt__mean_create(const struct dt_model *model, int max_rows, struct dt__mean **out);
void dt__mean_destroy(struct dt__mean *mean);
dt_status dt__mean_forward(struct dt__mean *mean, const float *params, const struct dt_batch *batch,
                           float *out);
/* Computes dt__network_spread. */
void dt__mean_spread(const struct dt__mean *mean, int rows, float *out);

#endif
