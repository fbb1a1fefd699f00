#include "runtime/base/progress.h"

#include "runtime/base/clock.h"
#include "runtime/base/digits.h"
#include "runtime/base/terminal.h"

#include <string.h>
#include <unistd.h>

enum { BAR = 20, USUAL_COLUMNS = 80 };

static const double pace = 0.2; /* seconds from one line to the next */

struct progress rt_progress_begin(FILE *out, const char *what, uint64_t done, uint64_t all) {
  const double now = rt_now();
  const bool renews = out != NULL && rt_terminal_renews(fileno(out));
  return (struct progress){
      .out = renews ? out : NULL, .what = what, .began = now, .shown = now, .first = done, .all = all, .done = done};
}

/* A process in the background leaves the line to the one in front. */
bool rt_progress_is_due(const struct progress *progress) {
  return progress->out != NULL && rt_now() - progress->shown >= pace && tcgetpgrp(fileno(progress->out)) == getpgrp();
}

void rt_progress_show(struct progress *progress, const char *const *parts, int count) {
  const int columns = rt_terminal_columns(fileno(progress->out));
  int left = (columns > 0 ? columns : USUAL_COLUMNS) - 1; /* in the last column a cursor would go on to the next line */
  char line[512] = "";
  for (int i = 0; i < count; i++) {
    const size_t length = strlen(line), more = strlen(parts[i]) + 2;
    const int wanted = rt_columns_of(parts[i], (int)strlen(parts[i])) + 2 * (length > 0);
    if (more == 2) continue;
    if (wanted > left || length + more >= sizeof line) break;
    snprintf(line + length, sizeof line - length, "%s%s", length > 0 ? ", " : "", parts[i]);
    left -= wanted;
  }
  rt_terminal_renew(progress->out, line);
  progress->shown = rt_now();
}

void rt_progress_tell(struct progress *progress, uint64_t done) {
  char whole[128], speed[48], left[32] = "", bar[BAR + 1] = "";
  if (!rt_progress_is_due(progress)) return;
  const double rate = (double)(done - progress->first) / (rt_now() - progress->began + 1e-9);
  const double part = progress->all > 0 ? (double)done / (double)progress->all : 0;
  memset(bar, '.', BAR);
  memset(bar, '=', (size_t)(BAR * (part < 1 ? part : 1)));
  snprintf(whole, sizeof whole, "%s [%s] %.1f of %.1f MB", progress->what, bar, (double)done / 1e6,
           (double)progress->all / 1e6);
  snprintf(speed, sizeof speed, "%.1f MB/s", rate / 1e6);
  if (rate > 0) rt_duration(left, sizeof left - sizeof " left", (double)(progress->all - done) / rate);
  if (left[0] != '\0') strcat(left, " left");
  rt_progress_show(progress, (const char *const[]){whole, speed, left}, 3);
}

void rt_progress_add(struct progress *progress, uint64_t bytes) {
  progress->done += bytes;
  rt_progress_tell(progress, progress->done);
}
