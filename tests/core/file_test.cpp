#include "core/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "core/config/config.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("an atomic write replaces the whole file and leaves no other file", "[core][file]") {
  TempDir dir;
  write_atomic(dir / "a", "first");
  write_atomic(dir / "a", "second");
  CHECK(read_file(dir / "a") == "second");
  CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("a failed write gives the reason and keeps the old file", "[core][file]") {
  TempDir dir;
  CHECK_THROWS_WITH(write_atomic(dir / "none/a", "x"),
                    Catch::Contains("none/a: cannot be written (No such file or directory)"));
  CHECK_THROWS_WITH(write_atomic(dir.path.string(), "x"), Catch::EndsWith("); move this folder away"));
  CHECK_THROWS_WITH(read_text(dir / "none"), Catch::Contains("none: cannot be read (No such file or directory)"));
  CHECK_THROWS_WITH(read_text(dir.path.string()), Catch::Contains("it is a folder"));
  CHECK_THROWS_WITH(read_text(dir.write("long", "12345"), 3), Catch::Contains("longer than 3 bytes"));
}

TEST_CASE("a link or a file that waits under the name of a temporary file is neither followed nor taken",
          "[core][file]") {
  TempDir dir;
  const auto outside = dir.write("outside.txt", "kept"), temporary = ".tmp-" + std::to_string(getpid());
  fs::create_symlink(outside, dir / "a.json" + temporary);
  write_atomic(dir / "a.json", "new");
  CHECK(read_file(dir / "a.json") == "new");
  CHECK(read_file(outside) == "kept");
  fs::create_symlink(dir.path, dir / "final" + temporary);
  dir.write("other" + temporary + "/planted", "x");
  StagedFolder staged(dir / "final"), other(dir / "other");
  CHECK(fs::is_empty(staged.path()));
  CHECK(fs::is_empty(other.path()));
  CHECK(other.path() != dir / "other" + temporary);
  CHECK(read_file(outside) == "kept");
  // A link is replaced by the file, not followed.
  fs::create_symlink(outside, dir / "link.json");
  write_atomic(dir / "link.json", "new");
  CHECK_FALSE(fs::is_symlink(dir / "link.json"));
  CHECK(read_file(outside) == "kept");
}

TEST_CASE("temporary names cannot be guessed, and the scratch folder is of its user alone", "[core][file]") {
  TempDir dir;
  CHECK(staged_name("a") != staged_name("a"));
  CHECK(is_staged(staged_name("a")));
  const auto before = std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "");
  setenv("TMPDIR", dir.path.c_str(), 1);
  {
    const ScratchFolder one, other;
    CHECK(one.path() != other.path());
    struct stat info{};
    REQUIRE(stat(one.path().c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
  }
  CHECK(fs::is_empty(dir.path));
  before.empty() ? unsetenv("TMPDIR") : setenv("TMPDIR", before.c_str(), 1);
}

TEST_CASE("a file that a killed process was writing is removed by the next write, and a user's own is not",
          "[core][file]") {
  TempDir dir;
  dir.write("report.html.tmp-123456789012345", "half");
  dir.write("report.html.tmp-20240101123000", "of the user");
  dir.write("other.html.tmp-123456789012345", "of another file");
  const auto written = dir.write("report.html.tmp-223456789012345", "half");
  const int file = open(written.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(file, LOCK_EX) == 0);
  write_atomic(dir / "report.html", "whole");
  CHECK_FALSE(fs::exists(dir / "report.html.tmp-123456789012345"));
  CHECK(fs::exists(dir / "report.html.tmp-20240101123000"));
  CHECK(fs::exists(dir / "other.html.tmp-123456789012345"));
  CHECK(fs::exists(written));  // a process writes it
  close(file);
  if (geteuid() != 0) return;
  const auto of_other = dir.write("report.html.tmp-323456789012345", "of another user");
  REQUIRE(chown(of_other.c_str(), 1, 1) == 0);
  write_atomic(dir / "report.html", "whole");
  CHECK(fs::exists(of_other));
}

TEST_CASE("writers of one file at the same time do not sweep what another is about to put in place", "[core][file]") {
  TempDir dir;
  std::atomic<int64_t> refused{0};
  const auto write = [&] {
    for (int i = 0; i < 1000; ++i) {
      try {
        write_atomic(dir / "declaration.json", "whole");
      } catch (const std::exception&) {
        ++refused;
      }
    }
  };
  std::array<std::thread, 4> writers;
  for (auto& writer : writers) writer = std::thread(write);
  for (auto& writer : writers) writer.join();
  CHECK(refused == 0);
  CHECK(read_text(dir / "declaration.json", 5) == "whole");
  CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("a folder that replaces another is never absent", "[core][file]") {
  TempDir dir;
  dir.write("final/a", "x");
  std::atomic<bool> is_over{false};
  int64_t absent = 0;
  std::thread watcher([&] {
    while (!is_over) absent += access((dir / "final/a").c_str(), R_OK) != 0;
  });
  for (int i = 0; i < 200; ++i) {
    StagedFolder staged(dir / "final");
    write_atomic(staged.path() + "/a", "x");
    staged.commit();
  }
  is_over = true;
  watcher.join();
  CHECK(absent == 0);
  CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("a staged folder appears complete or not at all", "[core][file]") {
  TempDir dir;
  {
    StagedFolder staged(dir / "final");
    write_atomic(staged.path() + "/a", "x");
  }
  CHECK(fs::is_empty(dir.path));
  {
    StagedFolder staged(dir / "final");
    write_atomic(staged.path() + "/a", "x");
    staged.commit();
  }
  CHECK(read_file(dir / "final/a") == "x");
  {
    StagedFolder staged(dir / "final");
    write_atomic(staged.path() + "/b", "y");
    staged.commit();
  }
  CHECK_FALSE(fs::exists(dir / "final/a"));
  CHECK(read_file(dir / "final/b") == "y");
}

TEST_CASE("what a killed process left of a staged folder is swept by the next, and nothing that is still filled",
          "[core][file]") {
  TempDir dir;
  dir.write("final.tmp-4194000/weights", "half");
  dir.write("final.tmp-4194001.old/weights", "replaced");
  dir.write("final/weights", "whole");
  dir.write("final.tmp-mine/a", "mine");
  dir.write("other.tmp-4194000/a", "of another folder");
  int ready[2], over[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(over) == 0);
  const pid_t child = fork();
  char byte = 'x';
  if (child == 0) {
    close(over[1]);
    StagedFolder filled(dir / "final");
    const bool told = write(ready[1], &byte, 1) == 1;
    const bool ended = read(over[0], &byte, 1) == 0;
    _exit(told && ended ? 0 : 1);  // without a destructor, as if it were killed
  }
  REQUIRE(read(ready[0], &byte, 1) == 1);
  std::string filled;
  for (const auto& entry : fs::directory_iterator(dir.path))
    if (entry.path().filename().string().size() == std::string("final.tmp-").size() + 15) filled = entry.path();
  REQUIRE_FALSE(filled.empty());
  CHECK_FALSE(fs::exists(dir / "final.tmp-4194000"));
  CHECK_FALSE(fs::exists(dir / "final.tmp-4194001.old"));
  {
    StagedFolder staged(dir / "final");
    CHECK(fs::exists(filled));
  }
  close(over[1]);
  CHECK(wait_for(child) == 0);
  CHECK(fs::exists(filled));
  {
    StagedFolder staged(dir / "final");
    CHECK_FALSE(fs::exists(filled));
  }
  CHECK(read_file(dir / "final/weights") == "whole");
  CHECK(fs::exists(dir / "final.tmp-mine/a"));
  CHECK(fs::exists(dir / "other.tmp-4194000/a"));
}

TEST_CASE("a signal that ends the program removes the folder that is filled, but not from a child of it",
          "[core][file]") {
  TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    install_interrupt_handlers();
    StagedFolder staged(dir / "final"), other(dir / "other");
    fs::create_directories(staged.path() + "/a/b");
    for (int i = 0; i < 300; ++i) std::ofstream(staged.path() + "/a/b/" + std::to_string(i)) << "x";
    other.commit();
    const pid_t grandchild = fork();
    if (grandchild == 0) raise(SIGTERM);
    if (wait_for(grandchild) != 128 + SIGTERM || !fs::exists(staged.path() + "/a/b/299")) _exit(1);
    raise(SIGTERM);
    _exit(2);
  }
  CHECK(wait_for(child) == 128 + SIGTERM);
  CHECK(fs::exists(dir / "other"));
  CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("a pipe that nobody reads any more ends the program as ever, and nothing is left half written",
          "[core][file]") {
  TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    install_interrupt_handlers();
    const StagedFolder staged(dir / "final");
    write_atomic(staged.path() + "/a", "x");
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) _exit(1);
    close(ends[0]);
    [[maybe_unused]] const auto written = write(ends[1], "x", 1);
    _exit(2);
  }
  CHECK(wait_for(child) == 128 + SIGPIPE);
  CHECK(fs::is_empty(dir.path));
}

TEST_CASE("a staged folder that the system does not remove is named", "[core][file]") {
  TempDir dir;
  auto staged = std::make_unique<StagedFolder>(dir / "final");
  const auto path = staged->path();
  set_log_file(dir / "log.txt");
  {
    const NoMoreFiles none;
    staged.reset();
  }
  set_log_file("");
  CHECK_THAT(read_file(dir / "log.txt"),
             Catch::Contains(path + ": cannot be removed (Too many open files); remove it"));
}

TEST_CASE("a config that the system cannot read is no fault of the config", "[core][file]") {
  TempDir dir;
  const auto path = dir.write("a.yaml", "a: 1\n");
  try {
    const NoMoreFiles none;
    ConfigTree::load(path);
    FAIL("it was read");
  } catch (const Error& e) {
    CHECK(e.exit_code() == 1);
    CHECK_THAT(e.what(), Catch::Contains("a.yaml: cannot be read (Too many open files)"));
  }
}

TEST_CASE("a folder that was to be replaced gets its name back", "[core][file]") {
  TempDir dir;
  dir.write("final.tmp-4194000.old/weights", "old");
  dir.write("final.tmp-4194000/weights", "new");
  {
    StagedFolder staged(dir / "final");
  }
  CHECK(read_file(dir / "final/weights") == "old");
  CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
}

TEST_CASE("what killed processes left is swept, but not a file that a process writes", "[core][file]") {
  TempDir dir;
  dir.write("a.json.tmp-4194000", "half");
  const auto written = dir.write("b.json.tmp-4194000", "half");
  const int file = open(written.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(file >= 0);
  REQUIRE(flock(file, LOCK_EX) == 0);
  sweep_staged(dir.path.string(), is_staged);
  CHECK_FALSE(fs::exists(dir / "a.json.tmp-4194000"));
  CHECK(fs::exists(written));
  close(file);
  sweep_staged(dir.path.string(), is_staged);
  CHECK_FALSE(fs::exists(written));
}

TEST_CASE("numbers are formatted for people", "[core][log]") {
  CHECK(thousands(7) == "7");
  CHECK(thousands(1234567) == "1,234,567");
  CHECK(with_prefix(999.4) == "999");
  CHECK(with_prefix(999.7) == "1 k");
  CHECK(with_prefix(-999.7e9) == "-1 T");
  CHECK(with_prefix(2.5e18) == "2500 P");
  CHECK(with_prefix(0) == "0");
  CHECK(significant(999.7, 3) == "1000");
  CHECK(significant(1234567.8, 6) == "1234568");
  CHECK(significant(15.04, 3) == "15");
  CHECK(significant(0.000012345, 3) == "1.23e-05");
  CHECK(shortest(100000) == "100000");
  CHECK(shortest(1.5) == "1.5");
  CHECK(shortest(1e12) == "1e+12");
  CHECK(duration(3.21) == "3.2s");
  CHECK(duration(245) == "4m05s");
  CHECK(duration(11520) == "3h12m");
  CHECK(bytes(12345678) == "12.3 MB");
}

TEST_CASE("the log file has every line, with its time", "[core][log]") {
  TempDir dir;
  set_log_level(LogLevel::quiet);
  set_log_file(dir / "log.txt");
  log_info("data", "7 documents");
  set_log_file("");
  set_log_level(LogLevel::normal);
  CHECK_THAT(read_file(dir / "log.txt"), Catch::Contains("[data]    7 documents"));
}
