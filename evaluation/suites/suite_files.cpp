#include "evaluation/suites/suite_files.h"

#include <algorithm>
#include <filesystem>

#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace fs = std::filesystem;

const std::string& SuiteFile::first() const {
  if (first_) return *first_;
  SuiteText lines(path_);
  std::string_view line;
  bool any = true;
  do any = lines.next(line);
  while (any && is_blank(line));
  return first_.emplace(any ? line : "");
}

const SuiteLine* SuiteFile::object() const {
  if (!object_) object_ = first_line(path_);
  return *object_ ? &**object_ : nullptr;
}

SuiteFiles::SuiteFiles(const std::string& at) : path(at), is_folder(fs::is_directory(at)) {
  std::vector<std::string> files;
  if (is_folder)
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path().string());
  if (!is_folder && fs::exists(path)) files = {path};
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const auto ending = fs::path(uncompressed_name(file)).extension();
    if (is_json_lines(fs::path(file).filename().string()))
      lines.emplace_back(file);
    else if (!is_folder || ending == ".txt" || ending == ".tsv")
      texts.emplace_back(file);
  }
}

std::string SuiteFiles::named(const std::string& name) const {
  const auto file = is_folder ? plain_or_compressed((fs::path(path) / name).string()) : path;
  const bool has_ending = fs::path(uncompressed_name(file)).extension() == fs::path(name).extension();
  return has_ending && fs::exists(file) ? file : "";
}

}  // namespace cloze
