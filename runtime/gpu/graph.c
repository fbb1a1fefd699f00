/* Steps as graphs: recorded once, launched as one piece. */
#include "runtime/gpu/state.h"
#include "runtime/process/fail.h"

#include <stdlib.h>
#include <string.h>

struct accel_graph {
  const char *name;
  void (*record)(void);
  cudaGraphExec_t ready; /* NULL: the work is put into the streams at each launch */
  struct accel_graph *next;
};

static struct accel_graph *graphs;

bool rt_cuda_measures(void) {
  return getenv("ACCEL_MEASURE") != NULL;
}

static bool are_wanted(void) {
  const char *value = getenv("ACCEL_GRAPHS");
  return !rt_cuda_measures() && (value == NULL || strcmp(value, "no") != 0);
}

static cudaGraphExec_t instantiate(const struct accel_graph *graph, accel_stream stream) {
  cudaGraph_t recorded;
  cudaGraphExec_t ready;
  /* Thread-local: a thread that writes a checkpoint may call CUDA meanwhile. */
  RT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  rt_cuda_prefetch_record(rt_cuda_device());
  graph->record();
  RT_CUDA(cudaStreamEndCapture(stream, &recorded));
  RT_CUDA(cudaGraphInstantiateWithFlags(&ready, recorded, cudaGraphInstantiateFlagUseNodePriority));
  RT_CUDA(cudaGraphDestroy(recorded));
  RT_CUDA(cudaGraphUpload(ready, stream));
  return ready;
}

struct accel_graph *accel_gpu_capture(const char *name, void (*record)(void)) {
  struct accel_graph *graph = malloc(sizeof *graph);
  if (graph == NULL) {
    struct problem problem;
    rt_problem(&problem, "no memory for a graph");
    rt_fail(&problem, 1);
  }
  *graph = (struct accel_graph){name, record, NULL, graphs};
  graphs = graph;
  if (are_wanted()) graph->ready = instantiate(graph, accel_gpu_stream(ACCEL_COMPUTE));
  return graph;
}

void accel_gpu_launch(const struct accel_graph *graph) {
  if (graph->ready != NULL && !rt_cuda_device()->without_graphs)
    RT_CUDA(cudaGraphLaunch(graph->ready, accel_gpu_stream(ACCEL_COMPUTE)));
  else
    graph->record();
}

void rt_cuda_graphs_close(void) {
  while (graphs != NULL) {
    struct accel_graph *graph = graphs;
    graphs = graph->next;
    if (graph->ready != NULL) RT_CUDA(cudaGraphExecDestroy(graph->ready));
    free(graph);
  }
}
