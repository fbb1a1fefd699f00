/* What a compiler calls for each access of code that it instruments for ThreadSanitizer: here, what a kernel or the
 * host touches. */
#include "tests/cuda/standin/core.h"

#define ACCESS(bytes)                                                                                                  \
  void __tsan_read##bytes(void *address);                                                                              \
  void __tsan_read##bytes(void *address) {                                                                             \
    touch(address, bytes, false);                                                                                      \
  }                                                                                                                    \
  void __tsan_write##bytes(void *address);                                                                             \
  void __tsan_write##bytes(void *address) {                                                                            \
    touch(address, bytes, true);                                                                                       \
  }                                                                                                                    \
  void __tsan_unaligned_read##bytes(void *address);                                                                    \
  void __tsan_unaligned_read##bytes(void *address) {                                                                   \
    touch(address, bytes, false);                                                                                      \
  }                                                                                                                    \
  void __tsan_unaligned_write##bytes(void *address);                                                                   \
  void __tsan_unaligned_write##bytes(void *address) {                                                                  \
    touch(address, bytes, true);                                                                                       \
  }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void *address, size_t bytes);
void __tsan_read_range(void *address, size_t bytes) {
  touch(address, bytes, false);
}
void __tsan_write_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes) {
  touch(address, bytes, true);
}
void __tsan_vptr_update(void **address, void *value);
void __tsan_vptr_update(void **address, void *value) {
  (void)address, (void)value;
}
void __tsan_vptr_read(void **address);
void __tsan_vptr_read(void **address) {
  (void)address;
}

void __tsan_init(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from) {
  (void)from;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {}

/* Atomic operations are ordered among themselves; of other work they are accesses like any. */
#define ATOMIC(bits, type)                                                                                             \
  type __tsan_atomic##bits##_load(const volatile type *at, int order);                                                 \
  type __tsan_atomic##bits##_load(const volatile type *at, int order) {                                                \
    (void)order;                                                                                                       \
    touch((const void *)at, sizeof *at, false);                                                                        \
    return *at;                                                                                                        \
  }                                                                                                                    \
  void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                                          \
  void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                                         \
    (void)order;                                                                                                       \
    touch((const void *)at, sizeof *at, true);                                                                         \
    *at = value;                                                                                                       \
  }                                                                                                                    \
  type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order);                                       \
  type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) {                                      \
    type old = *at;                                                                                                    \
    __tsan_atomic##bits##_store(at, value, order);                                                                     \
    return old;                                                                                                        \
  }                                                                                                                    \
  type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order);                                      \
  type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order) {                                     \
    type old = *at;                                                                                                    \
    __tsan_atomic##bits##_store(at, (type)(old + value), order);                                                       \
    return old;                                                                                                        \
  }                                                                                                                    \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *old, type value, int order, int other);   \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *old, type value, int order, int other) {  \
    (void)other;                                                                                                       \
    bool same = *at == *old;                                                                                           \
    *old = *at;                                                                                                        \
    if (same) __tsan_atomic##bits##_store(at, value, order);                                                           \
    return same;                                                                                                       \
  }
ATOMIC(32, int)
ATOMIC(64, long long)
