#pragma once
#include "core/error.h"
#include "core/text.h"
#include "tasks/task.h"
#include "tests/support/temp_dir.h"

inline const std::string mood_task = "task: mood\nkind: classification\n";

/// A folder with a task file and its data.
struct TaskFolder : TempDir {
  /// Opens `task.yaml` of this text.
  cloze::Task open(const std::string& yaml, const cloze::TaskOptions& options = {}) const {
    return cloze::open_task(write("task.yaml", yaml), options);
  }
  /// Why a task cannot be opened, without the name of the folder; empty: it can.
  std::string fault(const std::string& yaml, const cloze::TaskOptions& options = {}) const {
    try {
      open(yaml, options);
      return "";
    } catch (const cloze::Error& error) {
      std::string text = error.what();
      cloze::replace_all(text, path.string() + "/", "");
      return text;
    }
  }
};

/// The notes of a task, a line each.
inline std::string notes_of(const cloze::Task& task) {
  std::string all;
  for (const auto& note : task.notes) all += note + "\n";
  return all;
}

/// Ids of labels, one for each item.
inline std::vector<int64_t> label_ids(const cloze::TaskSplit& split) {
  std::vector<int64_t> ids;
  for (const auto& item : split.items) ids.push_back(item.gold.label);
  return ids;
}
inline const std::vector<int64_t>& gold_ids(const cloze::TaskItem& item) { return item.gold.labels; }
