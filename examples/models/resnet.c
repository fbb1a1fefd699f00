/* Residual networks (He et al., arXiv:1512.03385): the tensor names and the arithmetic of transformers'
 * ResNetForImageClassification, so that its checkpoints load from their model.safetensors. ResNet-18 is layer_type
 * BASIC with depths 2, 2, 2, 2 and sizes 64 to 512; ResNet-50 is BOTTLENECK with depths 3, 4, 6, 3 and sizes 256 to
 * 2048. A row of the table is an image, [channels][size][size]. */
#include <accel/model.h>
#include <math.h>

enum layer_type { BASIC, BOTTLENECK };

struct config {
  enum layer_type layer_type;
  int image_size, num_channels, num_labels, embedding_size;
  int stages; /* how many of the following four are used */
  int hidden_sizes[4], depths[4];
  bool downsample_in_first_stage, downsample_in_bottleneck;
};

const struct config defaults = {.layer_type = BOTTLENECK,
                                .num_channels = 3,
                                .embedding_size = 64,
                                .stages = 4,
                                .hidden_sizes = {256, 512, 1024, 2048},
                                .depths = {3, 4, 6, 3},
                                .downsample_in_first_stage = false,
                                .downsample_in_bottleneck = false};

const char *const architectures[] = {"ResNetForImageClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "resnet"},
    {"num_labels id2label.#", "num_labels"},
    {"hidden_act", .is = "relu"},
    {"hidden_sizes.#", "stages"},
    {"stage_names.*"},
    {"out_*"},
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"features", {c.num_channels, c.image_size, c.image_size}}}};
}

/* He's start: normal, so that gradients keep their size (arXiv:1502.01852). */
static tensor convolve(scope s, tensor x, int out, int kernel, int stride) {
  scope start = init_normal(at(s, "convolution"), sqrt(2.0 / (out * kernel * kernel)));
  return batch_norm(at(s, "normalization"), conv2d_no_bias(start, x, out, kernel, stride, kernel / 2));
}

static tensor shortcut(scope s, tensor x, int out, int stride) {
  return dim(x, 1) == out && stride == 1 ? x : convolve(at(s, "shortcut"), x, out, 1, stride);
}

static tensor basic(scope s, tensor x, int out, int stride) {
  tensor h = relu(convolve(at(s, "layer.0"), x, out, 3, stride));
  h = convolve(at(s, "layer.1"), h, out, 3, 1);
  return relu(add(h, shortcut(s, x, out, stride)));
}

static tensor bottleneck(scope s, tensor x, int out, int stride, bool first) {
  tensor h = relu(convolve(at(s, "layer.0"), x, out / 4, 1, first ? stride : 1));
  h = relu(convolve(at(s, "layer.1"), h, out / 4, 3, first ? 1 : stride));
  h = convolve(at(s, "layer.2"), h, out, 1, 1);
  return relu(add(h, shortcut(s, x, out, stride)));
}

static tensor stage(scope s, tensor x, int out, int depth, int stride, struct config c) {
  for (int i = 0; i < depth; i++) {
    scope layer = nth(s, "layers", i);
    int step = i == 0 ? stride : 1;
    x = c.layer_type == BASIC ? basic(layer, x, out, step)
                              : bottleneck(layer, x, out, step, c.downsample_in_bottleneck);
  }
  return x;
}

/* features [B][channels size size] to logits [B][num_labels]. */
tensor predict(scope s, struct config c, tensor features) {
  tensor x = reshape(features, dim(features, 0), c.num_channels, c.image_size, c.image_size);
  x = max_pool2d(relu(convolve(at(s, "resnet.embedder.embedder"), x, c.embedding_size, 7, 2)), 3, 2, 1);
  for (int i = 0; i < c.stages; i++) {
    int stride = i > 0 || c.downsample_in_first_stage ? 2 : 1;
    x = stage(nth(s, "resnet.encoder.stages", i), x, c.hidden_sizes[i], c.depths[i], stride, c);
  }
  x = reshape(adaptive_avg_pool2d(x, 1, 1), dim(x, 0), dim(x, 1));
  return linear(at(s, "classifier.1"), x, c.num_labels);
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  return cross_entropy(predict(s, c, features), labels);
}
