#include "evaluation/tasks/item_source.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/text.h"
#include "data/reading/spool.h"
#include "data/reading/line_reader.h"
#include "tasks/inspect_task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Standard input as a file whose name ends as that of the task's test split, which says how it is read.
std::string spooled_items(const Task& task, const ScratchFolder& scratch) {
  auto name = fs::path(task.test.file).filename();
  for (const auto* ending : {".gz", ".xz"})
    if (name.extension() == ending) name.replace_extension();
  const auto path = (fs::path(scratch.path()) / ("input" + name.extension().string())).string();
  require_stream(STDIN_FILENO, "standard input");
  std::ofstream out(path, std::ios::binary);
  const bool has_content = std::cin.peek() != std::char_traits<char>::eof();
  errno = 0;
  if (has_content) out << std::cin.rdbuf();
  out.flush();
  const auto reason = system_reason();
  require<DataError>(out.good(), "standard input: cannot be copied to ", path, " (", reason,
                     "); set TMPDIR to a folder with more room, or name a file");
  return path;
}

}  // namespace

ItemSource::ItemSource(const Task& task, const std::string& named)
    : task_(task),
      is_copy_(named == "-"),
      file_(is_copy_ ? spooled_items(task, scratch_) : find_task_data(fs::absolute(named).string(), task.file)) {}

TaskSplit ItemSource::read(size_t window, bool skip_bad, const std::function<void(TaskSplit&)>& take) const {
  const std::string stream = "standard input";
  try {
    auto split = read_items_in_windows(task_, file_, window, take, skip_bad);
    for (auto& note : split.notes)
      if (is_copy_) replace_all(note, file_, stream);
    return split;
  } catch (const NotText& fault) {
    if (!is_copy_) throw;
    throw NotText(stream, fault.said_of_stream);
  } catch (const DataError& fault) {
    const std::string what = fault.what();
    if (!is_copy_ || !what.starts_with(file_)) throw;
    throw DataError(stream + what.substr(file_.size()));
  }
}

}  // namespace cloze
