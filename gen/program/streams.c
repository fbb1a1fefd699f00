#include "gen/program/streams.h"

#include "gen/program/target.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

int64_t streamed_unit_bytes(const struct program *program, int number) {
  return weight_node_at(program->weights->root, program->ranks.fsdp_units.items[number].paths[0])->type->bytes;
}

static int unit_count(const struct program *program) {
  return program->streams ? program->ranks.fsdp_units.count : 0;
}

bool layers_are_on_disk(const struct program *program) {
  return program->kind == PROGRAM_TRAIN && program->job->parallelism.offload.param == OFFLOAD_NVME;
}

int64_t streamed_bytes(const struct program *program, bool on_disk) {
  int64_t bytes = 0;
  for (int i = 0; i < unit_count(program); i++)
    if (program->ranks.fsdp_units.items[i].on_disk == on_disk) bytes += streamed_unit_bytes(program, i);
  return bytes;
}

int streamed_from_host(const struct program *program) {
  int count = 0;
  while (count < unit_count(program) && !program->ranks.fsdp_units.items[count].on_disk) count++;
  return count;
}

int64_t largest_read(const struct program *program) {
  int64_t largest = 0;
  for (int i = streamed_from_host(program); i < unit_count(program); i++)
    if (streamed_unit_bytes(program, i) > largest) largest = streamed_unit_bytes(program, i);
  return largest;
}

int64_t stream_buffer_bytes(const struct program *program) {
  const bool reads = program->target->is_host && largest_read(program) > 0 && !layers_are_on_disk(program);
  return reads ? STREAM_BUFFERS : 0;
}
