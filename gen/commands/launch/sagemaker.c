#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/launch/launch.h"

/* Of a container of one's own; Amazon's toolkit for containers hands the same on as variables. */
static const char resources[] = "/opt/ml/input/config/resourceconfig.json";

/* {"current_host": NAME, "hosts": [NAME, ...]}; NULL where this is no machine of SageMaker. */
static json_t *read_machines(void) {
  const char *hosts = getenv("SM_HOSTS"), *own = getenv("SM_CURRENT_HOST");
  if (hosts == NULL || own == NULL) return json_load_file(resources, JSON_REJECT_DUPLICATES, NULL);
  return json_pack("{s:o*, s:s}", "hosts", json_loads(hosts, JSON_REJECT_DUPLICATES, NULL), "current_host", own);
}

static void set_number(const char *name, size_t number) {
  char text[24];
  snprintf(text, sizeof text, "%zu", number);
  setenv(name, text, 0);
}

void launch_take_sagemaker(void) {
  if (getenv("RANK") != NULL) return;
  json_t *machines = read_machines(), *hosts = json_object_get(machines, "hosts"), *host;
  const char *own = json_string_value(json_object_get(machines, "current_host"));
  const char *first = json_string_value(json_array_get(hosts, 0));
  size_t rank;
  json_array_foreach(hosts, rank, host) {
    if (own == NULL || first == NULL || !json_is_string(host) || strcmp(json_string_value(host), own) != 0) continue;
    set_number("RANK", rank);
    set_number("WORLD_SIZE", json_array_size(hosts));
    setenv("MASTER_ADDR", first, 0);
    break;
  }
  json_decref(machines);
}
