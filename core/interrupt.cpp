#include "core/interrupt.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>

namespace cloze {

namespace {

Interrupts own;
std::atomic<Interrupts*> shared{&own};

/// The head of an entry that getdents64 writes. Source: getdents64(2).
struct Entry {
  uint64_t inode;
  int64_t offset;
  unsigned short bytes;
  unsigned char type;
  char name[1];
};

/// Removes a file or a folder with all in it, with nothing but system calls: it runs in a signal handler.
void remove_in_handler(int parent, const char* name, int depth) {
  if (unlinkat(parent, name, 0) == 0 || depth == 0) return;
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(Entry) char block[4096];
  for (long n = 0; (n = syscall(SYS_getdents64, folder, block, sizeof block)) > 0;)
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const Entry*>(block + at);
      const char* inner = block + at + offsetof(Entry, name);
      at += entry->bytes;
      if (std::strcmp(inner, ".") != 0 && std::strcmp(inner, "..") != 0) remove_in_handler(folder, inner, depth - 1);
    }
  close(folder);
  unlinkat(parent, name, AT_REMOVEDIR);
}

double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Writes a sentence to standard error with nothing but a system call: it runs in a signal handler. Its leading line
/// break is for a terminal, where a progress line and a `^C` may precede it.
void say(Interrupts& state, const char* sentence) {
  const int before = errno;
  ++state.said;
  if (!state.on_terminal) ++sentence;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, sentence, std::strlen(sentence));
  errno = before;
}

void on_signal(int signal) {
  constexpr double together = 0.2;  // `timeout` signals a process, then its group: it has asked once
  auto& state = *shared.load();
  const bool is_owner = state.owner == getpid();  // and not a child that it has forked
  const char* sentence = state.sentence;
  if (state.saves) {
    double first = 0;
    if (state.requested_at.compare_exchange_strong(first, seconds_now())) {
      state.signal = signal;
      state.requested = true;
    }
    if (first == 0 && is_owner && sentence != nullptr) say(state, sentence);
    if (first == 0 || seconds_now() - first < together) return;
  }
  if (is_owner) {
    say(state, state.saves && sentence != nullptr ? "\nended by a second signal\n" : "\n");
    remove_doomed();
  }
  _exit(128 + signal);
}

/// The end of a program whose output nobody reads any more: as without a handler, and nothing is left half written.
void on_closed_pipe(int signal) {
  remove_doomed();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void listen() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction before{};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // ignored: started by nohup
}

}  // namespace

DoomedFolder::DoomedFolder(const std::string& path) : path_(std::filesystem::absolute(path).string()) {
  auto& state = interrupts();
  state.owner = getpid();
  for (auto& slot : state.doomed) {
    const char* empty = nullptr;
    if (!slot.compare_exchange_strong(empty, path_.c_str())) continue;
    slot_ = &slot;
    return;
  }
}

void remove_doomed() {
  const auto& state = interrupts();
  if (state.owner != getpid()) return;
  for (const auto& path : state.doomed)
    if (path != nullptr) remove_in_handler(AT_FDCWD, path, 8);
}

void DoomedFolder::spare() {
  if (slot_ != nullptr) slot_->store(nullptr);
  slot_ = nullptr;
}

InterruptFlag::operator bool() const { return interrupts().requested; }

void install_interrupt_handlers() {
  auto& state = interrupts();
  state.owner = getpid();
  state.on_terminal = isatty(STDERR_FILENO) == 1;
  listen();
  struct sigaction before{};
  sigaction(SIGPIPE, nullptr, &before);
  if (before.sa_handler != SIG_IGN) signal(SIGPIPE, on_closed_pipe);
  signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is reported by the write
}

void save_when_interrupted(const char* sentence) {
  interrupts().sentence = sentence;
  interrupts().saves = true;
  // A pipe's reader, such as tee, may end by the same Ctrl-C before the sentence is written to it.
  if (sentence != nullptr) signal(SIGPIPE, SIG_IGN);
}

int interrupt_code() { return interrupts().sentence == nullptr ? 128 + interrupts().signal : 130; }

Interrupts& interrupts() { return *shared.load(); }

void share_interrupts(Interrupts& of_program) { shared = &of_program; }

bool wait_for_input(int file) {
  constexpr int longest = 200;  // ms: a signal between the question and poll() is seen by the next question
  pollfd input{.fd = file, .events = POLLIN, .revents = 0};
  do {
    const int ready = poll(&input, 1, longest);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // what is wrong is for the read to say
  } while (!interrupts().requested);
  return false;
}

}  // namespace cloze
