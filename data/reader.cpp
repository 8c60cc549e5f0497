#include "data/reader.h"

#include <fcntl.h>
#include <glob.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

constexpr size_t block_bytes = 1 << 20, max_line = 16 << 20, max_document = 16 << 20;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// Bytes of a file, decompressed.
struct Source {
  virtual ~Source() = default;
  /// Up to `n` bytes; 0 at the end.
  virtual size_t read(char* out, size_t n) = 0;
};

struct PlainSource final : Source {
  PlainSource(std::string file_name, int file_descriptor) : name(std::move(file_name)), file(file_descriptor) {}
  ~PlainSource() override {
    if (file > 0) close(file);
  }
  size_t read(char* out, size_t n) override {
    for (;;) {
      const ssize_t got = ::read(file, out, n);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) fail<DataError>(name, ": cannot be read (", system_reason(), ")");
    }
  }
  std::string name;
  int file;
};

struct GzipSource final : Source {
  explicit GzipSource(const std::string& file_name) : name(file_name), file(gzopen(file_name.c_str(), "rb")) {
    require<DataError>(file != nullptr, name, ": cannot be read (", system_reason(), ")");
    gzbuffer(file, block_bytes);
  }
  ~GzipSource() override { gzclose_r(file); }
  size_t read(char* out, size_t n) override {
    const int got = gzread(file, out, static_cast<unsigned>(n));
    int error = Z_OK;
    gzerror(file, &error);
    // gzread reports a truncated stream only when the data runs out.
    if (got < 0 || error == Z_BUF_ERROR || error == Z_DATA_ERROR)
      fail<DataError>(name, ": the gzip file is cut off or damaged near byte ", gzoffset(file), "; get it again");
    require<DataError>(!gzdirect(file) || got == 0, name, ": is not a gzip file, though its name ends in .gz");
    return static_cast<size_t>(got);
  }
  std::string name;
  gzFile file;
};

struct XzSource final : Source {
  XzSource(const std::string& file_name, std::unique_ptr<Source> packed_source)
      : name(file_name), packed(std::move(packed_source)), in(block_bytes) {
    require(lzma_stream_decoder(&stream, uint64_t{1} << 30, LZMA_CONCATENATED) == LZMA_OK, "out of memory for xz");
  }
  ~XzSource() override { lzma_end(&stream); }
  size_t read(char* out, size_t n) override {
    stream.next_out = reinterpret_cast<uint8_t*>(out);
    stream.avail_out = n;
    while (stream.avail_out == n && !done) {
      if (stream.avail_in == 0 && !ended) {
        stream.next_in = reinterpret_cast<const uint8_t*>(in.data());
        stream.avail_in = packed->read(in.data(), in.size());
        ended = stream.avail_in == 0;
      }
      const auto status = lzma_code(&stream, ended ? LZMA_FINISH : LZMA_RUN);
      if (status == LZMA_STREAM_END)
        done = true;
      else if (status != LZMA_OK)
        fail<DataError>(name, ": the xz file is cut off or damaged near byte ", stream.total_in, "; get it again");
    }
    return n - stream.avail_out;
  }
  std::string name;
  std::unique_ptr<Source> packed;
  std::vector<char> in;
  lzma_stream stream = LZMA_STREAM_INIT;
  bool ended = false, done = false;
};

std::unique_ptr<Source> open_source(const std::string& name) {
  if (name == "-") return std::make_unique<PlainSource>("standard input", 0);
  if (ends_with(name, ".gz")) return std::make_unique<GzipSource>(name);
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  require<DataError>(file >= 0, name, ": cannot be read (", system_reason(), ")");
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  auto plain = std::make_unique<PlainSource>(name, file);
  if (ends_with(name, ".xz")) return std::make_unique<XzSource>(name, std::move(plain));
  return plain;
}

/// Lines of a source, without carriage returns at line ends and without a byte order mark.
class Lines {
 public:
  explicit Lines(const std::string& file_name)
      : name(file_name == "-" ? "standard input" : file_name), source_(open_source(file_name)), buffer_(block_bytes) {}
  bool next(std::string_view& line) {
    for (;;) {
      const char* start = buffer_.data() + begin_;
      const char* stop = static_cast<const char*>(std::memchr(start + scanned_, '\n', end_ - begin_ - scanned_));
      if (stop || (ended_ && end_ > begin_)) {
        const size_t length = stop ? static_cast<size_t>(stop - start) : end_ - begin_;
        line = std::string_view(start, length);
        begin_ = std::min(end_, begin_ + length + 1);
        scanned_ = 0;
        if (++number == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        check(line);
        return true;
      }
      if (ended_) return false;
      scanned_ = end_ - begin_;
      require<DataError>(scanned_ <= max_line, name, ":", number + 1,
                         ": the line is longer than 16 MB; break the text into lines, one per paragraph");
      refill();
    }
  }
  std::string name;
  uint64_t number = 0, bytes = 0;

 private:
  void refill() {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const size_t got = source_->read(buffer_.data() + end_, buffer_.size() - end_);
    ended_ = got == 0;
    end_ += got;
    bytes += got;
  }
  void check(std::string_view line) const {
    if (std::memchr(line.data(), 0, line.size()))
      fail<DataError>(name, ":", number, ": a NUL byte: the file looks binary; name a text file (UTF-8)");
  }

  std::unique_ptr<Source> source_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0, scanned_ = 0;
  bool ended_ = false;
};

bool blank(std::string_view line) { return line.find_first_not_of(" \t\f\v\r") == std::string_view::npos; }

std::string detect_format(const std::string& name, std::string_view first) {
  std::string plain = name;
  for (const auto end : {".gz", ".xz"})
    if (ends_with(plain, end)) plain.resize(plain.size() - 3);
  if (first.substr(0, 8) == "<doc id=") return "wiki";
  if (ends_with(plain, ".jsonl") || ends_with(plain, ".ndjson")) return "jsonl";
  if (!first.empty() && first[0] == '{' && nlohmann::json::accept(first)) return "jsonl";
  return "text";
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const auto& input : inputs) {
    if (input == "-" || fs::is_regular_file(input) || fs::is_fifo(input) || fs::is_character_file(input)) {
      files.push_back(input);
      continue;
    }
    require<DataError>(!fs::is_directory(input), input, ": is a folder; name its files, for instance '", input,
                       "/*.txt'");
    glob_t found{};
    const int status = glob(input.c_str(), GLOB_MARK, nullptr, &found);
    const bool pattern = input.find_first_of("*?[") != std::string::npos;
    size_t before = files.size();
    for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i)
      if (!ends_with(found.gl_pathv[i], "/")) files.emplace_back(found.gl_pathv[i]);
    globfree(&found);
    require<DataError>(files.size() > before, input, pattern ? ": no file matches this pattern" : ": no such file",
                       "; check the name");
  }
  require<DataError>(!files.empty(), "no text was given; name files, globs, or - for standard input");
  return files;
}

struct DocumentReader::Impl {
  /// The columns of a file of pairs, from its first line.
  struct Table {
    size_t columns, source, target;
  };
  ReaderOptions options;
  std::vector<std::string> files;
  size_t next_file = 0;
  std::unique_ptr<Lines> lines;
  std::string format, title;
  std::unique_ptr<Lines> target_lines;  // of pairs in two files
  std::optional<Table> table;
  bool in_document = false, pairs_are_json = false;  // the latter: of this file, so far
  uint64_t documents = 0, done_bytes = 0, invalid = 0, split = 0, incomplete = 0;

  bool open_next() {
    if (lines) done_bytes += lines->bytes;
    lines.reset();
    if (next_file == files.size()) return false;
    if (!options.targets.empty()) target_lines = std::make_unique<Lines>(options.targets[next_file]);
    lines = std::make_unique<Lines>(files[next_file++]);
    format = options.format == "auto" ? "" : options.format;
    in_document = false;
    pairs_are_json = false;
    table.reset();
    return true;
  }

  /// JSON strings can contain NUL, which lines of a file cannot.
  void check_nul(const std::string& text) const {
    require<DataError>(text.find('\0') == std::string::npos, lines->name, ":", lines->number,
                       ": the text contains a NUL; remove it");
  }

  void add(std::string_view text, RawDocument& document) {
    const size_t bad = find_invalid_utf8(text);
    if (bad == std::string_view::npos) {
      document.lines.emplace_back(text);
    } else {
      require<DataError>(!options.refuse_invalid_utf8, lines->name, ":", lines->number, ": byte ", bad + 1,
                         " of the line is not valid UTF-8; convert the file (iconv -t utf-8), or let it be replaced "
                         "with --invalid-utf8 replace");
      document.lines.push_back(replace_invalid_utf8(text, invalid));
    }
    document.bytes += document.lines.back().size();
  }

  void add_pair(std::string_view source, std::string_view target, RawDocument& document) {
    if (blank(source) || blank(target)) {
      ++incomplete;
      return;
    }
    add(source, document), add(target, document);
  }

  std::string where() const { return words(lines->name, ":", lines->number); }

  /// Reads a line with both sides, or with one side of a pair.
  bool take_pair(std::string_view line, RawDocument& document) {
    if (target_lines) {
      std::string_view target;
      require<DataError>(target_lines->next(target), where(), ": ", target_lines->name,
                         " has no such line; both files of pairs must have the same number of lines");
      add_pair(line, target, document);
    } else if (blank(line)) {
      return false;
    } else if (const auto object = line[0] == '{' ? parse_json(line) : nlohmann::json(); object.is_object()) {
      pairs_are_json = true;
      take_object_pair(object, document);
    } else {
      if (line[0] == '{' && (pairs_are_json || too_deep(line) != std::string_view::npos))
        fail<DataError>(where(), ": not a JSON object", pairs_are_json ? ", unlike the lines before" : "",
                        json_fault(line), "; JSON lines have one object per line");
      take_columns(line, document);
    }
    return !document.lines.empty();
  }

  void take_object_pair(const nlohmann::json& object, RawDocument& document) {
    const auto side = [&](const std::string& key) {
      require<DataError>(object.contains(key) && object[key].is_string(), where(), ": has no text '", key,
                         "'; name the keys of both sides with --columns NAME,NAME");
      auto text = object[key].get<std::string>();
      check_nul(text);
      std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
      return text;
    };
    const auto named = !options.columns.empty() ? options.columns : options.field;
    const auto comma = named.find(',');
    const auto source = side(comma == std::string::npos ? "source" : named.substr(0, comma));
    const auto target = side(comma == std::string::npos ? "target" : named.substr(comma + 1));
    add_pair(source, target, document);
  }

  /// Reads a line of a table: its two columns, or those of --columns, named in the first line of the file.
  void take_columns(std::string_view line, RawDocument& document) {
    std::vector<std::string_view> cells;
    for (size_t begin = 0; begin <= line.size();) {
      const size_t end = std::min(line.find('\t', begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
    require<DataError>(
        cells.size() > 1, where(),
        ": no tab between source and target; write both in one line, or name the other file with --target");
    if (options.columns.empty()) {
      require<DataError>(
          cells.size() == 2, where(), ": has ", cells.size(),
          " columns, but a pair has two; write two, or select two with --columns NAME,NAME by the names in "
          "the file's first line");
      add_pair(cells[0], cells[1], document);
      return;
    }
    if (!table) {
      const auto comma = options.columns.find(',');
      const auto find = [&](std::string_view name) {
        const auto found = std::find(cells.begin(), cells.end(), name);
        require<DataError>(std::count(cells.begin(), cells.end(), name) < 2, where(), ": two columns are named '", name,
                           "'; give each column a name of its own");
        require<DataError>(found != cells.end(), where(), ": no column is named '", name,
                           "'; --columns takes two names of this first line: ", line);
        return static_cast<size_t>(found - cells.begin());
      };
      table = Table{.columns = cells.size(),
                    .source = find(options.columns.substr(0, comma)),
                    .target = find(options.columns.substr(comma + 1))};
      require<DataError>(table->source != table->target, where(), ": --columns ", options.columns,
                         " names one column twice; a pair has two");
      return;
    }
    require<DataError>(cells.size() == table->columns, where(), ": has ", cells.size(),
                       " columns, the file's first line has ", table->columns, "; write the same number in every line");
    add_pair(cells[table->source], cells[table->target], document);
  }

  /// Reads one line; true if it completes a document, or starts the next.
  bool take(std::string_view line, RawDocument& document) {
    if (format == "pairs") return take_pair(line, document);
    if (format == "jsonl") return take_json(line, document);
    if (format == "wiki") return take_wiki(line, document);
    if (blank(line)) return !document.lines.empty();
    add(line, document);
    return false;
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
    if (!in_document || blank(line) || (document.lines.empty() && line == title)) return false;
    add(line, document);
    return false;
  }

  bool take_json(std::string_view line, RawDocument& document) {
    if (blank(line)) return false;
    const auto at = [&] { return words(lines->name, ":", lines->number); };
    const auto object = parse_json(line);
    if (!object.is_object())
      fail<DataError>(at(), ": not a JSON object", json_fault(line), "; JSON lines have one object per line");
    const auto found = object.find(options.field);
    require<DataError>(found != object.end(), at(), ": has no key '", options.field,
                       "'; name the key of the text with --field");
    require<DataError>(found->is_string(), at(), ": '", options.field,
                       "' is not a text; name the key of the text with --field");
    const auto& text = found->get_ref<const std::string&>();
    check_nul(text);
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      auto part = std::string_view(text).substr(begin, end - begin);
      if (!part.empty() && part.back() == '\r') part.remove_suffix(1);
      if (!blank(part)) add(part, document);
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
        std::string_view more;
        require<DataError>(!target_lines || !target_lines->next(more), target_lines ? target_lines->name : "",
                           ": has more lines than ", lines->name,
                           "; both files of pairs must have the same number of lines");
        if (!open_next() && document.lines.empty()) return false;
        if (!document.lines.empty()) return true;  // the end of a file ends its document
        continue;
      }
      if (format.empty()) {
        if (blank(line)) continue;
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
  return impl_->options.format == "lines" || impl_->options.format == "pairs";
}
uint64_t DocumentReader::incomplete_pairs() const { return impl_->incomplete; }
uint64_t DocumentReader::bytes() const { return impl_->done_bytes + (impl_->lines ? impl_->lines->bytes : 0); }
uint64_t DocumentReader::invalid_utf8() const { return impl_->invalid; }
uint64_t DocumentReader::split_documents() const { return impl_->split; }

}  // namespace cloze
