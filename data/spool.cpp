#include "data/spool.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

Spooled copy_of(const std::string& input, const std::string& path) {
  const auto name = input_name(input);
  const int in = input == "-" ? 0 : ::open(input.c_str(), O_RDONLY | O_CLOEXEC);
  require<DataError>(in >= 0, name, ": cannot be read (", system_reason(), ")");
  std::FILE* out = std::fopen(path.c_str(), "wb");
  require<DataError>(out != nullptr, path, ": cannot be written (", system_reason(), ")");
  const InterruptibleReads may_wait;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  Spooled copy{.path = path};
  char block[1 << 16];
  ssize_t n = 0;
  bool written = true;
  while (written && !interrupted && (n = ::read(in, block, sizeof block)) > 0) {
    const auto size = static_cast<size_t>(n);
    written = std::fwrite(block, 1, size, out) == size;
    XXH3_64bits_update(hash.get(), block, size);
    copy.bytes += size;
  }
  const auto reason = n < 0 ? system_reason() : std::string();
  written = std::fclose(out) == 0 && written;
  if (in > 0) ::close(in);
  if (interrupted || n < 0) {
    std::error_code ignored;
    fs::remove(path, ignored);
    fs::remove(fs::path(path).parent_path(), ignored);  // unless it has other files
  }
  if (interrupted) throw Interrupted(words("stopped before the end of ", name));
  require<DataError>(n >= 0, name, ": cannot be read (", reason, ")");
  require<DataError>(written, path, ": cannot be written (", system_reason(), ")");
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(XXH3_64bits_digest(hash.get())));
  copy.xxh3 = digits;
  return copy;
}

}  // namespace

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
      const auto path = folder + (input == "-" ? "/standard-input" : words("/pipe-", spooled.size()));
      input = spooled.emplace(input, copy_of(input, path)).first->second.path;
    }
  return spooled;
}

}  // namespace cloze
