/* Annotations for ThreadSanitizer: the locks and condition variables of Rust's standard library, which is distributed
 * without its instrumentation, order memory accesses, and so does epoll.
 *
 * The fast paths of locks are inlined into the library under test, where they are seen; the slow paths are wrapped
 * here, with the linker's --wrap. The runner passes the names. Arguments are passed through unchanged: all are in
 * registers.
 */

#include <stdint.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define WRAPPED(name, symbol)                                                                                          \
  uintptr_t real_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) __asm__("__real_" symbol);    \
  uintptr_t wrap_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) __asm__("__wrap_" symbol);    \
  uintptr_t wrap_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)

/* Takes a lock for which others wait. */
#define TAKES(name, symbol)                                                                                            \
  WRAPPED(name, symbol) {                                                                                              \
    const uintptr_t result = real_##name(a, b, c, d, e);                                                               \
    __tsan_acquire((void *)a);                                                                                         \
    return result;                                                                                                     \
  }

/* Releases its lock, the second argument, and takes it again. */
#define WAITS(name, symbol)                                                                                            \
  WRAPPED(name, symbol) {                                                                                              \
    __tsan_release((void *)b);                                                                                         \
    const uintptr_t result = real_##name(a, b, c, d, e);                                                               \
    __tsan_acquire((void *)b);                                                                                         \
    return result;                                                                                                     \
  }

TAKES(mutex, MUTEX_LOCK)
TAKES(read, RWLOCK_READ)
TAKES(write, RWLOCK_WRITE)
WAITS(wait, CONDVAR_WAIT)
WAITS(wait_timeout, CONDVAR_WAIT_TIMEOUT)

/* A once-initialization happens before everything that follows it. */
WRAPPED(once, ONCE_CALL) {
  const uintptr_t result = real_once(a, b, c, d, e);
  __tsan_acquire((void *)a);
  __tsan_release((void *)a);
  return result;
}

/* What happens before a descriptor is registered, or registered again, happens before its events. ThreadSanitizer knows
 * this only if both are done by the same descriptor of the epoll instance, and tokio registers by a duplicate. */
static char registered;

WRAPPED(epoll_ctl, "epoll_ctl") {
  __tsan_release(&registered);
  return real_epoll_ctl(a, b, c, d, e);
}

WRAPPED(epoll_wait, "epoll_wait") {
  const uintptr_t result = real_epoll_wait(a, b, c, d, e);
  __tsan_acquire(&registered);
  return result;
}

/* `Arc` and its like release with a fence behind the last decrement, and ThreadSanitizer knows no fences: every
 * decrement acquires as well, then. */
enum { RELEASE = 3, ACQUIRE_AND_RELEASE = 4 };

uint64_t __real___tsan_atomic64_fetch_sub(volatile uint64_t *counter, uint64_t by, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *counter, uint64_t by, int order);
uint64_t __wrap___tsan_atomic64_fetch_sub(volatile uint64_t *counter, uint64_t by, int order) {
  return __real___tsan_atomic64_fetch_sub(counter, by, order == RELEASE ? ACQUIRE_AND_RELEASE : order);
}
