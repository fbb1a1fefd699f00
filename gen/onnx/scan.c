/* Loops. */
#include "gen/onnx/state.h"

void onnx_begin_body(struct onnx *onnx, struct onnx_body *body) {
  *body = (struct onnx_body){onnx->nodes, text_in(onnx->arena), onnx->made.count};
  onnx->nodes = text_in(onnx->arena);
}

/* A ValueInfoProto, of which a body's has a name alone. */
static void add_value(struct onnx *onnx, struct onnx_body *body, int field, const char *name) {
  enum { VALUE_NAME = 1 };
  struct text value = text_in(onnx->arena);
  proto_text(&value, VALUE_NAME, name);
  proto_message(&body->fields, field, &value);
}

const char *onnx_body_input(struct onnx *onnx, struct onnx_body *body) {
  const char *name = arena_printf(onnx->arena, "step_%d_%zu", body->made, body->fields.length);
  add_value(onnx, body, GRAPH_INPUT, name);
  return name;
}

void onnx_body_output(struct onnx *onnx, struct onnx_body *body, const char *tensor) {
  add_value(onnx, body, GRAPH_OUTPUT, tensor);
}

static void add_body(struct onnx *onnx, const struct onnx_body *body, struct text *attributes) {
  struct text graph = text_in(onnx->arena), attribute = text_in(onnx->arena);
  proto_text(&graph, GRAPH_NAME, "step");
  text_add(&graph, onnx->nodes.bytes, onnx->nodes.length);
  text_add(&graph, body->fields.bytes, body->fields.length);
  proto_text(&attribute, ATTRIBUTE_NAME, "body");
  proto_message(&attribute, ATTRIBUTE_GRAPH, &graph);
  proto_int(&attribute, ATTRIBUTE_TYPE, TYPE_GRAPH);
  proto_message(attributes, NODE_ATTRIBUTE, &attribute);
}

static struct shape ones(int count) {
  struct shape axes = {.rank = count};
  for (int i = 0; i < count; i++) axes.dim[i] = 1;
  return axes;
}

const char *const *onnx_scan(struct onnx *onnx, struct onnx_body *body, const char *const *tensors, int n_tensors,
                             int n_states, int n_outputs) {
  const struct attribute others[] = {attribute_int("num_scan_inputs", n_tensors - n_states),
                                     attribute_ints("scan_input_axes", ones(n_tensors - n_states)),
                                     attribute_ints("scan_output_axes", ones(n_outputs - n_states))};
  struct text attributes = text_in(onnx->arena);
  add_body(onnx, body, &attributes);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) onnx_add_attribute(&attributes, onnx->arena, &others[i]);
  onnx->nodes = body->outside;
  onnx_forget(onnx, body->made);
  return onnx_node_of(onnx, "Scan", tensors, n_tensors, &attributes, n_outputs);
}
