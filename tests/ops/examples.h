/* The example models at sizes that float64 can afford, and what they read. */
#ifndef TESTS_OPS_EXAMPLES_H
#define TESTS_OPS_EXAMPLES_H

#include "gen/model/model.h"

#define NUMBER(key, number) {.name = (key), .kind = CONFIG_INT, .integer = (number), .real = (number)}
#define REAL(key, number) {.name = (key), .kind = CONFIG_REAL, .real = (number)}

struct model_case {
  const char *file;
  bool table; /* rows of a table, not tokens */
  struct config_value config[8];
  int n_config;
};

#define EXAMPLE_GPT(path, layers, heads, width, rate, words, length)                                                   \
  {(path),                                                                                                             \
   false,                                                                                                              \
   {NUMBER("n_layer", layers), NUMBER("n_head", heads), NUMBER("n_embd", width), NUMBER("vocab_size", words),          \
    NUMBER("block_size", length), REAL("dropout", rate)},                                                              \
   6}
#define EXAMPLE_GRU(width, words, length)                                                                              \
  {"examples/models/gru_bytes.c",                                                                                      \
   false,                                                                                                              \
   {NUMBER("n_embd", 3), NUMBER("width", width), NUMBER("vocab_size", words), NUMBER("block_size", length)},           \
   4}
#define EXAMPLE_MLP(layers, width, classes)                                                                            \
  {"examples/models/mlp_table.c",                                                                                      \
   true,                                                                                                               \
   {NUMBER("n_layer", layers), NUMBER("width", width), NUMBER("n_classes", classes)},                                  \
   3}

/* What a model of tokens reads, and one of rows of a table. */
#define TOKEN_INPUTS(batch, length)                                                                                    \
  {                                                                                                                    \
    {"tokens", {2, {batch, length}}, DTYPE_INT32}, {                                                                   \
      "targets", {2, {batch, length}}, DTYPE_INT32                                                                     \
    }                                                                                                                  \
  }
#define TABLE_INPUTS(batch, columns)                                                                                   \
  {                                                                                                                    \
    {"features", {2, {batch, columns}}, DTYPE_FLOAT32}, {                                                              \
      "labels", {1, {batch}}, DTYPE_INT32                                                                              \
    }                                                                                                                  \
  }

#endif
