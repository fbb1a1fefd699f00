/* What the devices that run a module exchange. All of them run its text from the start to the end, with data of their
 * own: what is in `main` itself, outside of every loop, runs once on each, in the order of the text. */
#include "gen/audit/module_lines.h"

#include <string.h>

#include "gen/base/text.h"

static const char collectives[] = " all_gather all_reduce reduce_scatter ";

static const char dialect[] = "stablehlo.";

bool module_exchanges(const char *name, size_t length) {
  return module_lists(collectives, name, length) || module_lists(" replica_id ", name, length);
}

/* How many blocks a line opens less those that it closes, outside of strings. */
static int opened_by(const struct module_line *line) {
  const char *end = line->text + module_code_length(line->text);
  int opened = 0;
  bool quoted = false;
  for (const char *at = line->text; at < end; at++) {
    if (*at == '\\' && quoted)
      at++;
    else if (*at == '"')
      quoted = !quoted;
    else if (!quoted && (*at == '{' || *at == '}'))
      opened += *at == '{' ? 1 : -1;
  }
  return opened;
}

/* "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>": one group, of all devices. */
static const char *all_devices(const struct module *module) {
  struct text text = text_in(module->audit->arena);
  for (int64_t i = 0; i < module->devices; i++)
    text_printf(&text, "%s%lld", i > 0 ? ", " : "replica_groups = dense<[[", (long long)i);
  text_printf(&text, "]]> : tensor<1x%lldxi64>", (long long)module->devices);
  return text_string(&text);
}

/* Whether a line names these groups, and no others. */
static bool is_of_all(const char *text, const char *group) {
  const char *named = strstr(text, "replica_groups");
  return named != NULL && text_begins(named, group) && strstr(named + 1, "replica_groups") == NULL;
}

/* A line of a module at a depth of blocks, within main or not; whether it has a collective. */
static bool check_line(const struct module *module, struct claim *claim, const struct module_line *line, bool is_flat,
                       const char *group) {
  const char *end = line->text + module_code_length(line->text), *at = line->text;
  while ((at = strstr(at, dialect)) != NULL && at < end) {
    at += sizeof dialect - 1;
    const size_t length = module_word_length(at);
    if (!module_lists(collectives, at, length)) continue;
    if (!is_flat) module_refuse(module, claim, line, "a collective that is in a loop or another function,", at, length);
    if (!is_of_all(line->text, group))
      module_refuse(module, claim, line, "a collective that is not one group of all devices,", at, length);
    return true;
  }
  return false;
}

static int check_module(const struct module *module, struct claim *claim) {
  enum { IN_FUNCTION = 2 }; /* blocks around an operation: the module's and the function's */
  const char *group = all_devices(module);
  bool in_main = false;
  int depth = 0, count = 0;
  for (int i = 0; i < module->lines.count; i++) {
    const struct module_line *line = &module->lines.items[i];
    const char *text = line->text + strspn(line->text, " ");
    if (text_begins(text, "func.func ")) in_main = text_begins(text, "func.func public @main(");
    count += check_line(module, claim, line, in_main && depth == IN_FUNCTION, group);
    depth += opened_by(line);
  }
  return count;
}

void module_claim_collectives(const struct module *modules, int count) {
  struct audit *audit = modules->audit;
  int64_t devices = 0;
  int found = 0;
  struct claim *claim = audit_claim(
      audit, "module-same-collectives",
      "Every device that runs a module runs the same collectives in the same order: each is of all devices, and in "
      "main, outside of loops.");
  for (int m = 0; m < count; m++) {
    if (modules[m].devices > devices) devices = modules[m].devices;
    if (modules[m].devices < 1)
      claim_finding(audit, claim, VERDICT_BROKEN, modules[m].variable->where, "the number of devices is not known");
    else
      found += check_module(&modules[m], claim);
  }
  claim_evidence(audit, claim, "%d collectives of %lld devices", found, (long long)devices);
}
