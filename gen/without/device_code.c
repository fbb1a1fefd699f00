#include "gen/device_code/ptx.h"
#include "gen/device_code/sass.h"
#include "gen/without/without.h"

static struct audit *refuse(const char *file, struct diagnostics *diags) {
  diag_error(diags, (struct location){.file = file}, WITHOUT_MESSAGE, "its readers of PTX and SASS", "device_code");
  return NULL;
}

struct audit *ptx_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  (void)arena;
  (void)text;
  return refuse(file, diags);
}

struct audit *sass_audit(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  (void)arena;
  (void)text;
  return refuse(file, diags);
}
