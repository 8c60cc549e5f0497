#pragma once
// A split of a task: the items of its files.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "tasks/item.h"
#include "tasks/task_config.h"

namespace cloze {

/// Texts by number, in the order in which they were first read: what labels are until their order is known. Throws
/// DataError for so many that they are none.
class LabelPool {
 public:
  int64_t number(std::string_view text) {
    const auto found = numbers_.find(std::string(text));
    if (found != numbers_.end()) return found->second;
    bytes_ += text.size();
    require<DataError>(bytes_ <= most_bytes, "the labels have more than ", most_bytes >> 20,
                       " MiB; `data.label` names no column of labels");
    texts_.emplace_back(text);
    return numbers_.emplace(texts_.back(), size() - 1).first->second;
  }
  const std::string& text(int64_t number) const { return texts_[static_cast<size_t>(number)]; }
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }

 private:
  static constexpr uint64_t most_bytes = uint64_t{64} << 20;
  uint64_t bytes_ = 0;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int64_t> numbers_;
};

/// The items of a file, and what was met while they were read.
struct TaskSplit {
  std::string name{};  ///< train, valid or test
  std::string file{};  ///< as it was found
  std::vector<TaskItem> items{};
  uint64_t skipped = 0;  ///< items left out for their labels, `data.skip_labels`
  uint64_t bad = 0;      ///< items left out for answers that do not stand where they are said to
  /// Items with a text that is blank, a question or a context too; sentences with a word that is.
  uint64_t empty = 0;
  /// Labels of its golds that are none of the task's, and their uses.
  std::map<std::string, uint64_t> unknown_labels{};
  std::vector<std::string> notes{};  ///< a sentence each
  /// The first line was taken for an item, and nothing says that it is one.
  bool first_line_may_be_header = false;
};

struct SplitOptions {
  /// Lines that are bad (`RecordSource::skip_bad`), and questions whose answers do not stand where they are said to,
  /// are left out.
  bool skip_bad = false;
  bool needs_labels = true;  ///< else items without labels are taken
  /// Is given the items in their order, `window` at a time, as they are read; the split keeps none. Empty: it keeps
  /// all.
  std::function<void(TaskSplit&)> take{};
  size_t window = 0;
  uint64_t most_bytes = uint64_t{4} << 30;  ///< of texts that are in memory at once
};

/// The files of a split, `A + B`, each where it is found. Throws as find_task_data.
std::vector<std::string> files_of_split(const std::string& named, const std::string& task_file);

/// Reads a split. Golds have numbers of the pool instead of ids of labels. Throws DataError with the place of what
/// cannot be read, and for more texts than fit, as one that stands beside each element of a list; ConfigError for a
/// file that is not there or whose form is not known.
TaskSplit read_split(const TaskConfig& config, const std::string& task_file, const std::string& name,
                     const std::string& files, LabelPool& pool, const SplitOptions& options = {});

}  // namespace cloze
