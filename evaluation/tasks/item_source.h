#pragma once
// The file, or the pipe, with the items that a verb is given for a task.
#include <functional>
#include <string>

#include "core/file.h"
#include "tasks/task.h"

namespace cloze {

/// Items of a file, or of standard input (`-`), which is copied so that it can be read like the task's test split.
class ItemSource {
 public:
  /// Throws ConfigError for a file that is not there, DataError for a device, and where the copy has no room: items of
  /// a part would pass for all.
  ItemSource(const Task& task, const std::string& named);

  /// As it is read.
  const std::string& file() const { return file_; }
  /// Gives the items to `take`, `window` at a time; returns their split without them. Throws
  /// DataError as read_items_in_windows, which calls a copy standard input.
  TaskSplit read(size_t window, bool skip_bad, const std::function<void(TaskSplit&)>& take) const;

 private:
  const Task& task_;
  bool is_copy_;
  ScratchFolder scratch_{};
  std::string file_;
};

}  // namespace cloze
