/* parameter_of(scope, name, rank, extents…): a bare parameter, which starts at zero where its scope says nothing; and
 * buffer_of, numbers that are not trained. */
#include "gen/ops/support/support.h"

static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct shape shape;
  if (!op_extents(builder, "parameter", arguments, count, 3, false, &shape)) return NULL;
  return builder_parameter(builder, arguments[0].scope, arguments[1].string, shape,
                           (struct initializer){.kind = INIT_ZEROS});
}

static struct value *build_buffer(struct builder *builder, const struct argument *arguments, int count) {
  struct shape shape;
  if (!op_extents(builder, "buffer", arguments, count, 3, false, &shape)) return NULL;
  return builder_fixed(builder, arguments[0].scope, arguments[1].string, shape,
                       (struct initializer){.kind = INIT_ZEROS});
}

const struct op_file op_file_parameter = {
    .name = "parameter",
    .functions =
        (const struct op_function[]){{"parameter_of", .build = build}, {"buffer_of", .build = build_buffer}, {0}},
};
