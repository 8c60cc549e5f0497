#include "core/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <mutex>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/spelling.h"

namespace cloze {

namespace {

/// A mapped file, as the handler of the signal finds it.
struct MappingSlot {
  std::atomic<bool> is_taken{false};
  std::atomic<const char*> begin{nullptr};  ///< set last, and cleared first
  std::atomic<size_t> bytes{0};
  std::atomic<const char*> sentence{nullptr};
  std::atomic<bool> has_lost_parts{false};
};
std::array<MappingSlot, 4096> mapping_slots;

struct sigaction earlier_action;
thread_local bool reads_zeros = false;

/// Puts zeros in the place of a mapping's rest; false where that cannot be done.
bool put_zeros(const char* from, const char* end) {
  const auto within_page = reinterpret_cast<uintptr_t>(from) % static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* begin = const_cast<char*>(from - within_page);
  return mmap(begin, static_cast<size_t>(end - begin), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
}

void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto* at = static_cast<const char*>(info->si_addr);
  for (auto& slot : mapping_slots) {
    const auto* begin = slot.begin.load();
    if (begin == nullptr || at < begin || at >= begin + slot.bytes) continue;
    if (reads_zeros && put_zeros(at, begin + slot.bytes)) {
      slot.has_lost_parts = true;
      return;
    }
    const char* sentence = slot.sentence;
    if (!interrupts().on_terminal) ++sentence;  // its line break, which ends a progress line
    [[maybe_unused]] const auto written = write(STDERR_FILENO, sentence, std::strlen(sentence));
    _exit(1);
  }
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0) return earlier_action.sa_sigaction(signal, info, context);
  ::signal(SIGBUS, SIG_DFL);  // the same access ends the process
}

void listen_for_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &earlier_action);
  });
}

}  // namespace

GuardedMapping::GuardedMapping(const void* base, size_t bytes, const std::string& path, const std::string& remedy)
    : sentence_(concat("\ncloze: error: ", visible(path), ": became shorter while it was read; ", remedy, "\n")),
      slot_(mapping_slots.size()) {
  listen_for_bus_errors();
  for (size_t i = 0; i < mapping_slots.size(); ++i) {
    auto& slot = mapping_slots[i];
    if (slot.is_taken.exchange(true)) continue;
    slot.bytes = bytes;
    slot.has_lost_parts = false;
    slot.sentence = sentence_.c_str();
    slot.begin = static_cast<const char*>(base);
    slot_ = i;
    return;
  }
}

GuardedMapping::~GuardedMapping() {
  if (slot_ == mapping_slots.size()) return;
  mapping_slots[slot_].begin = nullptr;
  mapping_slots[slot_].is_taken = false;
}

bool GuardedMapping::has_lost_parts() const {
  return slot_ < mapping_slots.size() && mapping_slots[slot_].has_lost_parts;
}

LostPartsAsZeros::LostPartsAsZeros() { reads_zeros = true; }
LostPartsAsZeros::~LostPartsAsZeros() { reads_zeros = false; }

MemoryFile::MemoryFile(const std::string& text) : descriptor_(memfd_create("cloze", MFD_CLOEXEC)) {
  require<Error>(descriptor_ >= 0, "no memory for what another program reads or prints (", system_reason(), ")");
  size_t written = 0;
  for (ssize_t n = 1; n > 0 && written < text.size(); written += static_cast<size_t>(n > 0 ? n : 0))
    n = write(descriptor_, text.data() + written, text.size() - written);
  if (written == text.size() && lseek(descriptor_, 0, SEEK_SET) == 0) return;
  const auto reason = system_reason();
  close(descriptor_);
  fail("no memory for what another program reads (", reason, ")");
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::text() const {
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = pread(descriptor_, buffer, sizeof buffer, static_cast<off_t>(all.size()))) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  return all;
}

}  // namespace cloze
