/* y = ln x, dx = dy / x. */
#include <math.h>

#include "gen/ops/support/elementwise.h"

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  dx[0] = op_div(builder, dy[0], node->inputs[0]);
}

static const struct op_kind kind = {
    OP_UNARY,
    .name = "log",
    .lower.operation = "log",
    .onnx.operator= "Log",
    .reference.scalar = log,
    .gradient = gradient,
    .types.autocast = {AUTOCAST_AS_IS, AUTOCAST_FLOAT32},
};

const struct op_file op_file_log = {
    .name = "log",
    .kinds = (const struct op_kind *const[]){&kind, NULL},
    .functions = (const struct op_function[]){{"log_of", .kind = &kind}, {0}},
};
