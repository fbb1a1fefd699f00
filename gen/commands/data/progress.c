#include "gen/commands/data/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/digits.h"

enum { BAR = 30 };

static const double pace = 0.2; /* seconds from one bar to the next */

struct progress progress_begin(uint64_t done, uint64_t all) {
  return (struct progress){.shows = isatty(STDERR_FILENO) == 1, .started = rt_now(), .first = done, .all = all};
}

void progress_tell(struct progress *progress, uint64_t done) {
  char left[32] = "", bar[BAR + 1];
  double now = progress->shows ? rt_now() : 0;
  if (!progress->shows || now - progress->shown < pace) return;
  progress->shown = now;
  double rate = (double)(done - progress->first) / (now - progress->started + 1e-9);
  if (rate > 0) rt_duration(left, sizeof left, (double)(progress->all - done) / rate);
  int full = (int)(BAR * (double)done / (double)(progress->all + (progress->all == 0)));
  memset(bar, '.', BAR);
  memset(bar, '=', (size_t)full);
  bar[BAR] = '\0';
  fprintf(stderr, "\r\033[K[%s] %.1f of %.1f MB, %.1f MB/s, %s left", bar, (double)done / 1e6,
          (double)progress->all / 1e6, rate / 1e6, left);
  fflush(stderr);
}

void progress_end(const struct progress *progress) {
  if (progress->shows && progress->shown > 0) fputs("\r\033[K", stderr);
}
