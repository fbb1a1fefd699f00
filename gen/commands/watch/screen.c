#define _DEFAULT_SOURCE /* SIGWINCH, ppoll */
#define _GNU_SOURCE
#include "gen/commands/watch/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "gen/base/arena.h"
#include "gen/base/text.h"
#include "runtime/base/terminal.h"

enum { USUAL_COLUMNS = 80, USUAL_ROWS = 24 };

static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDING = sizeof ending / sizeof *ending };

/* A handler can be handed nothing. They come in ppoll alone. */
static volatile sig_atomic_t ends;    /* the signal that ends the process; 0: none came */
static volatile sig_atomic_t changed; /* the size is another one, or the terminal was somebody else's */
static volatile sig_atomic_t stops;   /* the process is to stop */

static void note(int signal) {
  if (signal == SIGTSTP)
    stops = 1;
  else if (signal == SIGWINCH || signal == SIGCONT)
    changed = 1;
  else
    ends = signal;
}

static sigset_t noted(void) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < ENDING; i++) sigaddset(&set, ending[i]);
  sigaddset(&set, SIGWINCH);
  sigaddset(&set, SIGTSTP);
  sigaddset(&set, SIGCONT);
  return set;
}

bool screen_is_there(void) {
  return rt_terminal_renews(STDOUT_FILENO);
}

static void write_all(const char *text) {
  size_t left = strlen(text);
  for (ssize_t written; left > 0; text += written, left -= (size_t)written) {
    written = write(STDOUT_FILENO, text, left);
    if (written < 0 && errno != EINTR) return; /* the terminal is gone, and SIGHUP comes */
    if (written < 0) written = 0;
  }
}

/* The alternate screen without a cursor, and keys as they are pressed. */
static void take(const struct screen *screen) {
  struct termios raw = screen->before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (screen->has_keys) tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write_all("\033[?1049h\033[?25l");
}

static void give_back(const struct screen *screen) {
  write_all("\033[?25h\033[?1049l");
  if (screen->has_keys) tcsetattr(STDIN_FILENO, TCSADRAIN, &screen->before);
}

void screen_open(struct screen *screen) {
  const sigset_t set = noted();
  struct sigaction action = {.sa_handler = note}, before;
  sigemptyset(&action.sa_mask);
  sigprocmask(SIG_BLOCK, &set, NULL);
  for (int i = 0; i < ENDING; i++) {
    sigaction(ending[i], NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(ending[i], &action, NULL);
  }
  sigaction(SIGWINCH, &action, NULL);
  sigaction(SIGTSTP, &action, NULL);
  sigaction(SIGCONT, &action, NULL);
  screen->has_keys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &screen->before) == 0;
  take(screen);
}

void screen_close(const struct screen *screen) {
  const sigset_t set = noted();
  give_back(screen);
  if (ends != 0) signal(ends, SIG_DFL);
  if (ends != 0) raise(ends); /* which is blocked until the next line */
  sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void screen_size(int *columns, int *rows) {
  struct winsize size = {0};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  *columns = size.ws_col > 0 ? size.ws_col : USUAL_COLUMNS;
  *rows = size.ws_row > 0 ? size.ws_row : USUAL_ROWS;
}

void screen_draw(const char *text) {
  struct arena *arena = arena_new();
  struct text out = text_in(arena);
  text_puts(&out, "\033[H");
  for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
    if (line != text) text_puts(&out, "\r\n");
    text_printf(&out, "%.*s\033[K", (int)strcspn(line, "\n"), line);
  }
  text_puts(&out, "\033[J");
  write_all(text_string(&out));
  arena_free(arena);
}

/* Stops as any other process, with the terminal as it was. */
static void stop(const struct screen *screen) {
  stops = 0;
  give_back(screen);
  raise(SIGSTOP);
  take(screen);
  changed = 1;
}

enum screen_event screen_wait(const struct screen *screen, double seconds, char *key) {
  const struct timespec time = {.tv_sec = (time_t)seconds,
                                .tv_nsec = (long)(1e9 * (seconds - (double)(time_t)seconds))};
  struct pollfd keys = {.fd = screen->has_keys ? STDIN_FILENO : -1, .events = POLLIN};
  sigset_t none;
  sigprocmask(SIG_BLOCK, NULL, &none);
  const sigset_t set = noted();
  for (int i = 1; i < NSIG; i++)
    if (sigismember(&set, i) == 1) sigdelset(&none, i);
  const int ready = ppoll(&keys, 1, &time, &none);
  if (stops) stop(screen);
  if (ends != 0) return SCREEN_ENDS;
  if (changed) {
    changed = 0;
    return SCREEN_RESIZED;
  }
  if (ready <= 0) return SCREEN_TIME;
  return read(STDIN_FILENO, key, 1) == 1 ? SCREEN_KEY : SCREEN_ENDS;
}
