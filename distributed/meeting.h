#pragma once
// Where the processes of a run meet, by their launcher. Without LibTorch.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/error.h"

namespace cloze {

/// Another process of the run has ended, or does not answer. Exit code 4.
struct ProcessLost : Error {
  using Error::Error;
  int exit_code() const noexcept override { return 4; }
};

/// Why all processes of a run end.
struct Failure {
  int exit_code = 1;
  std::string sentence{};
  bool is_of_first = false;  ///< the first process, which speaks for all, is the one that is lost
};

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
  std::string launcher{};        ///< `--processes`, `torchrun`, `srun`, `mpirun`
  std::string id{};              ///< by which the launcher tells its runs from each other; empty: none is known
  int64_t restarts = 0;          ///< how often the launcher has started all of them again after a failure
  bool has_store = false;        ///< the launcher serves the store at which they meet
  int listener = -1;             ///< a listening socket of the first process with its port; -1: it makes its own
  /// Called by a thread of its own when another process has failed or is lost; it does not return. Whatever the run
  /// does then is as if it were killed.
  std::function<void(const Failure&)> end{};

  bool is_local() const { return local_size == size; }
};

/// A variable of the environment, or nothing.
using Variable = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> environment(const std::string& name);

/// Set by Cloze for the processes that it starts itself, as torchrun would: the descriptor of a listening socket.
inline constexpr const char* own_launcher = "CLOZE_LISTENER";

/// Which of the processes that a launcher has started this one is, by its variables, without a place to meet; nothing
/// where this process was started alone. A batch script of Slurm is alone: srun starts the steps of a job.
///
/// Throws ConfigError for half a set of variables, for sets that disagree, and for values that are no ranks.
std::optional<Meeting> launched_rank(const Variable& variable);

/// The same with the place.
///
/// rendezvous  HOST or HOST:PORT, as an option gives them; empty: MASTER_ADDR and MASTER_PORT, or this machine where
///             all are on it
///
/// Throws ConfigError where nobody says on which machine the first process is, too.
std::optional<Meeting> launched_meeting(const Variable& variable, const std::string& rendezvous = "");

/// Removes the variables from the environment, so that programs which this one starts are alone.
void forget_launcher();

}  // namespace cloze
