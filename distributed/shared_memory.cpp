#include "distributed/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "core/text.h"
#include "distributed/communicator.h"

namespace cloze {

namespace {

constexpr int64_t first_float = 16;  ///< of a segment, after the number by which it is known

size_t bytes_of(int64_t floats) { return static_cast<size_t>(first_float + floats) * sizeof(float); }

/// A number that no other segment has.
uint64_t number_of(int64_t floats) {
  return mix(mix(static_cast<uint64_t>(getpid()), static_cast<uint64_t>(floats)),
             static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
}

/// A new segment with this number in front; -1: the system gives none.
int make_segment(int64_t floats, uint64_t number) {
  const int file = memfd_create("cloze", MFD_CLOEXEC);
  if (file < 0) return -1;
  const bool is_made = ftruncate(file, static_cast<off_t>(bytes_of(floats))) == 0 &&
                       pwrite(file, &number, sizeof number, 0) == static_cast<ssize_t>(sizeof number);
  if (is_made) return file;
  close(file);
  return -1;
}

/// The segment of another process, by `PATH NUMBER`; -1: it cannot be seen, or is another one.
int open_segment(const std::string& address) {
  const auto space = address.find(' ');
  const int file = space == address.npos ? -1 : open(address.substr(0, space).c_str(), O_RDWR | O_CLOEXEC);
  uint64_t number = 0;
  if (file >= 0 && pread(file, &number, sizeof number, 0) == static_cast<ssize_t>(sizeof number) &&
      concat(number) == address.substr(space + 1))
    return file;
  if (file >= 0) close(file);
  return -1;
}

}  // namespace

SharedMemory::~SharedMemory() {
  for (auto* memory : mapped_) munmap(memory, bytes_of(floats_));
}

/// Maps a segment, whose file is closed.
bool SharedMemory::add(int file) {
  if (file < 0) return false;
  auto* memory = mmap(nullptr, bytes_of(floats_), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return false;
  mapped_.push_back(memory);
  segments_.push_back(at::from_blob(static_cast<float*>(memory) + first_float, {floats_}));
  return true;
}

std::unique_ptr<SharedMemory> SharedMemory::open(Communicator& processes, int64_t floats) {
  const auto number = number_of(floats);
  const int own = make_segment(floats, number);
  const auto addresses = exchange_json(processes, own < 0 ? "" : concat("/proc/", getpid(), "/fd/", own, " ", number));
  std::unique_ptr<SharedMemory> memory(new SharedMemory(floats));
  const bool has_all =
      std::ranges::all_of(addresses, [&](const nlohmann::json& one) { return memory->add(open_segment(one)); });
  const auto all = processes.exchange({has_all ? 1.0 : 0.0});  // who has not opened the own one by now never will
  if (own >= 0) close(own);
  const bool works = std::ranges::all_of(all, [](const auto& one) { return one[0] == 1; });
  return works ? std::move(memory) : nullptr;
}

// -- Numbers ----------------------------------------------------------------------------------------------------------

namespace {

constexpr size_t at_once = 512;  ///< numbers in a note

/// Lets the other thread of this core go on for a moment.
void rest() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

/// What a process shows to the others. Its numbers have two slots by turns: a process writes its next but one when all
/// have shown their next, for which they have read this one.
struct SharedNumbers::Note {
  std::atomic<uint32_t> turn, waiting, has_left;
  struct Slot {
    uint64_t count;  ///< of all numbers, which follow in several notes where they are many
    double numbers[at_once];
  } slots[2];
};

SharedNumbers::SharedNumbers(std::unique_ptr<SharedMemory> memory, int64_t rank, int64_t size)
    : memory_(std::move(memory)), rank_(static_cast<size_t>(rank)), size_(static_cast<size_t>(size)) {}

std::unique_ptr<SharedNumbers> SharedNumbers::open(Communicator& processes) {
  auto memory = SharedMemory::open(processes, sizeof(Note) / sizeof(float));
  if (!memory) return nullptr;
  return std::unique_ptr<SharedNumbers>(new SharedNumbers(std::move(memory), processes.rank(), processes.size()));
}

SharedNumbers::Note& SharedNumbers::note_of(size_t rank) const {
  return *reinterpret_cast<Note*>(memory_->of(static_cast<int64_t>(rank)).data_ptr<float>());  // zeros at first
}

SharedNumbers::~SharedNumbers() { note_of(rank_).has_left = 1; }

/// Shows the own numbers from `begin` on, as many as fit.
void SharedNumbers::write(const std::vector<double>& numbers, size_t begin) {
  auto& note = note_of(rank_);
  auto& slot = note.slots[++turn_ % 2];
  slot.count = numbers.size();
  const auto first = std::min(begin, numbers.size()), end = std::min(begin + at_once, numbers.size());
  std::copy(numbers.data() + first, numbers.data() + end, slot.numbers);
  note.turn = turn_;
  if (note.waiting > 0) syscall(SYS_futex, &note.turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Waits for the note of this turn: awake for a while, then asleep.
void SharedNumbers::await(Note& note) const {
  constexpr int looks = 4000;                                   // some 50 microseconds
  constexpr timespec nap{.tv_sec = 0, .tv_nsec = 200'000'000};  // until one looks whether that process has left
  const auto is_there = [&](uint32_t turn) { return static_cast<int32_t>(turn - turn_) >= 0; };
  for (int look = 0; look < looks; ++look) {
    if (is_there(note.turn)) return;
    rest();
  }
  ++note.waiting;
  for (uint32_t turn; !is_there(turn = note.turn);) {
    if (note.has_left != 0 && !is_there(note.turn)) fail("it has left");
    syscall(SYS_futex, &note.turn, FUTEX_WAIT, turn, &nap, nullptr, 0);
  }
  --note.waiting;
}

std::vector<std::vector<double>> SharedNumbers::exchange(const std::vector<double>& own) {
  std::vector<std::vector<double>> all(size_);
  for (size_t begin = 0, most = 1; begin < most; begin += at_once) {
    write(own, begin);
    for (size_t rank = 0; rank < size_; ++rank) {
      auto& note = note_of(rank);
      await(note);
      const auto& slot = note.slots[turn_ % 2];
      const auto more = std::min<size_t>(at_once, slot.count - std::min<size_t>(begin, slot.count));
      all[rank].insert(all[rank].end(), slot.numbers, slot.numbers + more);
      most = std::max<size_t>(most, slot.count);
    }
  }
  return all;
}

}  // namespace cloze
