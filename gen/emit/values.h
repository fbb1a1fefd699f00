/* Values: the plan's structures as plain template values. One function for each of the things that templates print. */
#ifndef ACCEL_EMIT_VALUES_H
#define ACCEL_EMIT_VALUES_H

#include "gen/emit/origin.h"
#include "gen/jinja/jinja.h"
#include "gen/program/program.h"

struct emit_options;

/* Setters that spare the reader the makers. */
void set_text(struct arena *arena, struct jinja_value map, const char *key, const char *text);
void set_int(struct arena *arena, struct jinja_value map, const char *key, int64_t number);
void set_real(struct arena *arena, struct jinja_value map, const char *key, double number);
void set_bool(struct arena *arena, struct jinja_value map, const char *key, bool truth);

/* Text that came from a job or a model, on its way into C: as a string literal with its quotes (a line end inside
 * breaks the literal into lines; NULL gives NULL), or as the inside of a comment, which nothing can close. These two
 * are the only ways for such text into a program, but for names that are identifiers by check. */
void set_literal(struct arena *arena, struct jinja_value map, const char *key, const char *string);
void set_comment(struct arena *arena, struct jinja_value map, const char *key, const char *string);

/* [12, 64, 128] */
struct jinja_value shape_value(struct arena *arena, struct shape shape);

/* The C type of an element: "float", "int32_t", "accel_bf16", "accel_f16". */
const char *element_type(enum dtype dtype);

/* The states that are on a disk: {arrays: [{name, state: its number}], first_state, bucket: elements of one, buckets,
 * rest: elements of the last one, bytes: of a state in the file, slots, folder}; nothing where all are in memory. */
struct jinja_value disk_value(const struct program *program);

/* An axis as the runtime's enum has it after ACCEL_; "": no axis. */
const char *axis_name(struct arena *arena, enum axis axis);

/* A list of these. */
struct jinja_value axis_names_value(struct arena *arena, struct axes axes);

/* The runtime's enumerator for it, without its prefix: "FLOAT32". */
const char *dtype_enumerator(enum dtype dtype);

/* The same for how a parameter starts: "NORMAL". */
const char *init_enumerator(enum initializer_kind kind);

/* The type of the weights' copies of 16 bits: "bf16", "f16"; "" where there are none. */
const char *bits16_name(const struct program *program);

/* The type of 16 bits that a program's kernels have, also where weights have no copies; DTYPE_FLOAT32: there is none.
 */
enum dtype half_of_kernels(const struct program *program);

/* "weights_bf16": the weights' copies of 16 bits in the arena and as a parameter; "block_weights_bf16": their type. */
const char *bits16_weights(const struct program *program);
const char *bits16_struct(struct arena *arena, const struct program *program, const struct weight_struct *type);

/* "768 * 128": rows times columns, for readers of an extent. */
const char *extent_text(struct arena *arena, struct shape shape);

/* The structures of parameters: a list of {name, bytes, members: [{name, struct, array, shape, extent, path}]}. */
struct jinja_value weight_structs_value(const struct program *program);

/* All parameters: [{name, row, parts, shape, init, a, b, gradient_offset, gradient_stride}] with parts as in a view;
 * row is that in the program's tables, -1 where it is of a layer after the first of several alike. */
struct jinja_value tensors_value(const struct program *program);

/* The gradients of parameters, by the first element and how many: a table (gen/emit/rows.h). Those that ranks have a
 * part of, and those that each has whole, are with what pads them; where ranks along dp_shard divide them further,
 * their flat ranges come first. */
enum gradient_set { GRADIENTS_ALL, GRADIENTS_CUT, GRADIENTS_EXPERT, GRADIENTS_WHOLE, GRADIENTS_PARTIAL };
struct jinja_value gradients_value(const struct program *program, enum gradient_set set);

/* The flat range that has an element of the gradients; of a pipeline, the one of a stage. */
int64_t range_of_gradient(const struct program *program, int64_t element, int stage);

/* Rows of these tables that cover several layers: [{name, first, rows, from, count, stride}]. */
struct jinja_value layers_value(const struct program *program);

/* What parameters start from: {weights, has_prefix, prefix, fresh: [{name, row}], ignored: [{literal}], renames:
 * [{from, to, path}]}, row being one of tensors_value's. */
struct jinja_value start_value(const struct program *program);

/* The low-rank adapters: {items: [{module, weight, a, b, in_out}], whole: [{name, row}], rank, alpha,
 * dropout, scale, use_rslora, merge}; empty where there are none. */
struct jinja_value adapters_value(const struct program *program);

/* Weights of 4-bit codes: [{name, codes, absmax, nested_absmax, nested_offset, in_out, fp4, out, in, init, a, b}], the
 * first four of them rows of tensors_value's, or -1. */
struct jinja_value quantized_value(const struct program *program);

/* The optimizer's states, as {name, type}. */
struct jinja_value optimizer_arrays_value(const struct program *program);

/* What outlives a step: [{file, name, member, dtype, type, count, slices: [{name, parameter, first, stride, shape}]}],
 * the weights first; parameter is a row of tensors_value's, -1 for none. */
struct jinja_value states_value(const struct program *program);

/* What of it ranks divide: {whole, first_state, n_states}. */
struct jinja_value sharding_value(const struct program *program);

/* Where samples come from and how many make a batch: {train, eval: {path, format, parts: [{path, labels, weight}]},
 * batch_size, ...}; parts where a path is not enough. */
struct jinja_value data_value(const struct program *program);

/* What ends a step: what its loss is a mean over, whether it may be skipped, how its gradients are scaled. */
struct jinja_value step_end_value(const struct program *program);

/* The names of user functions, identifiers by check, by their keys: "" where there is none; and `source`, for comments.
 * Nothing where the job has none. */
struct jinja_value hooks_value(struct arena *arena, const struct job *job);

/* How long, from which seed and with which cadences it is trained: {steps, seed, micro_steps, metrics, stopping:
 * {metric, greater, patience, threshold, restore_best}, ...}; `stopping` is empty where evaluations neither end the run
 * nor decide which weights are the best. */
struct jinja_value training_value(const struct program *program);

/* How the run is saved and continued, and the size of the copy from which it is saved. `classes`: of transformers that
 * the model is one of, "A B"; NULL: it names none. */
struct jinja_value checkpoint_value(const struct program *program, const struct emit_options *options);

/* The job's keys and the digest of the model's C: [{name, value, may_change}], name and value as literals. */
struct jinja_value keys_value(const struct program *program, const char *model);

/* Saved memory and scratch of functions: [{name, saved: [members] , scratch: [[members]], ...}] for those that have
 * any. */
struct jinja_value memories_value(const struct program *program);
struct jinja_value aliased_value(const struct program *program);

/* The template of a kind's kernels on the device: "device/layer_norm.c.j2". */
struct op_kind;
const char *kernel_template(struct arena *arena, const struct op_kind *kind);

/* All kernels, as docs/operations.md describes them to their templates, with `template` and `macro`. */
struct jinja_value kernels_value(const struct program *program);

/* Whether the program measures the parts of its steps. */
bool is_profiled(const struct program *program);

/* These parts: {parts: [{name, flops, bytes}], marks_parts: whether the program marks where each ends, skip_first,
 * wait, warmup, active, repeat, with_flops, trace_folder}; empty where nothing is measured. A kernel's part has its
 * name. */
struct jinja_value profile_value(const struct program *program);

/* All functions: [{name, title, where, parameters, statements}]. */
struct jinja_value functions_value(const struct program *program);

/* The function that an evaluation within training calls, where that is another one than the forward, or over other
 * weights; NULL: the forward. And the member of the arena with its weights. */
const struct function *evaluation_function(const struct program *program);
const char *evaluation_weights(const struct program *program);

/* What each stage of a pipeline calls of the entry functions: [{forward: {name, arguments, random}, backward,
 * evaluation: where that is another function}]; empty
 * without a pipeline. */
struct jinja_value stages_value(const struct program *program);

/* Of ranges of the update, where those of each stage of a pipeline begin, and the end. */
struct jinja_value stage_ranges_value(const struct program *program, const struct flat_range_list *ranges);

/* The gradients of a pipeline's stages, in sets: [{name, stages, rows, first, counted, axis, along}]. rows: a table of
 * them by stage; first: where those of each stage begin there, and the end; counted: where those of each stage end that
 * no stage before it has as well; axis: along which each rank has a part of these or others; along: the axes along
 * which they are added up, in order; name, stages: of the table, and within the names of the two others. */
struct jinja_value stage_gradients_value(const struct program *program);

/* Sets partial_rows, a table of the gradients of which ranks along tp have a part of the sum each; of a pipeline those
 * of each stage, with first_partial, where these begin and the end, and partial_counts, their elements. */
void set_partial_gradients(const struct program *program, struct jinja_value value);

/* Of a pipeline {count, micro_batches, stages, shared: gradients of two stages [{name, first, count, stages}]}; nothing
 * without one. */
struct jinja_value pipeline_value(const struct program *program);

/* Sets what must have come and left before each iteration of a statement, what it completes and who sends that. sends:
 * in a function that sends gradients on their way; last: as a step's last micro-batch does. */
void set_exchange(const struct program *program, struct jinja_value value, const struct step *step, bool sends,
                  bool last);

/* The same of a statement of a stage of a pipeline, and the units of whose gradients it has memory. */
void set_stage_exchange(const struct program *program, struct jinja_value value, const struct step *step);

/* The arguments with which `step` calls an entry function over the arena's member `weights`. */
struct jinja_value entry_arguments_value(const struct program *program, const struct function *function,
                                         const char *weights);

/* The matmuls of a kernel, or of the optimizer where that is NULL, that the device's library computes: {part: the
 * algorithm that was measured to be the fastest, "" for the library's own choice}. */
struct jinja_value gemms_value(const struct program *program, const struct kernel *kernel);

/* How the weights are updated: the numbers of the rule, its groups, and its states. */
struct jinja_value optimizer_value(const struct program *program);

/* An axis as the runtime's enum has it after ACCEL_; "": none. The same of several. */
const char *axis_name(struct arena *arena, enum axis axis);
struct jinja_value axis_names_value(struct arena *arena, struct axes axes);

/* The grid of ranks and what they do together: {ranks, batch_ranks, data_ranks, axes: [{name, length}], buckets:
 * [{what, first, count}], local_steps, averaged: the same of weights, uses_rank, timeout}, and sync_each_batch; {ranks:
 * 1} with one rank. */
struct jinja_value mesh_value(const struct program *program);

/* The scales that move when a batch is over: {count, length: of a history, margin, of_all, rows: a table of {scale,
 * history, most}}; nothing where there are none. */
struct jinja_value scaling_value(const struct program *program);

/* Gradients that are sent as factors, or that user code exchanges, which then has `buckets` and a state of `elements`:
 * {by_hook, missed: the state's member, matrices: [{what, first, count, rows, columns, rank, elements, at, left, right,
 * block}], shapes: the first of each shape, factors: [{rows, rank}], buckets: [{what, first, count}] that are sent
 * whole, gaps: [{first, count}] between gradients, elements, left, right, gradients, start, seed, epsilon, batched,
 * feedback, warm}; nothing where there are none. */
struct jinja_value compression_value(const struct program *program);

/* The order in which gradients add up: {leaves, own, ranks, gradients, buffer, levels: [{leaves, distance, offset}]}, a
 * level adding two of `leaves` micro-batches of the rank, whose numbers differ by `distance`, and `offset` of a
 * partial sum in elements; nothing where there is none. */
struct jinja_value tree_value(const struct program *program);

/* The form of the learning rate, and the whole steps at which it changes its course. */
struct jinja_value schedule_value(struct arena *arena, const struct job *job);

/* The names of a function's memory: "block_saved", "block_forward_scratch". */
const char *saved_type(struct arena *arena, const struct function *function);
const char *scratch_type(struct arena *arena, const struct function *function);

#endif
