#include "data/reading/byte_source.h"

#include <fcntl.h>
#include <lzma.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/lfs_pointer.h"
#include "core/spelling.h"

namespace cloze {

namespace {

constexpr size_t gzip_block_bytes = 1 << 20;

/// Refuses a file that is not compressed as its name says.
[[noreturn]] void refuse_ending(const char* kind, const std::string& name) {
  require_no_pointer(name);
  const auto plain = uncompressed_name(name);
  const auto command =
      plain.empty() || plain.ends_with('/') ? "" : ": mv -n " + shell_word(name) + " " + shell_word(plain);
  fail<DataError>(name, ": is not ", kind, ", though its name ends in ", name.substr(plain.size()),
                  "; if it is plain text, give it another name", command);
}

struct PlainSource final : ByteSource {
  PlainSource(std::string file_name, int file_descriptor) : name(std::move(file_name)), file(file_descriptor) {}
  ~PlainSource() override {
    if (file > 0) close(file);
  }
  size_t read(char* out, size_t n) override {
    for (;;) {
      if (!wait_for_input(file)) throw Interrupted("stopped before the end of " + name);
      const ssize_t got = ::read(file, out, n);
      if (got >= 0) return static_cast<size_t>(got);
      if (errno != EINTR) fail<DataError>(name, ": cannot be read (", system_reason(), ")");
    }
  }
  std::string name;
  int file;
};

struct GzipSource final : ByteSource {
  explicit GzipSource(const std::string& file_name) : name(file_name), file(gzopen(file_name.c_str(), "rb")) {
    require<DataError>(file != nullptr, name, ": cannot be read (", system_reason(), ")");
    gzbuffer(file, gzip_block_bytes);
  }
  ~GzipSource() override { gzclose_r(file); }
  size_t read(char* out, size_t n) override {
    const int got = gzread(file, out, static_cast<unsigned>(n));
    int error = Z_OK;
    gzerror(file, &error);
    // gzread reports a truncated stream only when the data runs out.
    if (got < 0 || error == Z_BUF_ERROR || error == Z_DATA_ERROR)
      fail<DataError>(name, ": the gzip file is cut off or damaged near byte ", gzoffset(file), "; get it again");
    if (gzdirect(file) && got > 0) refuse_ending("a gzip file", name);
    return static_cast<size_t>(got);
  }
  std::string name;
  gzFile file;
};

struct XzSource final : ByteSource {
  XzSource(const std::string& file_name, std::unique_ptr<ByteSource> compressed_source)
      : name(file_name), compressed(std::move(compressed_source)), in(gzip_block_bytes) {
    require(lzma_stream_decoder(&stream, most_memory, LZMA_CONCATENATED) == LZMA_OK, name,
            ": no memory to unpack it; unpack it with xz -d on a larger machine");
  }
  ~XzSource() override { lzma_end(&stream); }
  size_t read(char* out, size_t n) override {
    stream.next_out = reinterpret_cast<uint8_t*>(out);
    stream.avail_out = n;
    while (stream.avail_out == n && !done) {
      if (stream.avail_in == 0 && !ended) {
        stream.next_in = reinterpret_cast<const uint8_t*>(in.data());
        stream.avail_in = compressed->read(in.data(), in.size());
        ended = stream.avail_in == 0;
      }
      const auto status = lzma_code(&stream, ended ? LZMA_FINISH : LZMA_RUN);
      if (status == LZMA_STREAM_END)
        done = true;
      else if (status == LZMA_FORMAT_ERROR)  // of the first bytes
        refuse_ending("an xz file", name);
      else if (status == LZMA_MEMLIMIT_ERROR)
        fail<DataError>(name, ": takes ", lzma_memusage(&stream) >> 20, " MiB of memory to unpack, at most ",
                        most_memory >> 20, " MiB are allowed; unpack it: xz -dk ", shell_word(name));
      else if (status == LZMA_MEM_ERROR)
        fail<DataError>(name, ": no memory to unpack it; unpack it with xz -d on a larger machine");
      else if (status != LZMA_OK)
        fail<DataError>(name, ": the xz file is cut off or damaged near byte ", stream.total_in, "; get it again");
    }
    return n - stream.avail_out;
  }
  static constexpr uint64_t most_memory = uint64_t{1} << 30;  // [bytes]
  std::string name;
  std::unique_ptr<ByteSource> compressed;
  std::vector<char> in;
  lzma_stream stream = LZMA_STREAM_INIT;
  bool ended = false, done = false;
};

}  // namespace

std::string uncompressed_name(const std::string& name) {
  const bool is_compressed = name.ends_with(".gz") || name.ends_with(".xz");
  return is_compressed ? name.substr(0, name.size() - 3) : name;
}

std::unique_ptr<ByteSource> open_bytes(const std::string& name) {
  if (name == "-") return std::make_unique<PlainSource>("standard input", 0);
  if (name.ends_with(".gz")) return std::make_unique<GzipSource>(name);
  const int file = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  require<DataError>(file >= 0, name, ": cannot be read (", system_reason(), ")");
  posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  auto plain = std::make_unique<PlainSource>(name, file);
  if (name.ends_with(".xz")) return std::make_unique<XzSource>(name, std::move(plain));
  return plain;
}

std::string read_bytes(const std::string& name, uint64_t most) {
  const auto source = open_bytes(name);
  std::string text;
  std::vector<char> part(1 << 16);
  while (const size_t count = source->read(part.data(), part.size())) {
    text.append(part.data(), count);
    require_at_most(most, text.size(), name);
  }
  return text;
}

void require_at_most(uint64_t most, uint64_t bytes, const std::string& name) {
  require<DataError>(bytes <= most, name, ": has more than ", most >> 20,
                     " MiB, which are to be in memory at once; give a smaller file, or parts of it");
}

std::string plain_or_compressed(const std::string& name) {
  std::error_code ignored;
  for (const auto* ending : {"", ".xz", ".gz"})
    if (auto file = name + ending; std::filesystem::exists(file, ignored)) return file;
  return name;
}

}  // namespace cloze
