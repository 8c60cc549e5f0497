#include "data/reading/line_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "core/error.h"
#include "core/lfs_pointer.h"
#include "core/spelling.h"
#include "data/reading/byte_source.h"
#include "data/reading/text_lines.h"

namespace cloze {

using namespace std::string_view_literals;

namespace {

constexpr size_t read_block_bytes = 1 << 20, max_line = 16 << 20, searched_bytes = 4096;

void check(std::string_view line, const LineReader& reader) {
  if (std::memchr(line.data(), 0, line.size()))
    throw NotText(reader.name,
                  concat(":", reader.number, ": a NUL byte: the file looks binary; name a text file (UTF-8)"));
}

/// A kind of file that is not text.
struct OtherKind {
  std::string_view start, name;
  std::string_view remedy;        ///< what to do, with the commands below if there are any
  std::string_view filter = "";   ///< the command that makes text of it in a pipe
  std::string_view command = "";  ///< the one for a file, where it is not the filter; IN and OUT stand for names
  std::string_view ending = "";   ///< of a name under which it is read as it is
};
constexpr std::string_view of_utf32 = "iconv -f utf-32 -t utf-8", of_utf16 = "iconv -f utf-16 -t utf-8";
constexpr std::string_view arrow_remedy =
    "write its text as JSON lines (datasets: load_from_disk(FOLDER).to_json(FILE))";
constexpr OtherKind other_kinds[] = {
    {lfs_pointer, "a pointer of Git LFS", "get the file that it stands for: git lfs pull"},
    {"PAR1", "a Parquet table", "write its text as JSON lines (pandas: to_json with orient='records', lines=True)"},
    {"ARROW1", "an Arrow table", arrow_remedy},
    {"\xFF\xFF\xFF\xFF", "an Arrow table", arrow_remedy},
    {"PK\x03\x04", "a zip archive", "unpack it", "funzip", "unzip -p IN > OUT"},
    {"\x28\xB5\x2F\xFD", "compressed with zstd", "unpack it", "zstdcat"},
    {"BZh", "compressed with bzip2", "unpack it", "bzcat"},
    {"\x1F\x8B", "compressed with gzip", "unpack it", "zcat", "", ".gz"},
    {"\xFD\x37zXZ", "compressed with xz", "unpack it", "xzcat", "", ".xz"},
    {"%PDF-", "a PDF", "extract its text", "pdftotext - -", "pdftotext IN OUT"},
    {"\xFF\xFE\0\0"sv, "UTF-32", "convert it", of_utf32},  // before UTF-16, which begins like it
    {"\0\0\xFE\xFF"sv, "UTF-32", "convert it", of_utf32},
    {"\xFF\xFE", "UTF-16", "convert it", of_utf16},
    {"\xFE\xFF", "UTF-16", "convert it", of_utf16}};

/// Whether a file is an archive of tar: by its header, or by its name where it is compressed.
bool is_tar(std::string_view begin, std::string_view name) {
  constexpr size_t magic_at = 257;
  const auto header = begin.substr(0, magic_at);  // with names and numbers that end in NULs
  if (begin.substr(header.size()).starts_with("ustar") && header.find('\0') != header.npos) return true;
  constexpr std::string_view compressed[] = {"\x1F\x8B", "\xFD\x37zXZ", "BZh", "\x28\xB5\x2F\xFD"};
  constexpr std::string_view ends[] = {".tgz", ".txz", ".tbz", ".tbz2", ".tar.bz2", ".tzst", ".tar.zst"};
  return std::any_of(std::begin(compressed), std::end(compressed),
                     [&](auto start) { return begin.starts_with(start); }) &&
         std::any_of(std::begin(ends), std::end(ends), [&](auto end) { return name.ends_with(end); });
}

/// Whether ASCII as UTF-32 without a byte order mark begins so; `low`: the byte of each four that is not NUL.
bool is_utf32(std::string_view begin, size_t low) {
  if (begin.size() < 8) return false;
  for (size_t at = 0; at < 8; ++at) {
    const bool is_letter = begin[at] >= ' ' && begin[at] <= '~';
    if (at % 4 == low ? !is_letter : begin[at] != 0) return false;
  }
  return true;
}

/// The command that makes text of a file, up to the name of its output, with which it ends.
std::string command_for(const OtherKind& kind, const std::string& name) {
  auto command = kind.command.empty() ? concat(kind.filter, " IN > OUT") : std::string(kind.command);
  command.resize(command.find("OUT"));
  return command.replace(command.find("IN"), 2, shell_word(name));
}

/// The name of a kind in a list of kinds: `PDF`.
std::string kind_in_list(std::string_view name) {
  for (const std::string_view article : {"a ", "an ", "compressed with "})
    if (name.starts_with(article)) name.remove_prefix(article.size());
  for (const std::string_view detail : {" (", " without "}) name = name.substr(0, name.find(detail));
  return std::string(name);
}

[[noreturn]] void refuse(const std::string& name, const OtherKind& kind) {
  const auto what = concat(": is ", kind.name, "; ");
  const auto refusal = [&](const std::string& of_file, const std::string& of_stream) {
    NotText refused(name, of_file, of_stream);
    refused.kind = kind_in_list(kind.name);
    return refused;
  };
  if (kind.filter.empty()) throw refusal(concat(what, kind.remedy), "");
  const auto renamed = kind.ending.empty() ? "" : concat("give it a name that ends in ", kind.ending, ", or ");
  const auto command = command_for(kind, name);
  auto refused = refusal(concat(what, renamed, kind.remedy, ": ", command, shell_word(name + ending_of_text(name))),
                         concat(what, kind.remedy, " in the pipe: ... | ", kind.filter, " | ..."));
  refused.fault = concat(what, renamed, kind.remedy);
  refused.command = command;
  throw refused;
}

/// Whether a zip archive is a document of an office program or a book: by its name, or by its first file.
bool is_document(std::string_view begin, std::string_view name) {
  constexpr size_t first_name_at = 30;
  constexpr std::string_view ends[] = {".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub"};
  constexpr std::string_view first_names[] = {"[Content_Types].xml", "mimetypeapplication/"};
  const auto first = begin.substr(std::min(first_name_at, begin.size()));
  return std::any_of(std::begin(ends), std::end(ends), [&](auto end) { return name.ends_with(end); }) ||
         std::any_of(std::begin(first_names), std::end(first_names), [&](auto it) { return first.starts_with(it); });
}

/// Whether a text begins with a word like the mark of another kind.
bool is_word(std::string_view begin, std::string_view mark) {
  return (mark == "BZh" && (begin.size() < 10 || begin.substr(4, 6) != "1AY&SY")) ||
         (mark == "PAR1" && begin.size() > 4 && static_cast<uint8_t>(begin[4]) >= ' ');
}

/// Throws NotText for a file that begins like one of another kind.
void require_text(std::string_view begin, const std::string& name) {
  if (is_tar(begin, name)) refuse(name, {"", "a tar archive", "unpack it", "tar -xO", "tar -xOf IN > OUT"});
  for (const auto& kind : other_kinds) {
    if (!begin.starts_with(kind.start) || is_word(begin, kind.start)) continue;
    if (kind.name == "a zip archive" && is_document(begin, name))
      refuse(name, {kind.start, "a document with markup (zipped XML)",
                    "save it as plain text (UTF-8) with a program that opens it"});
    refuse(name, kind);
  }
  for (const size_t low : {size_t{0}, size_t{3}})
    if (is_utf32(begin, low))
      refuse(name, {"", "UTF-32 without a byte order mark", "convert it",
                    low == 0 ? "iconv -f utf-32le -t utf-8" : "iconv -f utf-32be -t utf-8"});
  // Latin text without a byte order mark: every other byte is NUL.
  for (const size_t low : {size_t{0}, size_t{1}}) {
    const bool alternates =
        begin.size() >= 4 && begin[low] != 0 && begin[low + 2] != 0 && begin[1 - low] == 0 && begin[3 - low] == 0;
    if (alternates)
      refuse(name, {"", "UTF-16 without a byte order mark", "convert it",
                    low == 0 ? "iconv -f utf-16le -t utf-8" : "iconv -f utf-16be -t utf-8"});
  }
}

/// Whether some lines end by a carriage return alone and some by a line feed alone, a twentieth of them at least each.
/// Then both are ends of their own where they meet: an empty line that ends by a feed, after one that ends by a return.
bool ends_vary(std::string_view text) {
  int64_t pairs = 0, returns = 0, feeds = 0;
  for (size_t at = text.find_first_of("\r\n"); at != text.npos; at = text.find_first_of("\r\n", at + 1)) {
    const bool is_pair = text.substr(at, 2) == "\r\n";
    ++(is_pair ? pairs : text[at] == '\r' ? returns : feeds);
    at += is_pair ? 1 : 0;
  }
  constexpr int64_t fewest = 8, share = 20;
  const auto least = std::max(fewest, (pairs + returns + feeds) / share);
  return returns >= least && feeds >= least;
}

}  // namespace

std::string ending_of_text(std::string_view name) {
  for (const std::string_view ending : {".zst", ".bz2", ".gz", ".xz", ".zip"})
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  for (const auto* ending : {".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".conll", ".conllu"})
    if (name.ends_with(ending)) return ending;
  return ".txt";
}

LineReader::LineReader(const std::string& file_name, LoneReturn rule, uint64_t most_bytes, JsonList lists)
    : name(file_name == "-" ? "standard input" : file_name),
      source_(open_bytes(file_name)),
      buffer_(read_block_bytes),
      rule_(rule),
      most_bytes_(most_bytes),
      lists_(lists) {}

std::string LineReader::where() const { return concat(name, list_ ? ": object " : ":", number); }

/// Looks for the end of the line at `begin_`: `length` bytes, and the offset `next` of the line after it. Returns
/// before a line feed belong to it, however many. False if it is not in the buffer; `scanned_` is then what need not be
/// looked at again.
bool LineReader::find_end(size_t& length, size_t& next) {
  const std::string_view text(buffer_.data() + begin_, end_ - begin_);
  if (each_ends_) {
    const auto end = std::min(text.find_first_of("\r\n", scanned_), text.size());
    scanned_ = length = end;
    next = std::min(end + 1, text.size());
    return end < text.size() || (ended_ && !text.empty());
  }
  size_t feed = text.npos, carriage = text.npos;
  // In parts, so that in a file without line feeds not all of the buffer is searched for one at each line.
  for (size_t at = scanned_; at < text.size() && feed == text.npos && carriage == text.npos; at += searched_bytes) {
    const auto part = text.substr(at, searched_bytes);
    if (const auto here = part.find('\n'); here != part.npos) feed = at + here;
    const auto before = returns_end_ ? text.substr(at, std::min(feed - at, part.size())).find('\r') : part.npos;
    if (before != part.npos) carriage = at + before;
  }
  const size_t end = std::min(feed, text.size());
  if (carriage != text.npos) {
    const size_t after = std::min(text.find_first_not_of('\r', carriage), text.size());
    scanned_ = carriage;
    if (after == text.size() && !ended_) return false;  // the file may go on with a line feed
    length = carriage;
    next = after < text.size() && text[after] == '\n' ? after + 1 : carriage + 1;
    return true;
  }
  scanned_ = text.size();
  if (feed == text.npos && (!ended_ || text.empty())) return false;
  length = end;
  next = std::min(end + 1, text.size());
  if (length > 0 && text[length - 1] == '\r') --length;
  return true;
}

bool LineReader::next(std::string_view& line) {
  for (;;) {
    size_t length = 0, after = 0;
    if (find_end(length, after)) {
      line = std::string_view(buffer_.data() + begin_, length);
      begin_ += after;
      scanned_ = 0;
      if (++number == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
      if (list_) line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
      check(line, *this);
      return true;
    }
    if (ended_) return false;
    require<DataError>(scanned_ <= max_line, name, ":", number + 1,
                       ": the line is longer than 16 MB; break the text into lines, one per paragraph");
    refill();
  }
}

void LineReader::refill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const size_t got = source_->read(buffer_.data() + end_, buffer_.size() - end_);
  ended_ = got == 0;
  end_ += got;
  if (bytes == 0) {
    const std::string_view first(buffer_.data(), got);
    require_text(first, name);
    if (lists_ == JsonList::as_objects && begins_as_json_list(first)) list_.emplace();
    const bool may_be_list = lists_ == JsonList::as_objects && uncompressed_name(name).ends_with(".json");
    if (may_be_list && without_white_space_around(first) == "[]")
      throw NotText(name, ": is an empty list of JSON, and has no text; get the file again");
    returns_end_ = rule_ == LoneReturn::ends_line || first.find('\n') == first.npos;
    each_ends_ = rule_ == LoneReturn::ends_line && ends_vary(first);
  }
  if (list_) turn_list(buffer_.data() + end_ - got, got);
  bytes += got;
  require_at_most(most_bytes_, bytes, name);
}

void LineReader::turn_list(char* bytes, size_t count) try {
  if (count > 0)
    list_->turn(bytes, count);
  else
    list_->end();
} catch (const DataError& fault) {
  fail<DataError>(name, fault.what());
}

}  // namespace cloze
