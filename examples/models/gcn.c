/* A graph convolutional network (Kipf, Welling, arXiv:1609.02907), with the tensor names of PyTorch Geometric's GCN.
 * The graph is known when the model is read: graph.h names its edges, each once, and a batch is all of its nodes in
 * order (data.shuffle: false). The first n_train nodes have labels to learn from.
 *
 * N nodes, F features of a node. */
#include <accel/model.h>
#include <math.h>

#include "graph.h"

struct config {
  int num_layers, hidden_channels, out_channels;
  int n_train;
  double dropout;
};

const struct config defaults = {.num_layers = 2, .hidden_channels = 16, .dropout = 0};

/* D^-1/2 (A + I) D^-1/2, where D has the degrees of A + I: its elements that are not zero, by column and row. */
struct adjacency {
  tensor from, to, weight;
};

static struct adjacency normalized(int nodes) {
  int count = 2 * GRAPH_EDGES + nodes, from[count], to[count];
  double degree[nodes], weight[count];
  for (int i = 0; i < nodes; i++) degree[i] = 1;
  for (int i = 0; i < GRAPH_EDGES; i++) {
    int a = graph_edges[i][0], b = graph_edges[i][1];
    from[2 * i] = to[2 * i + 1] = a;
    to[2 * i] = from[2 * i + 1] = b;
    degree[a] += 1;
    degree[b] += 1;
  }
  for (int i = 0; i < nodes; i++) from[2 * GRAPH_EDGES + i] = to[2 * GRAPH_EDGES + i] = i;
  for (int i = 0; i < count; i++) weight[i] = 1 / sqrt(degree[from[i]] * degree[to[i]]);
  return (struct adjacency){int_table_of(count, from), int_table_of(count, to), table_of(count, weight)};
}

/* Each node gets the weighted sum of what its neighbours and itself send. */
static tensor convolve(scope s, tensor x, int channels, struct adjacency a) {
  x = linear_no_bias(at(s, "lin"), x, channels);
  x = sparse_matmul(a.to, a.from, a.weight, x, dim(x, 0));
  return add(x, parameter(init_zeros(s), "bias", channels));
}

/* features [N][F] to logits [N][out_channels]. */
tensor predict(scope s, struct config c, tensor features) {
  struct adjacency a = normalized(dim(features, 0));
  tensor x = features;
  for (int i = 0; i < c.num_layers; i++) {
    bool last = i == c.num_layers - 1;
    x = convolve(nth(s, "convs", i), x, last ? c.out_channels : c.hidden_channels, a);
    if (!last) x = dropout(relu(x), c.dropout);
  }
  return x;
}

tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor logits = predict(s, c, features);
  return cross_entropy(slice(logits, 0, 0, c.n_train), slice(labels, 0, 0, c.n_train));
}
