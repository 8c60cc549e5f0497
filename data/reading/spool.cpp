#include "data/reading/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/interrupt.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t longest_line = 16 << 20;  // as in files, by LineReader

Spooled copy_of(const std::string& input, const std::string& path) {
  const auto name = input_name(input);
  const int in = input == "-" ? 0 : ::open(input.c_str(), O_RDONLY | O_CLOEXEC);
  require<DataError>(in >= 0, name, ": cannot be read (", system_reason(), ")");
  require_stream(in, name);
  std::FILE* out = open_own(path, "wb");
  require<DataError>(out != nullptr, path, ": cannot be written (", system_reason(), ")");
  StreamHash hash;
  Spooled copy{.path = path};
  char block[1 << 16];
  ssize_t n = 0;
  bool written = true;
  uint64_t lines = 0, of_line = 0;  // bytes since the last end of a line
  while (written && !interrupted && of_line <= longest_line && wait_for_input(in) &&
         (n = ::read(in, block, sizeof block)) > 0) {
    const auto size = static_cast<size_t>(n);
    const std::string_view text(block, size);
    const auto last = text.find_last_of("\r\n");  // of a Macintosh, too
    lines += static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
    of_line = last == text.npos ? of_line + size : size - last - 1;
    written = std::fwrite(block, 1, size, out) == size;
    hash.add(block, size);
    copy.bytes += size;
  }
  const auto reason = n < 0 ? system_reason() : std::string();
  written = std::fclose(out) == 0 && written;
  if (in > 0) ::close(in);
  const bool is_endless = of_line > longest_line;
  if (interrupted || n < 0 || is_endless) {
    std::error_code ignored;
    fs::remove(path, ignored);
    fs::remove(fs::path(path).parent_path(), ignored);  // unless it has other files
  }
  if (interrupted) throw Interrupted(concat("stopped before the end of ", name));
  require<DataError>(!is_endless, name, ":", lines + 1,
                     ": the line is longer than 16 MB; break the text into lines, one per paragraph");
  require<DataError>(n >= 0, name, ": cannot be read (", reason, ")");
  require<DataError>(written, path, ": cannot be written (", system_reason(), ")");
  copy.xxh3 = hex_of(hash.value());
  return copy;
}

}  // namespace

void require_stream(int in, const std::string& name) {
  struct stat info{};
  const bool is_null = fstat(in, &info) == 0 && info.st_rdev == makedev(1, 3);
  const bool is_device = S_ISBLK(info.st_mode) || (S_ISCHR(info.st_mode) && isatty(in) != 1 && !is_null);
  if (is_device && in > 0) ::close(in);
  require<DataError>(!is_device, name, ": is a device, which has no text; name a file");
}

bool can_be_read_again(const std::string& input) {
  return input != "-" && (fs::is_regular_file(input) || !fs::exists(input));
}

std::map<std::string, Spooled> spool(std::span<std::vector<std::string>* const> inputs, const std::string& folder) {
  std::map<std::string, Spooled> spooled;
  for (auto* list : inputs)
    for (auto& input : *list) {
      if (can_be_read_again(input)) continue;
      if (spooled.count(input) > 0) {
        for (const auto& [name, copy] : spooled) fs::remove(copy.path);
        std::error_code ignored;
        fs::remove(folder, ignored);  // unless it has other files
        fail<ConfigError>(input_name(input), ": is named twice, but can be read only once; name a file");
      }
      const auto path = folder + (input == "-" ? "/standard-input" : concat("/pipe-", spooled.size()));
      input = spooled.emplace(input, copy_of(input, path)).first->second.path;
    }
  return spooled;
}

}  // namespace cloze
