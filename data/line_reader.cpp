#include "data/line_reader.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace cloze {

namespace {

constexpr size_t block_bytes = 1 << 20, max_line = 16 << 20;

void check(std::string_view line, const LineReader& reader) {
  if (std::memchr(line.data(), 0, line.size()))
    fail<DataError>(reader.where(), ": a NUL byte: the file looks binary; name a text file (UTF-8)");
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
  bytes += got;
}

}  // namespace cloze
