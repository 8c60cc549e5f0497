#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// The end of a process that maps a file of three pages and reads the last one after the file was cut.
int end_of_reader(const std::string& path, const std::string& errors, bool guarded) {
  std::filesystem::resize_file(path, 3 * 4096);
  const pid_t child = fork();
  if (child != 0) return wait_for(child);
  dup2(open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  const int file = open(path.c_str(), O_RDONLY);
  const auto* base = static_cast<const char*>(mmap(nullptr, 3 * 4096, PROT_READ, MAP_SHARED, file, 0));
  const GuardedMapping other("", 1, "other.tokens", "look elsewhere");
  std::optional<GuardedMapping> guard;
  if (guarded) guard.emplace(base, 3 * 4096, path, "prepare the text again");
  std::filesystem::resize_file(path, 4096);
  const volatile char read = base[2 * 4096];
  _exit(read == 'x' ? 3 : 0);
}

}  // namespace

TEST_CASE("a mapped file that is cut by another process ends this one with a sentence", "[core][file]") {
  TempDir dir;
  const auto path = dir.write("train.tokens", "x");
  CHECK(end_of_reader(path, dir / "errors", true) == 1);
  CHECK(read_file(dir / "errors") ==
        "cloze: error: " + path + ": became shorter while it was read; prepare the text again\n");
  CHECK(end_of_reader(path, dir / "errors", false) == 128 + 7);  // SIGBUS, as of any other memory
}

TEST_CASE("a thread that reads on gets zeros in the place of what was cut, and learns of it", "[core][file]") {
  TempDir dir;
  const auto path = dir.write("train.tokens", std::string(3 * 4096, 'x'));
  const int file = open(path.c_str(), O_RDONLY);
  const auto* base = static_cast<const char*>(mmap(nullptr, 3 * 4096, PROT_READ, MAP_SHARED, file, 0));
  const GuardedMapping guard(base, 3 * 4096, path, "prepare the text again");
  const LostPartsAsZeros reads_on;
  const volatile char* at = base;
  CHECK(at[2 * 4096 + 5] == 'x');
  CHECK_FALSE(guard.has_lost_parts());
  std::filesystem::resize_file(path, 4096);
  CHECK(at[2 * 4096 + 5] == 0);
  CHECK(guard.has_lost_parts());
  CHECK(at[4095] == 'x');
  munmap(const_cast<char*>(base), 3 * 4096);
  close(file);
}
