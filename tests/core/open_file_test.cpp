#include "core/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/lock.h"
#include "core/log.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("a file that is written in place is not written through a link, a pipe or a folder", "[core][file]") {
  TempDir dir;
  dir.write("outside.txt", "kept");
  fs::create_symlink(dir / "outside.txt", dir / "link");
  fs::create_symlink(dir / "none.txt", dir / "dangling");
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  const std::string sentence = ": is a link, through which another file would be changed; put a file of its own there";
  for (const auto* mode : {"wb", "ab", "w+b"}) {
    CHECK_THROWS_WITH(open_own(dir / "link", mode), Catch::Equals(dir / "link" + sentence));
    CHECK_THROWS_WITH(open_own(dir / "dangling", mode), Catch::Equals(dir / "dangling" + sentence));
    CHECK_THROWS_WITH(open_own(dir / "pipe", mode), Catch::Contains("is not a regular file; remove it"));
  }
  CHECK_THROWS_WITH(set_log_file(dir / "link"), Catch::Contains(sentence));
  CHECK_THROWS_WITH(Lock::take(dir / "link", LockFile::stays), Catch::Contains(sentence));
  CHECK(read_file(dir / "outside.txt") == "kept");
  CHECK_FALSE(fs::exists(dir / "none.txt"));
  CHECK_NOTHROW(require_own_file(dir / "absent"));
}

TEST_CASE("a file with another name is written as a copy of its own", "[core][file]") {
  TempDir dir;
  dir.write("backup", "one\n");
  fs::create_hard_link(dir / "backup", dir / "log");
  std::FILE* file = open_own(dir / "log", "ab");
  REQUIRE(file != nullptr);
  std::fputs("two\n", file);
  std::fclose(file);
  CHECK(read_file(dir / "log") == "one\ntwo\n");
  CHECK(read_file(dir / "backup") == "one\n");
  fs::create_hard_link(dir / "log", dir / "other");
  std::fclose(open_own(dir / "log", "wb"));
  CHECK(read_file(dir / "log").empty());
  CHECK(read_file(dir / "other") == "one\ntwo\n");
}
