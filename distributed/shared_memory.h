#pragma once
// Memory that the processes of one machine have in common, which moves gradients ten times as fast as its network.
#include <ATen/ATen.h>

#include <memory>
#include <vector>

namespace cloze {

class Communicator;

/// A segment of floats for each process, which all of them see. It is in no file system, and ends with the last process
/// that has it.
class SharedMemory {
 public:
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  int64_t floats() const { return floats_; }
  /// fp32 [floats]
  const at::Tensor& of(int64_t rank) const { return segments_[static_cast<size_t>(rank)]; }

  /// Called by all processes, which are on one machine. Null where some cannot see each other's memory.
  static std::unique_ptr<SharedMemory> open(Communicator& processes, int64_t floats);

 private:
  explicit SharedMemory(int64_t floats) : floats_(floats) {}
  bool add(int file);

  int64_t floats_;
  std::vector<void*> mapped_{};
  std::vector<at::Tensor> segments_{};
};

/// The few numbers of a step that the processes of one machine tell each other, by memory that they have in common: in
/// microseconds, where the network of the machine takes a millisecond.
class SharedNumbers {
 public:
  ~SharedNumbers();
  SharedNumbers(const SharedNumbers&) = delete;
  SharedNumbers& operator=(const SharedNumbers&) = delete;
  /// The numbers of every process, by rank. Throws Error where another one has left.
  std::vector<std::vector<double>> exchange(const std::vector<double>& own);

  /// Called by all processes, which are on one machine. Null where some cannot see each other's memory.
  static std::unique_ptr<SharedNumbers> open(Communicator& processes);

 private:
  struct Note;
  SharedNumbers(std::unique_ptr<SharedMemory> memory, int64_t rank, int64_t size);
  void write(const std::vector<double>& numbers, size_t begin);
  void await(Note& note) const;
  Note& note_of(size_t rank) const;

  std::unique_ptr<SharedMemory> memory_;
  size_t rank_, size_;
  uint32_t turn_ = 0;  ///< of the last note
};

}  // namespace cloze
