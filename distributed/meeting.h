#pragma once
// Where the processes of a run meet, by their launcher. Without LibTorch.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cloze {

/// Where the processes of a run meet, and which of them this one is.
struct Meeting {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;        ///< among those of this machine
  int64_t local_size = 1;        ///< processes of this machine
  std::string host{};            ///< of the first process
  int port = 29500;              ///< that of torchrun
  std::string interface_name{};  ///< of the network; empty: that which reaches the host
  double timeout = 120;          ///< seconds without an answer after which a process is lost
  std::string launcher{};        ///< `torchrun`, `srun`, `mpirun`
  /// Called by a thread of its own when another process has failed or is lost, with the last sentence of this one and
  /// its exit code; it does not return. Whatever the run does then is as if it were killed.
  std::function<void(const std::string& sentence, int exit_code)> end{};
};

/// A variable of the environment, or nothing.
using Variable = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment(const std::string& name);

/// The processes that a launcher has started, by its variables; nothing where this process was started alone.
///
/// rendezvous  HOST or HOST:PORT, as an option gives them; empty: MASTER_ADDR and MASTER_PORT, or this machine where
///             all are on it
///
/// Throws ConfigError for half a set of variables, for sets that disagree, values that are no ranks, and where nobody
/// says on which machine the first process is.
std::optional<Meeting> launched_meeting(const Variable& variable, const std::string& rendezvous = "");

}  // namespace cloze
