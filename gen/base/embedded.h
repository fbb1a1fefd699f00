/* Embedded: the files that are inside the command, so that it works from any folder. build/gen/embedded.c, which
 * tools/embed.c writes, defines them. */
#ifndef ACCEL_BASE_EMBEDDED_H
#define ACCEL_BASE_EMBEDDED_H

struct embedded_file {
  const char *name; /* relative to its root, with slashes: "devices/cpu/layer_norm.c.j2" */
  const char *text;
};

/* The files of templates/, sorted by name. */
extern const struct embedded_file accel_templates[];
extern const int accel_template_count;

/* The text of the template of this name; NULL where there is none. */
const char *embedded_template(const char *name);

/* Headers for user code, what a bundle takes along, and what `accel-gen test` runs, by their paths in the source tree:
 * "include/accel/model.h", "runtime/run/start.c", "share/bundle/build.sh". */
extern const struct embedded_file accel_sources[];
extern const int accel_source_count;

/* The text of the one of this path, which must be there. */
const char *embedded_source(const char *path);

/* schemas/job.schema.json */
extern const char accel_job_schema[];

/* schemas/tuning.schema.json */
extern const char accel_tuning_schema[];

/* schemas/measured.schema.json */
extern const char accel_measured_schema[];

/* schemas/names.yaml */
extern const char accel_names[];

#endif
