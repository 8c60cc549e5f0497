#pragma once
// A command of the user's that is told what happens to a run.
#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/mapped_file.h"

namespace cloze {

/// How long a process waits for the command of one event before that of the next, and at its end [s], at first.
inline constexpr double hook_patience = 30;

/// A command that the shell runs for each event of a run, with the event as a line of JSON on its standard input. The
/// run goes on meanwhile. Before the next event, and at the end, the command is waited for, and killed where it takes
/// longer than `patience` [s]. Each time that it does, the patience is halved, so that one which always hangs costs a
/// run twice the patience at most. After a signal to this process nothing is waited for. One that fails is warned of,
/// once for each kind of event, with the last line that it printed, and stops nothing; what else it prints is dropped.
class Hook {
 public:
  /// Without a command nothing is reported.
  explicit Hook(std::string command, double patience = hook_patience)
      : command_(std::move(command)), patience_(patience) {}
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  ~Hook();
  bool is_set() const { return !command_.empty(); }
  /// `event`: an object whose `event` is its kind.
  void tell(const nlohmann::json& event);

 private:
  void start(const std::string& event);
  void finish();
  void warn(const std::string& reason);

  std::string command_;
  double patience_;
  std::string kind_{};                  ///< of the last event
  std::set<std::string> warned_{};      ///< kinds of events
  pid_t child_ = 0;                     ///< 0: none
  std::optional<MemoryFile> output_{};  ///< of the child
};

}  // namespace cloze
