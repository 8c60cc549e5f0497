#include "data/line_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "core/error.h"

namespace cloze {

using namespace std::string_view_literals;

namespace {

constexpr size_t block_bytes = 1 << 20, max_line = 16 << 20;

void check(std::string_view line, const LineReader& reader) {
  if (std::memchr(line.data(), 0, line.size()))
    throw NotText(reader.name, words(reader.where(), ": a NUL byte: the file looks binary; name a text file (UTF-8)"));
}

/// A kind of file that is not text: how it begins, and what to do about it.
struct OtherKind {
  std::string_view start, name, remedy;
};
constexpr OtherKind other_kinds[] = {
    {"PAR1", "a Parquet table", "write its text as JSON lines (pandas: to_json with orient='records', lines=True)"},
    {"PK\x03\x04", "a zip archive", "unpack it, or pipe its text: unzip -p FILE | cloze prepare -"},
    {"\x28\xB5\x2F\xFD", "compressed with zstd", "pipe its text: zstdcat FILE | cloze prepare -"},
    {"BZh", "compressed with bzip2", "pipe its text: bzcat FILE | cloze prepare -"},
    {"\x1F\x8B", "compressed with gzip",
     "give it a name that ends in .gz, or pipe its text: zcat FILE | cloze prepare -"},
    {"\xFD\x37zXZ", "compressed with xz",
     "give it a name that ends in .xz, or pipe its text: xzcat FILE | cloze prepare -"},
    {"%PDF-", "a PDF", "extract its text: pdftotext FILE"},
    {"\xFF\xFE\0\0"sv, "UTF-32", "convert it: iconv -f utf-32 -t utf-8 FILE"},  // before UTF-16, which begins like it
    {"\0\0\xFE\xFF"sv, "UTF-32", "convert it: iconv -f utf-32 -t utf-8 FILE"},
    {"\xFF\xFE", "UTF-16", "convert it: iconv -f utf-16 -t utf-8 FILE"},
    {"\xFE\xFF", "UTF-16", "convert it: iconv -f utf-16 -t utf-8 FILE"}};

/// Whether a file is an archive of tar: by its header, or by its name where it is compressed.
bool is_tar(std::string_view begin, std::string_view name) {
  constexpr size_t magic_at = 257;
  const auto header = begin.substr(0, magic_at);  // with names and numbers that end in NULs
  if (begin.substr(header.size()).starts_with("ustar") && header.find('\0') != header.npos) return true;
  constexpr std::string_view packed[] = {"\x1F\x8B", "\xFD\x37zXZ", "BZh", "\x28\xB5\x2F\xFD"};
  constexpr std::string_view ends[] = {".tgz", ".txz", ".tbz", ".tbz2", ".tar.bz2", ".tzst", ".tar.zst"};
  return std::any_of(std::begin(packed), std::end(packed), [&](auto start) { return begin.starts_with(start); }) &&
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

[[noreturn]] void refuse(const std::string& name, std::string_view kind, std::string_view remedy) {
  throw NotText(name, words(name, ": is ", kind, "; ", remedy));
}

/// Throws NotText for a file that begins like one of another kind.
void require_text(std::string_view begin, const std::string& name) {
  if (is_tar(begin, name))
    refuse(name, "a tar archive", "unpack it, or pipe its text: tar -xOf FILE | cloze prepare -");
  for (const auto& kind : other_kinds) {
    const bool is_word = (kind.start == "BZh" && (begin.size() < 10 || begin.substr(4, 6) != "1AY&SY")) ||
                         (kind.start == "PAR1" && begin.size() > 4 && static_cast<uint8_t>(begin[4]) >= ' ');
    if (begin.starts_with(kind.start) && !is_word) refuse(name, kind.name, kind.remedy);
  }
  for (const size_t low : {size_t{0}, size_t{3}})
    if (is_utf32(begin, low))
      refuse(name, "UTF-32 without a byte order mark",
             words("convert it: iconv -f utf-32", low == 0 ? "le" : "be", " -t utf-8 FILE"));
  // Latin text without a byte order mark: every other byte is NUL.
  for (const size_t low : {size_t{0}, size_t{1}}) {
    const bool alternates =
        begin.size() >= 4 && begin[low] != 0 && begin[low + 2] != 0 && begin[1 - low] == 0 && begin[3 - low] == 0;
    if (alternates)
      refuse(name, "UTF-16 without a byte order mark",
             words("convert it: iconv -f utf-16", low == 0 ? "le" : "be", " -t utf-8 FILE"));
  }
}

}  // namespace

LineReader::LineReader(const std::string& file_name)
    : name(file_name == "-" ? "standard input" : file_name), source_(open_bytes(file_name)), buffer_(block_bytes) {}

std::string LineReader::where() const { return name + ":" + std::to_string(number); }

bool LineReader::next(std::string_view& line) {
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
      check(line, *this);
      return true;
    }
    if (ended_) return false;
    scanned_ = end_ - begin_;
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
  if (bytes == 0) require_text({buffer_.data(), got}, name);
  bytes += got;
}

}  // namespace cloze
