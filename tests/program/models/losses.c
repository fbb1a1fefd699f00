/* Every loss of accel/model.h over one small net, added up; the rows are numbers and a class. */
#include <accel/model.h>

struct config {
  int width;
};

tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor h = tanh_of(linear(at(s, "hidden"), features, c.width));
  tensor x = linear(at(s, "x"), h, 4), y = linear(at(s, "y"), h, 4), z = linear(at(s, "z"), h, 4);
  tensor goal = slice(features, 1, 0, 4);
  tensor a = linear(at(s, "a"), h, 5), b = linear(at(s, "b"), h, 5), other = linear(at(s, "other"), h, 5);
  tensor warmth = exp_of(parameter_of(s, "warmth", 0));
  tensor similarity = mul(matmul_transposed(normalize(a), normalize(b)), warmth);
  tensor losses[] = {
      cross_entropy_with(linear(at(s, "classes"), h, 3), labels, 2, 0.1, 1e-3),
      binary_cross_entropy_with_logits(x, sigmoid(goal)),
      binary_cross_entropy_with_logits_weighted(x, sigmoid(goal), constant(2.5, 4)),
      mse_loss(x, goal),
      l1_loss(y, goal),
      huber_loss(y, goal, 0.4),
      smooth_l1_loss(y, goal, 0.7),
      kl_div(log_softmax(z), softmax(goal)),
      kl_div_log_target(log_softmax(z), log_softmax(goal)),
      contrastive_loss(similarity),
      clip_loss(similarity),
      triplet_margin_loss(a, b, other, 0.5),
      mean_all(cosine_similarity(a, other)),
  };
  tensor total = losses[0];
  for (int i = 1; i < (int)(sizeof losses / sizeof losses[0]); i++) total = add(total, losses[i]);
  return total;
}
