/* accel/tracking.h: what user code of a job's hooks hands to the trackers that the job names (tracking.log_with),
 * beyond the numbers of accel_log (hooks.h). docs/tracking.md says which tracker shows what; one that has no form for
 * it leaves it out, and without a tracker these functions do nothing.
 *
 * All are for functions that are called between steps, from on_start on. The step is the one at hand. Names are those
 * that the tracker shows, with "/" between groups; all that is handed over is copied. Of several ranks the main
 * process's counts. What cannot be written is handled as a checkpoint is (checkpoint.on_save_error): the process ends
 * with a message, or warns, and writes it later. */
#ifndef ACCEL_TRACKING_H
#define ACCEL_TRACKING_H

#include <stddef.h>
#include <stdint.h>

struct accel_run;

/* Logs a text, in UTF-8: a sample that a model wrote. */
void accel_log_text(struct accel_run *run, const char *name, const char *text);

/* Logs how `count` values are distributed, in 64 ranges of one width from the least to the most; values that are not
 * finite are left out. accel_weight_of gives those of a parameter. */
void accel_log_histogram(struct accel_run *run, const char *name, const float *values, size_t count);

/* Logs a picture of 8-bit pixels, [height][width][channels]: 1 channel (grey), 3 (RGB) or 4 (RGBA), at most 4096 pixels
 * wide and high. Another size ends the process with a message. */
void accel_log_image(struct accel_run *run, const char *name, const uint8_t *pixels, int width, int height,
                     int channels);

#endif
