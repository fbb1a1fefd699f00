/* What user code hands to the trackers: include/accel/tracking.h. */
#include "include/accel/tracking.h"

#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/run/run.h"

static void require(struct accel_run *run, bool written, const struct problem *problem) {
  if (!written) rt_save_failed(run, problem);
}

void accel_log_text(struct accel_run *run, const char *name, const char *text) {
  struct problem problem;
  require(run, rt_trackers_text(&run->reports.trackers, run->user.at_hand, name, text, &problem), &problem);
}

void accel_log_histogram(struct accel_run *run, const char *name, const float *values, size_t count) {
  struct problem problem;
  require(run, rt_trackers_histogram(&run->reports.trackers, run->user.at_hand, name, values, count, &problem),
          &problem);
}

void accel_log_image(struct accel_run *run, const char *name, const uint8_t *pixels, int width, int height,
                     int channels) {
  enum { MOST = 4096 };
  struct problem problem;
  const struct picture picture = {.pixels = pixels, .width = width, .height = height, .channels = channels};
  if (width < 1 || width > MOST || height < 1 || height > MOST || (channels != 1 && channels != 3 && channels != 4)) {
    rt_problem(&problem, "accel_log_image: '%.100s' is %d x %d pixels of %d channels", name, width, height, channels);
    rt_help(&problem, "a picture has 1 to %d pixels on each side, and 1, 3 or 4 channels", MOST);
    rt_fail(&problem, 1);
  }
  require(run, rt_trackers_picture(&run->reports.trackers, run->user.at_hand, name, picture, &problem), &problem);
}
