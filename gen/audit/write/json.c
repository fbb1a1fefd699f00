#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/audit/write/write.h"
#include "gen/base/version.h"

/* libclang gives text as the file has it; what is no UTF-8 becomes '?', since JSON cannot hold it. */
static json_t *string_of(const char *text) {
  json_t *string = json_string(text);
  if (string != NULL) return string;
  char *copy = strdup(text);
  if (copy == NULL) return json_string("?");
  for (char *at = copy; *at != '\0'; at++)
    if ((unsigned char)*at >= 0x80) *at = '?';
  string = json_string(copy);
  free(copy);
  return string;
}

static void put(json_t *object, const char *key, const char *text) {
  json_object_set_new(object, key, string_of(text));
}

static void put_number(json_t *object, const char *key, long long number) {
  json_object_set_new(object, key, json_integer(number));
}

static void dump(json_t *root, struct text *out) {
  char *dumped = json_dumps(root, JSON_INDENT(2));
  if (dumped != NULL) text_puts(out, dumped);
  text_puts(out, "\n");
  free(dumped);
  json_decref(root);
}

/* ---- JSON ---- */

static json_t *located_message(struct location where, const char *message) {
  json_t *object = json_object();
  if (where.file != NULL) put(object, "file", where.file);
  if (where.line > 0) put_number(object, "line", where.line);
  if (where.line > 0) put_number(object, "column", where.column);
  put(object, "message", message);
  return object;
}

static json_t *claim_of(const struct claim *claim) {
  json_t *object = json_object(), *findings = json_array(), *facts = json_array();
  put(object, "id", claim->id);
  put(object, "sentence", claim->sentence);
  put(object, "verdict", verdict_word(claim->verdict));
  put(object, "evidence", claim->evidence);
  for (int i = 0; i < claim->n_findings; i++) {
    json_t *finding = located_message(claim->findings[i].where, claim->findings[i].message);
    put(finding, "verdict", verdict_word(claim->findings[i].verdict));
    json_array_append_new(findings, finding);
  }
  for (int i = 0; i < claim->n_facts; i++)
    json_array_append_new(facts, located_message(claim->facts[i].where, claim->facts[i].message));
  json_object_set_new(object, "findings", findings);
  json_object_set_new(object, "facts", facts);
  return object;
}

void audit_write_json(const struct audit *audit, struct text *out) {
  json_t *root = json_object(), *program = json_object(), *summary = json_object(), *claims = json_array();
  put(root, "generator", "accel-gen " ACCEL_VERSION);
  put(program, "file", audit->tree->file);
  put_number(program, "lines", audit->tree->n_lines);
  put_number(program, "functions", audit->n_functions);
  put_number(program, "step_functions", audit->n_step_functions);
  put(program, "root", audit->root == NULL ? "" : audit->root);
  put_number(summary, "holds", audit_count(audit, VERDICT_HOLDS));
  put_number(summary, "broken", audit_count(audit, VERDICT_BROKEN));
  put_number(summary, "cannot_tell", audit_count(audit, VERDICT_CANNOT_TELL));
  for (int i = 0; i < audit->n_claims; i++) json_array_append_new(claims, claim_of(&audit->claims[i]));
  json_object_set_new(root, "program", program);
  json_object_set_new(root, "summary", summary);
  json_object_set_new(root, "claims", claims);
  dump(root, out);
}

/* ---- SARIF ---- */

static json_t *message_of(const char *text) {
  json_t *message = json_object();
  put(message, "text", text);
  return message;
}

/* A path as a reference of a URI: what is not plain is written in percent. */
static const char *uri_of(struct arena *arena, const char *path) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  struct text text = text_in(arena);
  if (path[0] == '/') text_puts(&text, "file://");
  for (; *path != '\0'; path++) {
    if (strchr(plain, *path) != NULL)
      text_add(&text, path, 1);
    else
      text_printf(&text, "%%%02X", (unsigned char)*path);
  }
  return text_string(&text);
}

static json_t *location_of(struct arena *arena, struct location where) {
  json_t *location = json_object(), *physical = json_object(), *artifact = json_object();
  put(artifact, "uri", uri_of(arena, where.file != NULL ? where.file : ""));
  json_object_set_new(physical, "artifactLocation", artifact);
  if (where.line > 0) {
    json_t *region = json_object();
    put_number(region, "startLine", where.line);
    put_number(region, "startColumn", where.column);
    json_object_set_new(physical, "region", region);
  }
  json_object_set_new(location, "physicalLocation", physical);
  return location;
}

static json_t *result_of(const struct claim *claim, int rule, const char *kind, const char *level, const char *text) {
  json_t *result = json_object();
  put(result, "ruleId", claim->id);
  put_number(result, "ruleIndex", rule);
  put(result, "kind", kind);
  put(result, "level", level);
  json_object_set_new(result, "message", message_of(text));
  return result;
}

static void add_results(const struct audit *audit, int rule, json_t *results) {
  const struct claim *claim = &audit->claims[rule];
  if (claim->verdict == VERDICT_HOLDS)
    json_array_append_new(results, result_of(claim, rule, "pass", "none",
                                             claim->evidence[0] != '\0' ? claim->evidence : claim->sentence));
  for (int i = 0; i < claim->n_findings; i++) {
    const struct finding *finding = &claim->findings[i];
    bool broken = finding->verdict == VERDICT_BROKEN;
    json_t *result = result_of(claim, rule, "fail", broken ? "error" : "warning", finding->message);
    json_t *locations = json_array();
    json_array_append_new(locations, location_of(audit->arena, finding->where));
    json_object_set_new(result, "locations", locations);
    json_array_append_new(results, result);
  }
}

void audit_write_sarif(const struct audit *audit, struct text *out) {
  json_t *root = json_object(), *runs = json_array(), *run = json_object(), *tool = json_object();
  json_t *driver = json_object(), *rules = json_array(), *results = json_array();
  put(root, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  put(root, "version", "2.1.0");
  put(driver, "name", "accel-gen audit");
  put(driver, "version", ACCEL_VERSION);
  for (int i = 0; i < audit->n_claims; i++) {
    json_t *rule = json_object();
    put(rule, "id", audit->claims[i].id);
    json_object_set_new(rule, "shortDescription", message_of(audit->claims[i].sentence));
    json_array_append_new(rules, rule);
    add_results(audit, i, results);
  }
  json_object_set_new(driver, "rules", rules);
  json_object_set_new(tool, "driver", driver);
  json_object_set_new(run, "tool", tool);
  json_object_set_new(run, "columnKind", json_string("utf16CodeUnits"));
  json_object_set_new(run, "results", results);
  json_array_append_new(runs, run);
  json_object_set_new(root, "runs", runs);
  dump(root, out);
}
