#include "core/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/error.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

void sync_path(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  fsync(file);
  close(file);
}

std::string parent_of(const std::string& path) {
  const auto parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Writes everything; false on an error (errno).
bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = write(file, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

std::string system_reason() { return std::strerror(errno); }

std::string read_text(const std::string& path, uint64_t max_bytes) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  require(in.is_open() && !fs::is_directory(path), path, ": cannot be read (",
          fs::is_directory(path) ? "it is a folder" : system_reason(), ")");
  std::string content;
  char block[1 << 16];
  while (in.read(block, sizeof block), in.gcount() > 0) {
    content.append(block, static_cast<size_t>(in.gcount()));
    require(content.size() <= max_bytes, path, ": longer than ", max_bytes,
            " bytes, which is more than such a file can hold");
  }
  require(!in.bad(), path, ": cannot be read (", system_reason(), ")");
  return content;
}

void write_atomic(const std::string& path, std::string_view content) {
  const std::string temporary = words(path, ".tmp-", getpid());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  require(file >= 0, path, ": cannot be written (", system_reason(), ")");
  const bool written = write_all(file, content) && fsync(file) == 0;
  const std::string reason = written ? "" : system_reason();
  close(file);
  if (written && rename(temporary.c_str(), path.c_str()) == 0) {
    sync_path(parent_of(path));
    return;
  }
  const std::string why = written ? system_reason() : reason;
  unlink(temporary.c_str());
  fail(path, ": cannot be written (", why, ")");
}

StagedFolder::StagedFolder(const std::string& final_path) : final_(fs::path(final_path).lexically_normal().string()) {
  while (final_.size() > 1 && final_.back() == '/') final_.pop_back();  // the staged folder of out/ is a sibling, too
  staged_ = words(final_, ".tmp-", getpid());
  std::error_code error;
  fs::remove_all(staged_, error);
  fs::create_directories(staged_, error);
  require(!error, final_, ": cannot be created (", error.message(), ")");
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(staged_, ignored);
}

void StagedFolder::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(staged_)) sync_path(entry.path().string());
  sync_path(staged_);
  std::error_code error;
  const std::string old = staged_ + ".old";
  if (fs::exists(final_)) fs::rename(final_, old, error);
  if (!error) fs::rename(staged_, final_, error);
  std::error_code ignored;
  if (error && fs::exists(old)) fs::rename(old, final_, ignored);  // the old folder stays
  require(!error, final_, ": cannot be put in place (", error.message(), ")");
  committed_ = true;
  sync_path(parent_of(final_));
  fs::remove_all(old, error);
}

bool is_staged(const std::string& name) {
  const auto at = name.rfind(".tmp-");
  if (at == std::string::npos || at == 0) return false;
  const std::string_view rest = std::string_view(name).substr(at + 5);
  const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return digits > 0 && (digits == rest.size() || rest.substr(digits) == ".old");
}

void sweep_staged(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) {
    if (!is_staged(at->path().filename().string())) continue;
    found.push_back(at->path());
    at.disable_recursion_pending();
  }
  for (const auto& path : found) {
    const auto name = path.filename().string();
    const auto replaced = path.parent_path() / name.substr(0, name.rfind(".tmp-"));
    if (name.ends_with(".old") && !fs::exists(replaced)) fs::rename(path, replaced, ignored);
    fs::remove_all(path, ignored);
  }
}

uint64_t free_bytes(const std::string& path) {
  auto at = fs::absolute(path);
  while (!fs::exists(at) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  std::error_code error;
  const auto space = fs::space(at, error);
  return error ? 0 : space.available;
}

}  // namespace cloze
