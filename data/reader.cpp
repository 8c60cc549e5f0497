#include "data/reader.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "data/line_reader.h"
#include "data/first_few.h"
#include "data/manifest.h"
#include "data/pair_reader.h"
#include "data/text_lines.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

constexpr size_t max_document = 16 << 20;

TextFormat detect_format(const std::string& name, std::string_view first) {
  const auto plain = unpacked_name(name);
  if (first.substr(0, 8) == "<doc id=") return TextFormat::wiki;
  if (plain.ends_with(".jsonl") || plain.ends_with(".ndjson")) return TextFormat::jsonl;
  if (!first.empty() && first[0] == '{' && nlohmann::json::accept(first)) return TextFormat::jsonl;
  return TextFormat::text;
}

/// Whether Cloze made a folder, or is making it: prepared text, a run, or one of `own`.
bool is_made_by_cloze(const fs::path& folder, const std::vector<std::string>& own) {
  std::error_code ignored;  // a folder of `own` that does not exist
  for (const auto& one : own)
    if (fs::equivalent(folder, one, ignored)) return true;
  const bool half_made = folder.extension() == ".partial" && fs::exists(folder / "key.json", ignored);
  return half_made || fs::exists(folder / "run.yaml", ignored) || is_token_store(folder.string());
}

/// Appends the files of a folder and of the folders in it, sorted by path, without hidden ones and what Cloze made.
void add_folder(const std::string& folder, const std::vector<std::string>& own, std::vector<std::string>& files) {
  const size_t before = files.size();
  std::vector<std::string> left_out;
  std::error_code error, ignored;  // a link to nothing is no file
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const auto& path = entry->path();
    const bool hidden = path.filename().string().starts_with(".");
    if (entry->is_directory(ignored)) {
      const bool is_made = !hidden && is_made_by_cloze(path, own);
      if (is_made) left_out.push_back(path.string());
      if (hidden || is_made) entry.disable_recursion_pending();
      continue;
    }
    const bool is_lock = path.string().ends_with(".partial.lock");
    if (!hidden && !is_lock && entry->is_regular_file(ignored)) files.push_back(path.string());
  }
  require<DataError>(!error, folder, ": cannot be read (", error.message(), ")");
  std::sort(left_out.begin(), left_out.end());
  require<DataError>(files.size() > before, folder, ": is a folder without files",
                     left_out.empty() ? "" : words(" but those of Cloze (", first_few(left_out), ")"),
                     "; name one with text");
  if (!left_out.empty())
    log_info("data", words("prepared text and runs in ", folder, " are left out: ", first_few(left_out)));
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
}

/// The text under a key of an object, or under a path of keys: `meta.text`. Null where there is none.
const nlohmann::json* value_at(const nlohmann::json& object, const std::string& field) {
  if (const auto found = object.find(field); found != object.end()) return &*found;
  const auto* value = &object;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find('.', begin), field.size());
    const auto found = value->is_object() ? value->find(field.substr(begin, end - begin)) : value->end();
    if (found == value->end()) return nullptr;
    value = &*found;
    begin = end + 1;
  }
  return value;
}

/// Appends the keys whose value is a text, those of inner objects as paths.
void collect_texts(const nlohmann::json& object, const std::string& prefix, std::vector<std::string>& keys) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) keys.push_back(prefix + key);
    if (value.is_object()) collect_texts(value, prefix + key + ".", keys);
  }
}

/// How a line of JSON lines gets a text, by the keys that have one.
std::string remedy_of_line(const nlohmann::json& object) {
  constexpr size_t most = 8;
  std::vector<std::string> keys;
  collect_texts(object, "", keys);
  if (keys.empty()) return "; no other key of the line has a text: give it one, or leave the line out";
  std::string list;
  for (size_t i = 0; i < std::min(keys.size(), most); ++i) list += (i > 0 ? ", " : "") + keys[i].substr(0, 60);
  return words("; name the key of the text with --field; its texts: ", list, keys.size() > most ? ", ..." : "");
}

/// What a value is that is no text.
const char* kind_of(const nlohmann::json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "a boolean";
  if (value.is_number()) return "a number";
  return value.is_array() ? "a list" : "an object";
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs, const std::vector<std::string>& own) {
  std::vector<std::string> files;
  for (const auto& input : inputs) {
    if (input == "-" || fs::is_regular_file(input) || fs::is_fifo(input) || fs::is_character_file(input)) {
      files.push_back(input);
      continue;
    }
    if (fs::is_directory(input)) {
      add_folder(input, own, files);
      continue;
    }
    glob_t found{};
    const int status = glob(input.c_str(), GLOB_MARK, nullptr, &found);
    const bool pattern = input.find_first_of("*?[") != std::string::npos;
    size_t before = files.size();
    for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i)
      if (!std::string_view(found.gl_pathv[i]).ends_with("/")) files.emplace_back(found.gl_pathv[i]);
    globfree(&found);
    require<DataError>(files.size() > before, input, pattern ? ": no file matches this pattern" : ": no such file",
                       "; check the name");
  }
  require<DataError>(!files.empty(), "no text was given; name files, globs, or - for standard input");
  return files;
}

uint64_t input_bytes(const std::vector<std::string>& inputs) {
  uint64_t total = 0;
  for (const auto& file : expand_inputs(inputs)) {
    std::error_code ignored;
    const bool packed =
        file.size() > 3 && (file.substr(file.size() - 3) == ".gz" || file.substr(file.size() - 3) == ".xz");
    if (packed || !fs::is_regular_file(file, ignored)) return 0;
    total += fs::file_size(file, ignored);
  }
  return total;
}

TextFormat format_of(const std::string& file) {
  LineReader lines(file);
  std::string_view line;
  while (lines.next(line))
    if (!is_blank(line)) return detect_format(file, line);
  return detect_format(file, "");
}

struct DocumentReader::Impl {
  ReaderOptions options;
  std::vector<std::string> files;
  size_t next_file = 0;
  std::unique_ptr<LineReader> lines;
  std::unique_ptr<PairReader> pairs;
  TextFormat format = TextFormat::automatic;
  std::string title;
  bool in_document = false;
  uint64_t documents = 0, done_bytes = 0, invalid = 0, split = 0, incomplete = 0;
  LinePlace first_invalid;

  bool open_next() {
    if (lines) done_bytes += lines->bytes;
    lines.reset();
    if (next_file == files.size()) return false;
    if (options.format == TextFormat::pairs)
      pairs = std::make_unique<PairReader>(options, options.targets.empty() ? "" : options.targets[next_file]);
    lines = std::make_unique<LineReader>(files[next_file++]);
    format = options.format;
    in_document = false;
    return true;
  }

  /// `file`: with the line that was read last.
  void add(std::string_view text, RawDocument& document, const std::string& file) {
    const size_t bad = find_invalid_utf8(text);
    if (bad == std::string_view::npos) {
      document.lines.emplace_back(text);
    } else {
      require<DataError>(!options.refuse_invalid_utf8, file, ":", lines->number, ": byte ", bad + 1,
                         " of the line is not valid UTF-8; convert the text (iconv -f latin1 -t utf-8, if it is "
                         "Latin-1), or let it be replaced with --invalid-utf8 replace");
      if (first_invalid.file.empty()) first_invalid = {.file = file, .number = lines->number};
      document.lines.push_back(replace_invalid_utf8(text, invalid));
    }
    document.bytes += document.lines.back().size();
  }

  void add(std::string_view text, RawDocument& document) { add(text, document, lines->name); }

  void add_pair(std::string_view source, std::string_view target, RawDocument& document) {
    if (is_blank(source) || is_blank(target)) {
      ++incomplete;
      return;
    }
    add(source, document);
    add(target, document, pairs->target_file().empty() ? lines->name : pairs->target_file());
  }

  /// Reads one line; true if it completes a document, or starts the next.
  bool take(std::string_view line, RawDocument& document) {
    switch (format) {
      case TextFormat::pairs:
        return take_pair(line, document);
      case TextFormat::jsonl:
        return take_json(line, document);
      case TextFormat::wiki:
        return take_wiki(line, document);
      case TextFormat::automatic:
      case TextFormat::text:
      case TextFormat::lines:
        break;
    }
    if (is_blank(line)) return !document.lines.empty();
    add(line, document);
    return false;
  }

  bool take_pair(std::string_view line, RawDocument& document) {
    pairs->read(*lines, line,
                [&](std::string_view source, std::string_view target) { add_pair(source, target, document); });
    return !document.lines.empty();
  }

  bool take_wiki(std::string_view line, RawDocument& document) {
    if (line.substr(0, 8) == "<doc id=") {
      const auto start = line.find("title=\""), end = line.rfind("\">");
      title = start == std::string_view::npos || end == std::string_view::npos || end < start + 7
                  ? ""
                  : std::string(line.substr(start + 7, end - start - 7));
      in_document = true;
      return !document.lines.empty();
    }
    if (line.substr(0, 6) == "</doc>") {
      in_document = false;
      return !document.lines.empty();
    }
    // The title is repeated as the first line; it is not a sentence.
    if (!in_document || is_blank(line) || (document.lines.empty() && line == title)) return false;
    add(line, document);
    return false;
  }

  bool take_json(std::string_view line, RawDocument& document) {
    if (is_blank(line)) return false;
    const auto where = lines->where();
    const auto object = parse_json(line);
    if (!object.is_object())
      fail<DataError>(where, ": not a JSON object", json_line_fault(line), "; JSON lines have one object per line");
    const auto* found = value_at(object, options.field);
    require<DataError>(found != nullptr, where, ": has no key '", options.field, "'", remedy_of_line(object));
    if (!found->is_string())
      fail<DataError>(where, ": '", options.field, "' is ", kind_of(*found), ", not a text", remedy_of_line(object));
    const auto& text = found->get_ref<const std::string&>();
    require_no_nul(text, where);
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      auto part = std::string_view(text).substr(begin, end - begin);
      if (!part.empty() && part.back() == '\r') part.remove_suffix(1);
      if (!is_blank(part)) add(part, document);
      begin = end + 1;
    }
    return !document.lines.empty();
  }

  bool next(RawDocument& document) {
    document.clear();
    std::string_view line;
    for (;;) {
      if (!lines && !open_next()) return false;
      if (!lines->next(line)) {
        if (pairs) pairs->end(*lines);
        if (!open_next() && document.lines.empty()) return false;
        if (!document.lines.empty()) return true;  // the end of a file ends its document
        continue;
      }
      if (format == TextFormat::automatic) {
        if (is_blank(line)) continue;
        format = detect_format(lines->name, line);
      }
      if (take(line, document)) return true;
      if (document.bytes > max_document) {
        ++split;
        return true;
      }
    }
  }
};

DocumentReader::DocumentReader(const ReaderOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->files = expand_inputs(options.inputs);
  if (!options.targets.empty()) impl_->options.targets = expand_inputs(options.targets);
  require<ConfigError>(options.targets.empty() || impl_->options.targets.size() == impl_->files.size(),
                       impl_->files.front(), ": ", impl_->files.size(), " source files were given with ",
                       impl_->options.targets.size(), " target files; name one target for each source");
}
DocumentReader::~DocumentReader() = default;
bool DocumentReader::next(RawDocument& document) {
  if (!impl_->next(document)) return false;
  document.number = impl_->documents++;
  return true;
}
bool DocumentReader::sentences_given() const {
  return impl_->options.format == TextFormat::lines || impl_->options.format == TextFormat::pairs;
}
uint64_t DocumentReader::incomplete_pairs() const { return impl_->incomplete; }
uint64_t DocumentReader::bytes() const { return impl_->done_bytes + (impl_->lines ? impl_->lines->bytes : 0); }
uint64_t DocumentReader::invalid_utf8() const { return impl_->invalid; }
LinePlace DocumentReader::first_invalid() const { return impl_->first_invalid; }
uint64_t DocumentReader::split_documents() const { return impl_->split; }

}  // namespace cloze
