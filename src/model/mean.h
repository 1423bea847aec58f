/* mean: a network whose prediction is the mean of its members' predictions.
 *
 *     model.layers   mean(MEMBER | MEMBER ...)
 *     MEMBER         [ENCODING WIDTH, ] the layers of a network: "ple 16, dense 128 relu"
 *
 * Each member is a separate network that reads the same rows. ENCODING is normal, ple or cosine
 * (normal has no WIDTH). The tensors of member 3 are called "members/3/layers/0/weight" and so on.
 * The tables of the members' encodings are one after the other in the description's encode_table. A
 * mean is assembled from trained networks (src/search); it is not trained. */
#ifndef MODEL_MEAN_H
#define MODEL_MEAN_H

#include "model/model.h"

/* Returns true if `layers` is a text of the form mean(...). */
bool dt__is_mean(const char *layers);
/* Adds the MEMBER text of a network to `out`; first: without a separator before it. */
dt_status dt__mean_text(const struct dt_model_desc *member, bool first, struct dt_text *out);
/* Creates the members of model->desc and collects their tensors. DT_EUSAGE: a member is wrong; the
 * message names it. */
dt_status dt__mean_members(struct dt_model *model);

/* The members' networks, and the mean of their predictions. */
struct dt__mean;
dt_status dt__mean_create(const struct dt_model *model, int max_rows, struct dt__mean **out);
void dt__mean_destroy(struct dt__mean *mean);
dt_status dt__mean_forward(struct dt__mean *mean, const float *params, const struct dt_batch *batch,
                           float *out);
/* Writes the standard deviation of the members' predictions, as dt__network_spread. */
void dt__mean_spread(const struct dt__mean *mean, int rows, float *out);

#endif
