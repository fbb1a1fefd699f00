/* The public interface: environments, compiling, rendering. */
#include "gen/jinja/jinja.h"

#include <locale.h>
#include <string.h>

#include "gen/jinja/compiler.h"
#include "gen/jinja/lexer.h"
#include "gen/jinja/parser.h"
#include "gen/jinja/run.h"

enum { DEFAULT_RECURSION = 500, DEFAULT_OUTPUT = 256 << 20, DEFAULT_STEPS = 100000000 };

/* --- names --- */

static void index_name(struct jinja_env *env, struct jinja_string *name) {
  uint32_t mask = (uint32_t)env->name_capacity - 1, at = name->hash & mask;
  while (env->names[at] != NULL) at = (at + 1) & mask;
  env->names[at] = name;
}

static void more_names(struct jinja_env *env) {
  struct jinja_string **old = env->names;
  int capacity = env->name_capacity;
  env->name_capacity = capacity > 0 ? capacity * 2 : 512;
  env->names = arena_alloc(env->arena, (size_t)env->name_capacity * sizeof *env->names);
  for (int i = 0; i < capacity; i++) {
    if (old[i] != NULL) index_name(env, old[i]);
  }
}

struct jinja_string *jj_intern(struct jinja_env *env, const char *bytes, size_t length) {
  uint32_t hash = jj_hash_bytes(bytes, length), mask = (uint32_t)env->name_capacity - 1;
  for (uint32_t at = hash & mask; env->names[at] != NULL; at = (at + 1) & mask) {
    struct jinja_string *name = env->names[at];
    if (name->hash == hash && name->length == length && memcmp(name->bytes, bytes, length) == 0) return name;
  }
  if (2 * ++env->name_count > env->name_capacity) more_names(env);
  struct jinja_string *name = jj_string_new(&env->pool, bytes, length);
  name->hash = hash;
  index_name(env, name);
  return name;
}

static void intern_words(struct jinja_env *env) {
  static const char *const words[] = {"",
#define X(word) #word,
                                      JJ_WORDS(X)
#undef X
  };
  for (int i = 1; i < W_COUNT; i++) jj_intern(env, words[i], strlen(words[i]))->word = (uint16_t)i;
}

/* --- environments --- */

static void pool_exhausted(void *owner) {
  struct jinja_env *env = owner;
  jj_fail(env->running, "the rendering takes too much memory");
}

struct jinja_env *jinja_env_new(struct arena *arena, const struct jinja_options *options) {
  struct jinja_env *env = arena_alloc(arena, sizeof *env);
  env->arena = arena;
  env->options = *options;
  if (env->options.max_recursion <= 0) env->options.max_recursion = DEFAULT_RECURSION;
  if (env->options.max_output <= 0) env->options.max_output = DEFAULT_OUTPUT;
  if (env->options.max_steps <= 0) env->options.max_steps = DEFAULT_STEPS;
  const char *statement = env->options.line_statement_prefix, *comment = env->options.line_comment_prefix;
  if (statement != NULL && statement[0] == '\0') env->options.line_statement_prefix = NULL;
  if (comment != NULL && comment[0] == '\0') env->options.line_comment_prefix = NULL;
  env->pool = jj_pool_direct(arena);
  env->scratch = (struct pool){.arena = arena, .exhausted = pool_exhausted, .owner = env};
  env->scratch.limit = 4 * env->options.max_output + (16 << 20);
  more_names(env);
  intern_words(env);
  return env;
}

/* Numbers are read and written with a decimal point whatever the process's locale is. */
static locale_t enter_c_locale(void) {
  return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static void leave_c_locale(locale_t before) {
  locale_t ours = uselocale(before);
  if (ours != LC_GLOBAL_LOCALE && ours != (locale_t)0) freelocale(ours);
}

/* --- templates --- */

static const char *line_of(struct arena *arena, const struct template *template, int line) {
  const char *at = template->source, *end = at + template->length;
  for (; line > 1 && at < end; at++) line -= *at == '\n';
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return arena_copy(arena, at, (size_t)((newline != NULL ? newline : end) - at));
}

static void fill_error(struct jinja_env *env, const struct template *template, const struct syntax_fault *fault,
                       struct jinja_error *error) {
  struct jinja_location *location = arena_alloc(env->arena, sizeof *location);
  *location = (struct jinja_location){template->name, fault->line, fault->column};
  *error = (struct jinja_error){.message = fault->message, .chain = location, .chain_count = 1};
  error->source_line = line_of(env->arena, template, fault->line);
}

static bool compile(struct jinja_env *env, struct template *template, struct jinja_error *error) {
  struct syntax_fault fault = {.arena = env->arena};
  locale_t locale = enter_c_locale();
  bool fine = setjmp(fault.jump) == 0;
  if (fine) {
    jj_parse(env, &fault, template);
    jj_annotate(env, &fault, template);
  } else {
    fill_error(env, template, &fault, error);
  }
  leave_c_locale(locale);
  return fine;
}

static struct template *new_template(struct jinja_env *env, const char *name, const char *source) {
  struct template *template = arena_alloc(env->arena, sizeof *template);
  template->name = arena_string(env->arena, name);
  template->length = strlen(source);
  template->source = jj_normalize(env, source, &template->length);
  return template;
}

struct template *jj_template(struct jinja_env *env, const char *name, bool *missing, struct jinja_error *error) {
  for (int i = 0; i < env->template_count; i++) {
    if (strcmp(env->templates[i]->name, name) == 0) return env->templates[i];
  }
  const char *source = env->options.load != NULL ? env->options.load(env->options.load_context, name) : NULL;
  *missing = source == NULL;
  if (source == NULL) return NULL;
  struct template *template = new_template(env, name, source);
  if (!compile(env, template, error)) return NULL;
  env->templates =
      arena_grow(env->arena, env->templates, env->template_count, &env->template_capacity, sizeof *env->templates);
  env->templates[env->template_count++] = template;
  return template;
}

static struct template *named_template(struct jinja_env *env, const char *name, struct jinja_error *error) {
  bool missing = false;
  struct template *template = jj_template(env, name, &missing, error);
  if (missing) {
    struct jinja_location *location = arena_alloc(env->arena, sizeof *location);
    *location = (struct jinja_location){arena_string(env->arena, name), 1, 1};
    *error = (struct jinja_error){.message = "the template was not found", .chain = location, .chain_count = 1};
  }
  return template;
}

bool jinja_compile(struct jinja_env *env, const char *name, struct jinja_error *error) {
  return named_template(env, name, error) != NULL;
}

/* --- rendering --- */

static void finish(struct run *run, bool with_spans, struct jinja_output *output) {
  struct buffer *out = run->out;
  struct arena *outputs = run->env->options.outputs;
  output->text = arena_copy(outputs != NULL ? outputs : run->env->arena, out->bytes, out->length);
  output->length = out->length;
  output->spans = NULL;
  output->span_count = 0;
  output->generated = run->generated.items;
  output->generated_count = run->generated.count;
  output->generated_inside = run->generated_inside;
  if (with_spans) jj_spans_of(run, output);
}

static struct run new_run(struct jinja_env *env, bool with_spans, struct jinja_error *error) {
  struct run run = {.env = env, .pool = &env->scratch, .mapped = with_spans, .error = error};
  run.undefined = env->options.undefined;
  run.autoescape = env->options.autoescape;
  run.max_depth = env->options.max_recursion;
  run.max_steps = env->options.max_steps;
  run.max_output = (size_t)env->options.max_output;
  run.stack_base = (uintptr_t)__builtin_frame_address(0);
  return run;
}

static void render(struct run *run, const struct template *template, struct jinja_value values) {
  struct context context = {.template = template};
  if (values.kind == JINJA_MAP) context.values = values.as.map;
  if (run->env->options.global_values) run->values = context.values;
  run->template = template;
  jj_run_root(run, &context, template);
}

bool jinja_render(struct jinja_env *env, const char *name, struct jinja_value context, bool with_spans,
                  struct jinja_output *output, struct jinja_error *error) {
  const struct template *template = named_template(env, name, error);
  if (template == NULL) return false;
  jj_pool_reset(&env->scratch);
  struct run run = new_run(env, with_spans, error);
  env->running = &run;
  locale_t locale = enter_c_locale();
  jj_capture_begin(&run);
  run.whole = run.out;
  bool fine = setjmp(run.jump) == 0;
  if (fine) {
    render(&run, template, context);
    finish(&run, with_spans, output);
  }
  leave_c_locale(locale);
  jj_free_buffers(env);
  env->running = NULL;
  return fine;
}
