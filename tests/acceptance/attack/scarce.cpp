// Preloaded into cloze: threads, processes, memory or /proc are scarce.
//
//   SCARCE_THREADS  threads beside the first that may live at a time; where they do, no process can be started either
//   SCARCE_MEMORY   the allocation after the beginning of `main` that fails, counted from 1
//   SCARCE_LASTS    later allocations fail, too: 1 all, otherwise those of at least so many bytes
//   SCARCE_COUNT    a file that receives the number of allocations, for the choice of the one that fails
//   SCARCE_PROC     set: there is no /proc
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <new>

#define SHOWN extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<long> living_threads{0}, allocations{0};
std::atomic<bool> is_armed{false};
long wanted_allocation = 0, lasting_bytes = 0;

long number_of(const char* name, long otherwise) {
  const char* value = getenv(name);
  return value && *value ? atol(value) : otherwise;
}

template <class F>
F next_of(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

/// Counts an allocation; true if it fails.
bool is_refused(size_t bytes) {
  if (!is_armed.load(std::memory_order_relaxed)) return false;
  const long number = ++allocations;
  if (wanted_allocation <= 0 || number < wanted_allocation) return false;
  return number == wanted_allocation || (lasting_bytes > 0 && bytes >= static_cast<size_t>(lasting_bytes));
}

bool is_full() {
  const long limit = number_of("SCARCE_THREADS", -1);
  return limit >= 0 && living_threads >= limit;
}

struct Start {
  void* (*work)(void*);
  void* argument;
};

void* counted_thread(void* given) {
  const auto start = *static_cast<Start*>(given);
  free(given);
  struct Living {
    ~Living() { --living_threads; }
  };
  const Living living;
  return start.work(start.argument);
}

bool is_hidden(const char* path) {
  return path && strncmp(path, "/proc", 5) == 0 && (path[5] == 0 || path[5] == '/') && getenv("SCARCE_PROC") != nullptr;
}

int (*program)(int, char**, char**);

void write_count() {
  const char* path = getenv("SCARCE_COUNT");
  if (!path) return;
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", allocations.load());
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  if (syscall(SYS_write, file, text, length) < 0) return;
  syscall(SYS_close, file);
}

int armed_program(int count, char** arguments, char** environment) {
  wanted_allocation = number_of("SCARCE_MEMORY", 0);
  lasting_bytes = number_of("SCARCE_LASTS", 0);
  is_armed = true;
  return program(count, arguments, environment);
}

}  // namespace

SHOWN int __libc_start_main(int (*given)(int, char**, char**), int count, char** arguments, void (*init)(),
                            void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  program = given;
  return next_of<int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*)>(
      "__libc_start_main")(armed_program, count, arguments, init, fini, rtld_fini, stack_end);
}

SHOWN void _exit(int code) {
  write_count();
  syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

// -- Threads and processes ----------------------------------------------------------------------------------------

SHOWN int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*), void* argument) {
  static const auto real = next_of<decltype(&pthread_create)>("pthread_create");
  if (is_full()) return EAGAIN;
  auto* start = static_cast<Start*>(malloc(sizeof(Start)));
  if (!start) return EAGAIN;
  *start = {work, argument};
  ++living_threads;
  const int result = real(thread, attributes, counted_thread, start);
  if (result != 0) --living_threads;
  return result;
}

SHOWN pid_t fork() {
  static const auto real = next_of<decltype(&fork)>("fork");
  if (!is_full()) return real();
  errno = EAGAIN;
  return -1;
}

// -- Memory -------------------------------------------------------------------------------------------------------

SHOWN void* malloc(size_t bytes) {
  static const auto real = next_of<decltype(&malloc)>("malloc");
  if (!is_refused(bytes)) return real(bytes);
  errno = ENOMEM;
  return nullptr;
}

SHOWN void* realloc(void* before, size_t bytes) {
  static const auto real = next_of<decltype(&realloc)>("realloc");
  if (!is_refused(bytes)) return real(before, bytes);
  errno = ENOMEM;
  return nullptr;
}

SHOWN int posix_memalign(void** made, size_t alignment, size_t bytes) {
  static const auto real = next_of<decltype(&posix_memalign)>("posix_memalign");
  return is_refused(bytes) ? ENOMEM : real(made, alignment, bytes);
}

__attribute__((visibility("default"))) void* operator new(size_t bytes) {
  static const auto real = next_of<void* (*)(size_t)>("_Znwm");
  if (is_refused(bytes)) throw std::bad_alloc();
  return real(bytes);
}

__attribute__((visibility("default"))) void* operator new[](size_t bytes) {
  static const auto real = next_of<void* (*)(size_t)>("_Znam");
  if (is_refused(bytes)) throw std::bad_alloc();
  return real(bytes);
}

// -- /proc --------------------------------------------------------------------------------------------------------

#define MODE_OF(flags)                             \
  mode_t mode = 0;                                 \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {         \
    va_list more;                                  \
    va_start(more, flags);                         \
    mode = static_cast<mode_t>(va_arg(more, int)); \
    va_end(more);                                  \
  }

#define ABSENT(answer) \
  do {                 \
    errno = ENOENT;    \
    return answer;     \
  } while (false)

SHOWN int open(const char* path, int flags, ...) {
  static const auto real = next_of<int (*)(const char*, int, ...)>("open");
  MODE_OF(flags)
  if (is_hidden(path)) ABSENT(-1);
  return real(path, flags, mode);
}

SHOWN int open64(const char* path, int flags, ...) {
  static const auto real = next_of<int (*)(const char*, int, ...)>("open64");
  MODE_OF(flags)
  if (is_hidden(path)) ABSENT(-1);
  return real(path, flags, mode);
}

SHOWN FILE* fopen(const char* path, const char* mode) {
  static const auto real = next_of<decltype(&fopen)>("fopen");
  if (is_hidden(path)) ABSENT(nullptr);
  return real(path, mode);
}

SHOWN FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next_of<decltype(&fopen64)>("fopen64");
  if (is_hidden(path)) ABSENT(nullptr);
  return real(path, mode);
}

SHOWN ssize_t readlink(const char* path, char* buffer, size_t size) {
  static const auto real = next_of<decltype(&readlink)>("readlink");
  if (is_hidden(path)) ABSENT(-1);
  return real(path, buffer, size);
}
