#include "distributed/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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
int open_segment(const std::string& told) {
  const auto space = told.find(' ');
  const int file = space == told.npos ? -1 : open(told.substr(0, space).c_str(), O_RDWR | O_CLOEXEC);
  uint64_t number = 0;
  if (file >= 0 && pread(file, &number, sizeof number, 0) == static_cast<ssize_t>(sizeof number) &&
      concat(number) == told.substr(space + 1))
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
  const auto told = exchange_json(processes, own < 0 ? "" : concat("/proc/", getpid(), "/fd/", own, " ", number));
  std::unique_ptr<SharedMemory> memory(new SharedMemory(floats));
  const bool has_all =
      std::ranges::all_of(told, [&](const nlohmann::json& one) { return memory->add(open_segment(one)); });
  const auto all = processes.exchange({has_all ? 1.0 : 0.0});  // who has not opened the own one by now never will
  if (own >= 0) close(own);
  const bool works = std::ranges::all_of(all, [](const auto& one) { return one[0] == 1; });
  return works ? std::move(memory) : nullptr;
}

}  // namespace cloze
