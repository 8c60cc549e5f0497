// Preloaded into cloze: lets the N-th file operation below a folder fail, or kills the process there.
//
//   ATTACK_ROOT    the folder; operations on other files are not counted
//   ATTACK_COUNT   a file that receives the number of counted operations, for the choice of N
//   ATTACK_N       the operation that is attacked, counted from 1
//   ATTACK_ACTION  kill, or the number of an errno
//   ATTACK_CALLS   operations that are counted: write, sync, rename, mkdir, open, remove; without it all
//   ATTACK_LASTS   every later operation fails too, as on a full disk
//   ATTACK_FIRED   a file that is created when an operation was attacked
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long counted;
static atomic_int has_fired;

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

/// The errno of the program stays what it is where no operation fails.
static int keep_errno(int result, int before) {
  errno = before;
  return result;
}

static int is_below_root(const char* path) {
  const int before = errno;
  const char* root = setting("ATTACK_ROOT");
  if (!*root || strcmp(program_invocation_short_name, "cloze") != 0) return 0;
  char folder[4096] = "";
  if (path[0] == '/') return strncmp(path, root, strlen(root)) == 0;
  return keep_errno(getcwd(folder, sizeof folder) && strncmp(folder, root, strlen(root)) == 0, before);
}

static int is_file_below_root(int file) {
  const int before = errno;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length <= 0 || path[0] != '/') return 0;
  path[length] = 0;
  return is_below_root(path);
}

static void note(const char* name, long number) {
  const char* path = setting(name);
  if (!*path) return;
  char text[32];
  const int length = snprintf(text, sizeof text, "%ld\n", number);
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  syscall(SYS_write, file, text, length);
  syscall(SYS_close, file);
}

/// Counts an operation; true if it fails, with errno set.
static int fails(const char* call) {
  const int before = errno;
  const char* calls = setting("ATTACK_CALLS");
  if (*calls && !strstr(calls, call)) return 0;
  const long number = atomic_fetch_add(&counted, 1) + 1;
  note("ATTACK_COUNT", number);
  const long wanted = atol(setting("ATTACK_N"));
  if (wanted <= 0 || number < wanted || (number > wanted && !*setting("ATTACK_LASTS"))) return keep_errno(0, before);
  if (!atomic_exchange(&has_fired, 1)) note("ATTACK_FIRED", number);
  if (strcmp(setting("ATTACK_ACTION"), "kill") == 0) kill(getpid(), SIGKILL);
  errno = atoi(setting("ATTACK_ACTION"));
  return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/// A write that is killed has written its first half.
static void write_half(int file, const void* data, size_t size) {
  if (strcmp(setting("ATTACK_ACTION"), "kill") != 0 || atol(setting("ATTACK_N")) != atomic_load(&counted) + 1) return;
  if (*setting("ATTACK_CALLS") && !strstr(setting("ATTACK_CALLS"), "write")) return;
  syscall(SYS_write, file, data, size / 2);
}

ssize_t write(int file, const void* data, size_t size) {
  REAL(write);
  if (is_file_below_root(file)) {
    write_half(file, data, size);
    if (fails("write")) return -1;
  }
  return real(file, data, size);
}

ssize_t pwrite(int file, const void* data, size_t size, off_t at) {
  REAL(pwrite);
  return is_file_below_root(file) && fails("write") ? -1 : real(file, data, size, at);
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t at) {
  REAL(pwrite64);
  return is_file_below_root(file) && fails("write") ? -1 : real(file, data, size, at);
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  REAL(writev);
  return is_file_below_root(file) && fails("write") ? -1 : real(file, parts, count);
}

size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  REAL(fwrite);
  return is_file_below_root(fileno(file)) && fails("write") ? 0 : real(data, size, count, file);
}

int fflush(FILE* file) {
  REAL(fflush);
  return file && is_file_below_root(fileno(file)) && fails("write") ? EOF : real(file);
}

int fsync(int file) {
  REAL(fsync);
  return is_file_below_root(file) && fails("sync") ? -1 : real(file);
}

int ftruncate(int file, off_t length) {
  REAL(ftruncate);
  return is_file_below_root(file) && fails("write") ? -1 : real(file, length);
}

int rename(const char* from, const char* to) {
  REAL(rename);
  return is_below_root(to) && fails("rename") ? -1 : real(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  REAL(renameat2);
  const int is_counted = to_folder == AT_FDCWD ? is_below_root(to) : is_file_below_root(to_folder);
  return is_counted && fails("rename") ? -1 : real(from_folder, from, to_folder, to, flags);
}

int mkdir(const char* path, mode_t mode) {
  REAL(mkdir);
  return is_below_root(path) && fails("mkdir") ? -1 : real(path, mode);
}

int unlink(const char* path) {
  REAL(unlink);
  return is_below_root(path) && fails("remove") ? -1 : real(path);
}

int unlinkat(int folder, const char* path, int flags) {
  REAL(unlinkat);
  const int is_counted = folder == AT_FDCWD ? is_below_root(path) : is_file_below_root(folder);
  return is_counted && fails("remove") ? -1 : real(folder, path, flags);
}

int rmdir(const char* path) {
  REAL(rmdir);
  return is_below_root(path) && fails("remove") ? -1 : real(path);
}

int remove(const char* path) {
  REAL(remove);
  return is_below_root(path) && fails("remove") ? -1 : real(path);
}

#define MODE_OF(flags)                            \
  mode_t mode = 0;                                \
  if ((flags) & (O_CREAT | __O_TMPFILE)) {        \
    va_list more;                                 \
    va_start(more, flags);                        \
    mode = va_arg(more, mode_t);                  \
    va_end(more);                                 \
  }

int open(const char* path, int flags, ...) {
  REAL(open);
  MODE_OF(flags)
  return is_below_root(path) && fails("open") ? -1 : real(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  REAL(open64);
  MODE_OF(flags)
  return is_below_root(path) && fails("open") ? -1 : real(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  REAL(openat);
  MODE_OF(flags)
  const int is_counted = folder == AT_FDCWD ? is_below_root(path) : is_file_below_root(folder);
  return is_counted && fails("open") ? -1 : real(folder, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  return is_below_root(path) && fails("open") ? NULL : real(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  return is_below_root(path) && fails("open") ? NULL : real(path, mode);
}
