#pragma once
// NCCL, by which GPUs send each other tensors. It comes with LibTorch's CUDA, and is looked for as the program runs:
// neither its headers nor those of CUDA are needed to build.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cloze::device {

/// Bytes on a card that go to another process, or come from it.
struct Transfer {
  int64_t peer;
  void* data;
  size_t bytes;
};

/// The cards of the processes of a run, one of each. All begin together, and call `broadcast` in the same order.
class Nccl {
 public:
  /// What the first process makes, and all begin with. Throws ConfigError where there is no NCCL.
  static std::string new_id();
  /// Waits for all. Throws ConfigError where there is no NCCL, and Error with its reason, as where two processes have
  /// one card.
  Nccl(int64_t rank, int64_t size, const std::string& id);
  ~Nccl();
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  /// Sends and receives, all at once, in the order of the stream, for which nobody waits here.
  void transfer(const std::vector<Transfer>& sent, const std::vector<Transfer>& received, void* stream) const;
  /// Overwrites bytes with those of the first process.
  void broadcast(void* data, size_t bytes, void* stream) const;

 private:
  void* communicator_ = nullptr;
};

}  // namespace cloze::device
