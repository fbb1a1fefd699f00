/* The threads of a block, one after the other, each on a stack of its own until it waits for others or ends. */
#include <stdio.h>
#include <stdlib.h>

#include <accel/gpu/launch.h>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

#if !defined __x86_64__
#error "stacks are switched by instructions of x86-64"
#endif

/* Keeps the registers that a call preserves on the stack at hand, notes it in *from, and continues on another one. */
extern "C" void host_switch(void **from, void *to);
__asm__(".text\n"
        ".globl host_switch\n"
        "host_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  retq\n");

namespace {

/* STACK: no multiple of a large power of two, so that the same variables of threads are in different sets of caches. */
enum { STACK = (132 << 10) + 320, MOST_THREADS = 1024, WARP = 32 };
enum state { READY, AT_WARP, AT_BLOCK, ENDED };

struct thread {
  enum state state;
  uint3 index;
  void *stack; /* NULL before the thread has begun */
  char *stack_memory;  /* the memory of its stack */
  unsigned side;
};

char *free_stacks[MOST_THREADS]; /* those that no thread has; the last one was used last */
unsigned n_free_stacks;
struct thread threads[MOST_THREADS];
uint64_t lanes[2][MOST_THREADS];
unsigned n_threads, current;
void *scheduler; /* the stack of whoever launched */
void (*body)(const void *);
const void *given;

/* Whether blocks, warps and lanes take turns from the last to the first: what one reads that another writes, without a
 * barrier between them, is then read on the other side of the write. HOST_ORDER=reversed in the environment asks for
 * it. */
bool is_reversed() {
  static const char *const order = getenv("HOST_ORDER");
  return order != NULL && strcmp(order, "reversed") == 0;
}

bool reversed;

/* Of `count` that take turns, the one whose turn is the i-th. */
unsigned turn(unsigned i, unsigned count) {
  return reversed ? count - 1 - i : i;
}

void run_thread(void) {
  body(given);
  threads[current].state = ENDED;
  free_stacks[n_free_stacks++] = threads[current].stack_memory; /* for a thread that begins after the switch */
  void *nowhere;
  host_switch(&nowhere, scheduler);
  abort();
}

void wait(enum state state) {
  const unsigned me = current;
  threads[me].state = state;
  host_switch(&threads[me].stack, scheduler);
}

/* A thread that begins at run_thread, as host_switch will find it: on the stack of the one that ended last, which most
 * kernels without barriers do not leave. */
void begin(struct thread *thread) {
  thread->stack_memory = free_stacks[--n_free_stacks];
  void **top = (void **)(thread->stack_memory + STACK);
  *--top = NULL; /* so that the stack is aligned as at a call */
  *--top = (void *)run_thread;
  for (int i = 0; i < 6; i++) *--top = NULL;
  thread->stack = top;
}

/* Runs the threads of a warp until none can continue. Whether one did. */
bool run_warp(unsigned first) {
  const unsigned end = first + WARP < n_threads ? first + WARP : n_threads;
  bool moved = false;
  for (bool again = true; again;) {
    bool all_wait = true;
    again = false;
    for (unsigned i = 0; i < end - first; i++) {
      const unsigned t = first + turn(i, end - first);
      if (threads[t].state == READY) {
        current = t;
        threadIdx = threads[t].index;
        if (threads[t].stack == NULL) begin(&threads[t]);
        host_switch(&scheduler, threads[t].stack);
        moved = true;
      }
      if (threads[t].state == AT_BLOCK) all_wait = false;
    }
    for (unsigned t = first; t < end && all_wait; t++)
      if (threads[t].state == AT_WARP) {
        threads[t].state = READY;
        again = true;
      }
  }
  return moved;
}

void run_block(const char *call) {
  for (;;) {
    bool moved = false, ended = true, all_at_block = true;
    const unsigned warps = (n_threads + WARP - 1) / WARP;
    for (unsigned i = 0; i < warps; i++) moved |= run_warp(turn(i, warps) * WARP);
    for (unsigned t = 0; t < n_threads; t++) {
      ended &= threads[t].state == ENDED;
      all_at_block &= threads[t].state == ENDED || threads[t].state == AT_BLOCK;
    }
    if (ended) return;
    if (!all_at_block && !moved) {
      fprintf(stderr, "%s: threads of a block wait for each other for ever\n", call);
      exit(1);
    }
    for (unsigned t = 0; t < n_threads && all_at_block; t++)
      if (threads[t].state == AT_BLOCK) threads[t].state = READY;
  }
}

} // namespace

void __syncthreads(void) {
  wait(AT_BLOCK);
}

int __syncthreads_or(int predicate) {
  static int any;
  any |= predicate != 0;
  __syncthreads();
  const int found = any;
  __syncthreads();
  any = 0;
  __syncthreads();
  return found;
}

void __syncwarp(unsigned) {
  wait(AT_WARP);
}

uint64_t *host_lanes(void) {
  return lanes[threads[current].side ^= 1] + current / WARP * WARP;
}

void host_run(const char *call, dim3 grid, dim3 block, void (*run)(const void *arguments), const void *arguments) {
  if (n_free_stacks == 0) {
    char *stacks = (char *)malloc((size_t)MOST_THREADS * STACK);
    for (; n_free_stacks < MOST_THREADS; n_free_stacks++) free_stacks[n_free_stacks] = stacks + (size_t)n_free_stacks * STACK;
  }
  n_threads = block.x * block.y * block.z;
  if (n_threads > MOST_THREADS || n_threads == 0 || grid.y > 65535 || grid.z > 65535 || grid.x == 0) {
    fprintf(stderr, "%s: no GPU takes a launch of %u x %u x %u blocks of %u threads\n", call, grid.x, grid.y, grid.z,
            n_threads);
    exit(1);
  }
  body = run;
  given = arguments;
  gridDim = grid;
  blockDim = block;
  reversed = is_reversed();
  for (unsigned t = 0; t < n_threads; t++)
    threads[t].index = {t % block.x, t / block.x % block.y, t / block.x / block.y};
  const unsigned blocks = grid.x * grid.y * grid.z;
  for (unsigned i = 0; i < blocks; i++) {
    const unsigned b = turn(i, blocks);
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    for (unsigned t = 0; t < n_threads; t++) threads[t] = {READY, threads[t].index, NULL, NULL, 0};
    run_block(call);
  }
}
