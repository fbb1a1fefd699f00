/* A switch between network namespaces whose links have a delay, a loss and a rate, as those of tc's netem, which not
 * every kernel has: in each namespace an Ethernet device eth0, the frames of which this process carries.
 *
 * usage: switch NAMESPACE...
 * Prints "ready"; then a line "PORT DELAY_US LOSS BYTES_A_SECOND" says how frames that leave port PORT go from now on
 * (a rate of 0 is none, a loss of 1 a link that is cut, both ways), and "ok" answers it. Ends with its standard input.
 * SEED is the seed of what is lost.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 16, WAITING = 4096, FRAME = 9216, AT_ONCE = 64 };

struct frame {
  double due; /* when it arrives */
  int length;
  unsigned char bytes[FRAME];
};

struct port {
  int fd;
  double delay, loss, rate; /* seconds, a fraction, bytes a second */
  double free;              /* when its link has sent what it was given */
  struct frame *frames;     /* a ring, in the order in which they are due */
  int first, count;
  unsigned char address[6];
};

static struct port ports[PORTS];
static int n_ports;
static unsigned long long state;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* xorshift64* */
static double drawn(void) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return (double)((state * 0x2545F4914F6CDD1DULL) >> 11) / (double)(1ULL << 53);
}

static void fail(const char *what) {
  fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* A device belongs to the namespace in which it is opened. */
static void open_port(struct port *port, const char *namespace) {
  char path[512];
  struct ifreq request = {.ifr_name = "eth0", .ifr_flags = IFF_TAP | IFF_NO_PI};
  snprintf(path, sizeof path, "/run/netns/%s", namespace);
  int at = open(path, O_RDONLY | O_CLOEXEC);
  if (at < 0 || setns(at, CLONE_NEWNET) != 0) fail(path);
  close(at);
  port->fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (port->fd < 0 || ioctl(port->fd, TUNSETIFF, &request) != 0) fail("/dev/net/tun");
  port->frames = calloc(WAITING, sizeof *port->frames);
  if (port->frames == NULL) fail("memory");
}

static void take(struct port *port) {
  for (int i = 0; i < AT_ONCE; i++) {
    struct frame *frame = &port->frames[(port->first + port->count) % WAITING];
    ssize_t length = read(port->fd, frame->bytes, FRAME);
    if (length < 14) return;
    memcpy(port->address, frame->bytes + 6, 6);
    if (port->count == WAITING - 1 || (port->loss > 0 && drawn() < port->loss)) continue;
    double start = now();
    if (port->free > start) start = port->free;
    port->free = port->rate > 0 ? start + (double)length / port->rate : start;
    frame->due = port->free + port->delay;
    frame->length = (int)length;
    port->count++;
  }
}

/* To the port whose device has the address; to all while none is known. */
static void deliver(const struct port *from, const struct frame *frame) {
  int known = -1;
  for (int i = 0; i < n_ports; i++)
    if (memcmp(ports[i].address, frame->bytes, 6) == 0) known = i;
  for (int i = 0; i < n_ports; i++) {
    if (&ports[i] == from || (known >= 0 && i != known) || ports[i].loss >= 1) continue;
    if (write(ports[i].fd, frame->bytes, (size_t)frame->length) < 0) continue; /* as on a full queue */
  }
}

static void send_due(struct port *port, double time) {
  for (; port->count > 0 && port->frames[port->first].due <= time; port->count--) {
    deliver(port, &port->frames[port->first]);
    port->first = (port->first + 1) % WAITING;
  }
}

/* false: no more orders will come. */
static int obey(void) {
  char line[256];
  int at;
  double delay, loss, rate;
  if (fgets(line, sizeof line, stdin) == NULL) return 0;
  if (sscanf(line, "%d %lf %lf %lf", &at, &delay, &loss, &rate) != 4 || at < 0 || at >= n_ports) return 0;
  ports[at].delay = 1e-6 * delay, ports[at].loss = loss, ports[at].rate = rate;
  puts("ok");
  return 1;
}

int main(int argc, char **argv) {
  const char *seed = getenv("SEED");
  struct pollfd polled[PORTS + 1];
  state = 0x9E3779B97F4A7C15ULL ^ (seed != NULL ? strtoull(seed, NULL, 10) : 0);
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  for (; n_ports < PORTS && n_ports + 1 < argc; n_ports++) open_port(&ports[n_ports], argv[n_ports + 1]);
  if (home < 0 || setns(home, CLONE_NEWNET) != 0) fail("its own namespace");
  for (int i = 0; i < n_ports; i++) polled[i] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN};
  polled[n_ports] = (struct pollfd){.fd = 0, .events = POLLIN};
  puts("ready");
  for (;;) {
    double next = now() + 1;
    for (int i = 0; i < n_ports; i++)
      if (ports[i].count > 0 && ports[i].frames[ports[i].first].due < next) next = ports[i].frames[ports[i].first].due;
    double wait = next - now();
    struct timespec limit = {0, wait > 0 ? (long)(1e9 * (wait < 0.999 ? wait : 0.999)) : 0};
    if (ppoll(polled, (nfds_t)n_ports + 1, &limit, NULL) < 0 && errno != EINTR) fail("poll");
    if (polled[n_ports].revents != 0 && !obey()) return 0;
    for (int i = 0; i < n_ports; i++) take(&ports[i]);
    double time = now();
    for (int i = 0; i < n_ports; i++) send_due(&ports[i], time);
  }
}
