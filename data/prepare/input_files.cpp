#include "data/prepare/input_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/contains.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "data/reading/spool.h"
#include "data/reading/byte_source.h"
#include "data/reading/table_reader.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// The folder among the inputs that a file is in; empty for none.
fs::path folder_of(const std::string& file, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const auto& input : inputs)
    if (fs::is_directory(input, ignored) && is_in(file, input))
      return input.ends_with('/') ? fs::path(input).parent_path() : fs::path(input);
  return {};
}

/// Whether a pattern is the name of a file, or of a folder below `root` that it is in; with a `/` its path, which may
/// begin below `root`.
bool is_named_by(const std::string& pattern, const fs::path& file, const fs::path& root) {
  const bool is_path = pattern.find('/') != pattern.npos, is_below = !root.empty() && is_in(pattern, root.string());
  const auto own = is_below ? pattern.substr(root.string().size() + 1) : pattern;
  for (auto path = file; path != root; path = path.parent_path()) {
    const auto name = !is_path ? path.filename() : root.empty() ? path : path.lexically_relative(root);
    if (fnmatch(own.c_str(), name.c_str(), 0) == 0) return true;
    if (root.empty()) return false;
  }
  return false;
}

}  // namespace

bool is_in(const std::string& file, const std::string& folder) {
  return file.starts_with(folder.ends_with("/") ? folder : folder + "/");
}

void leave_out(std::vector<std::string>& files, const std::vector<std::string>& inputs,
               const std::vector<std::string>& patterns) {
  for (const auto& pattern : patterns) {
    const auto is_left_out = [&](const std::string& file) {
      return can_be_read_again(file) && is_named_by(pattern, file, folder_of(file, inputs));
    };
    const auto count = std::erase_if(files, is_left_out);
    require<ConfigError>(!files.empty(), "--exclude '", pattern,
                         "' leaves no file of the text; name fewer files in it");
    if (count == 0)
      log_warning("data", concat("--exclude '", pattern, "' names no file of ", first_few(inputs)));
    else
      log_info("data", concat("left out by --exclude '", pattern, "': ", counted(count, "file")));
  }
}

namespace {

bool is_records(const std::string& file) {
  const auto plain = uncompressed_name(file);
  return is_named_table(file) || plain.ends_with(".parquet") || plain.ends_with(".arrow") ||
         plain.ends_with(".jsonl") || plain.ends_with(".json");
}

bool has_header_of_card(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) && line.starts_with("---");
}

}  // namespace

void leave_out_cards(std::vector<std::string>& files, const std::vector<std::string>& inputs) {
  const bool has_records = std::ranges::any_of(files, is_records);
  std::vector<std::string> cards;
  std::erase_if(files, [&](const std::string& file) {
    const bool is_card = fs::path(file).filename() == "README.md" && !contains(inputs, file) &&
                         (has_records || has_header_of_card(file)) && files.size() > cards.size() + 1;
    if (is_card) cards.push_back(file);
    return is_card;
  });
  if (!cards.empty()) log_info("data", concat("left out as the cards of datasets: ", first_few(cards)));
}

namespace {

/// The split of a dataset that a path names: its first word that is one; empty for none.
std::string split_in(const std::string& path) {
  constexpr std::array<std::string_view, 6> splits{"train", "validation", "valid", "val", "dev", "test"};
  for (size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find_first_of("/-._", begin), path.size());
    const auto word = path.substr(begin, end - begin);
    if (contains(splits, word)) return word;
    begin = end + 1;
  }
  return "";
}

/// The file of each split that is read with others.
std::map<std::string, std::string> files_of_splits(const std::vector<std::string>& files,
                                                   const std::vector<std::string>& inputs) {
  std::map<std::string, std::string> first;
  for (const auto& file : files) {
    const bool is_saved = file.ends_with(".arrow");  // by `datasets`, whose folders of splits are told as such
    if (is_saved || contains(inputs, file)) continue;
    const auto split = split_in(fs::path(file).lexically_relative(folder_of(file, inputs)).string());
    if (!split.empty()) first.emplace(split, file);
  }
  return first;
}

void warn_of_splits(const std::vector<std::string>& files, const std::vector<std::string>& inputs) {
  auto splits = files_of_splits(files, inputs);
  const auto train = splits.extract("train");
  if (splits.empty() || train.empty()) return;
  const auto& [other, file] = *splits.begin();
  log_warning("data", concat("files of several splits are read as one text, ", train.mapped(), " and ", file,
                             " among them; name those to train on, and held-out text with --valid, or leave some "
                             "out: --exclude '*",
                             other, "*'"));
}

/// A file that is one of several by its name: `train-00003-of-00010.parquet`.
struct NumberedFile {
  std::string before, after;  ///< the number
  uint64_t number = 0;
};

std::optional<NumberedFile> numbered_file(const std::string& file) {
  constexpr std::string_view between = "-of-", digits = "0123456789";
  constexpr size_t most_digits = 6;
  const auto at = file.rfind(between);
  if (at == file.npos || at == 0) return std::nullopt;
  const auto begin = file.find_last_not_of(digits, at - 1) + 1, count_at = at + between.size();
  const auto size = std::min(file.find_first_not_of(digits, count_at), file.size()) - count_at;
  if (size == 0 || size > most_digits || at - begin != size) return std::nullopt;
  return NumberedFile{file.substr(0, begin), file.substr(at, between.size() + size),
                      std::stoull(file.substr(begin, size))};
}

/// The files that are missing beside those with these numbers, which count from 0 or from 1.
std::vector<std::string> missing_files(const std::string& before, const std::string& after,
                                       const std::set<uint64_t>& numbers) {
  const auto digits = after.substr(after.rfind('-') + 1);
  const uint64_t count = std::stoull(digits), first = numbers.contains(count) ? 1 : 0;
  std::vector<std::string> missing;
  for (uint64_t number = first; number < first + count; ++number) {
    const auto text = std::to_string(number);
    if (!numbers.contains(number))
      missing.push_back(concat(before, std::string(digits.size() - text.size(), '0'), text, after));
  }
  return missing;
}

void warn_of_missing_files(const std::vector<std::string>& files) {
  std::map<std::pair<std::string, std::string>, std::set<uint64_t>> numbers;
  for (const auto& file : files)
    if (const auto one = numbered_file(file)) numbers[{one->before, one->after}].insert(one->number);
  for (const auto& [name, present] : numbers) {
    const auto missing = missing_files(name.first, name.second, present);
    if (!missing.empty())
      log_warning("data", concat("by the name of ", counted(present.size(), "file"), ", ", first_few(missing),
                                 missing.size() == 1 ? " is" : " are",
                                 " missing; get what is missing, or go on with a part of the text"));
  }
}

}  // namespace

void warn_of_parts(const std::vector<std::string>& files, const std::vector<std::string>& inputs) {
  warn_of_splits(files, inputs);
  warn_of_missing_files(files);
}

}  // namespace cloze
