#include "inference/scoring/score_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"

namespace cloze {

namespace {

/// A record: two words of key, the number of values, these, and the XXH3 of all that.
constexpr size_t head_words = 3, word = sizeof(uint64_t);
constexpr uint64_t most_values = 1 << 28;

/// A file that is open while one exists, locked against other processes.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path) : file_(open_own(path, O_RDWR | O_APPEND, 0666)) {
    require(file_ >= 0, path, ": cannot be opened (", system_reason(), ")");
    while (flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) fail_to("be locked", path);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() { close(file_); }
  operator int() const { return file_; }

 private:
  [[noreturn]] void fail_to(const char* what, const std::string& path) {
    const auto reason = system_reason();
    close(file_);
    fail(path, ": cannot ", what, " (", reason, ")");
  }
  int file_;
};

uint64_t size_of(int file, const std::string& path) {
  struct stat about{};
  require(fstat(file, &about) == 0, path, ": cannot be read (", system_reason(), ")");
  return static_cast<uint64_t>(about.st_size);
}

/// The bytes from `offset` on, which is not after the end.
std::string bytes_from(int file, uint64_t offset, const std::string& path) {
  std::string bytes(size_of(file, path) - offset, '\0');
  for (size_t done = 0; done < bytes.size();) {
    const auto got = pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, path, ": cannot be read (", system_reason(), ")");
    if (got == 0) bytes.resize(done);
    done += static_cast<size_t>(got);
  }
  return bytes;
}

void append(std::string& bytes, uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), word); }

uint64_t word_at(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, word);
  return value;
}

}  // namespace

ScoreCache::ScoreCache(const std::string& folder, const std::string& name) : path_(folder + "/" + name + ".scores") {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, folder, ": cannot be created (", error.message(), "); name another folder for earlier scores");
  if (std::filesystem::exists(path_))
    read_new(LockedFile(path_));
  else  // it is made when there is something to keep
    require(access(folder.c_str(), W_OK) == 0, path_, ": cannot be created (", system_reason(), ")");
}

ScoreCache::Key ScoreCache::key_of(const Passage& passage) {
  std::string text;
  for (const auto* part : {&passage.left, &passage.scored, &passage.right}) {
    append(text, part->size());
    text += *part;
  }
  const auto hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

uint64_t ScoreCache::read_new(int file) {
  if (size_of(file, path_) < read_) read_ = 0;  // another process began the file anew
  const auto bytes = bytes_from(file, read_, path_);
  size_t at = 0;
  while (bytes.size() - at >= (head_words + 1) * word) {
    const auto count = word_at(bytes, at + 2 * word);
    if (count > most_values || bytes.size() - at < (head_words + 1 + count) * word) break;
    const size_t length = (head_words + count) * word;
    if (XXH3_64bits(bytes.data() + at, length) != word_at(bytes, at + length)) break;
    std::vector<double> values(count);
    std::memcpy(values.data(), bytes.data() + at + head_words * word, count * word);
    known_.try_emplace(Key{word_at(bytes, at), word_at(bytes, at + word)}, std::move(values));
    at += length + word;
  }
  read_ += at;
  return read_;
}

std::optional<std::span<const double>> ScoreCache::find(const Passage& passage) const {
  const auto found = known_.find(key_of(passage));
  if (found == known_.end()) return std::nullopt;
  return std::span<const double>(found->second);
}

void ScoreCache::add(const Passage& passage, std::vector<double> values) {
  const auto key = key_of(passage);
  const auto [entry, fresh] = known_.try_emplace(key, std::move(values));
  if (!fresh) return;
  const auto begin = pending_.size();
  append(pending_, key.low);
  append(pending_, key.high);
  append(pending_, entry->second.size());
  pending_.append(reinterpret_cast<const char*>(entry->second.data()), entry->second.size() * word);
  append(pending_, XXH3_64bits(pending_.data() + begin, pending_.size() - begin));
}

void ScoreCache::flush() {
  if (pending_.empty()) return;
  const LockedFile file(path_);
  const uint64_t end = read_new(file);
  require(ftruncate(file, static_cast<off_t>(end)) == 0, path_, ": cannot be written (", system_reason(), ")");
  for (size_t done = 0; done < pending_.size();) {
    const auto written = write(file, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const auto reason = system_reason();
      [[maybe_unused]] const int cut = ftruncate(file, static_cast<off_t>(end));
      pending_.clear();
      fail(path_, ": cannot be written (", reason, ")");
    }
    done += static_cast<size_t>(written);
  }
  read_ = end + pending_.size();
  pending_.clear();
}

}  // namespace cloze
