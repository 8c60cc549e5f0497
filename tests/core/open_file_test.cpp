#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
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

TEST_CASE("a pipe in the place of a file is not waited for until somebody writes to it", "[core][file]") {
  TempDir dir;
  const auto pipe = dir / "run.yaml";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_text(pipe), Catch::Equals(pipe + ": cannot be read (it is a pipe to which nothing writes)"));
  const int writer = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(write(writer, "kind: bert", 10) == 10);
  std::thread end([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    close(writer);
  });
  CHECK(read_text(pipe) == "kind: bert");
  end.join();
}

TEST_CASE("of lines that are longer than wanted the beginning is read first", "[core][file]") {
  std::istringstream in("abc\ndefgh\n\nx");
  std::string line;
  for (const auto& [found, text] : std::vector<std::pair<LineRead, std::string>>{{LineRead::whole, "abc"},
                                                                                 {LineRead::beginning, "def"},
                                                                                 {LineRead::whole, "gh"},
                                                                                 {LineRead::whole, ""},
                                                                                 {LineRead::whole, "x"},
                                                                                 {LineRead::none, ""}}) {
    CHECK((read_line(in, line, 3) == found));
    CHECK(line == text);
  }
  for (const size_t size : {4094, 4095, 4096, 4097, 10'000}) {
    std::istringstream long_one(std::string(size, 'a') + "\nb\n");
    CHECK((read_line(long_one, line, 20'000) == LineRead::whole));
    CHECK(line == std::string(size, 'a'));
    CHECK((read_line(long_one, line, 20'000) == LineRead::whole));
    CHECK(line == "b");
    CHECK((read_line(long_one, line, 20'000) == LineRead::none));
  }
}

TEST_CASE("a log of others fills no memory: of a long line the rest is left out, and a device has no lines",
          "[core][file]") {
  TempDir dir;
  std::string line;
  LogLines lines(dir.write("metrics.jsonl", std::string(3 << 20, 'a') + "\n{}\n"));
  REQUIRE(lines.next(line));
  CHECK(line == std::string(1 << 20, 'a'));
  REQUIRE(lines.next(line));
  CHECK(line == "{}");
  CHECK_FALSE(lines.next(line));
  fs::create_symlink("/dev/zero", dir / "zeros");
  CHECK_FALSE(LogLines(dir / "zeros").next(line));
  REQUIRE(mkfifo((dir / "pipe").c_str(), 0600) == 0);
  CHECK_FALSE(LogLines(dir / "pipe").next(line));
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
