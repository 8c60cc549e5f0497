#include "distributed/launch.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/text.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// A process that launches `count` shells with a script, in whose folder they leave files.
class Launcher {
 public:
  Launcher(const TempDir& folder, int64_t count, const std::string& script) {
    process_ = fork();
    if (process_ != 0) return;
    std::filesystem::current_path(std::filesystem::path(folder / ""));
    [[maybe_unused]] const auto* errors = std::freopen("errors", "w", stderr);
    const int code = launch(count, {"/bin/sh", "-c", script});
    std::fflush(stderr);
    _exit(code);
  }
  pid_t process() const { return process_; }
  int code() const { return wait_for(process_); }

 private:
  pid_t process_ = -1;
};

std::string file_in(const TempDir& folder, const std::string& name) { return read_file(folder / name); }

void await_file(const TempDir& folder, const std::string& name) {
  while (!std::filesystem::exists(folder / name)) usleep(10'000);
}

}  // namespace

TEST_CASE("processes that are launched know their ranks and where they meet, and have shares of the cores") {
  const TempDir folder;
  const auto cores = std::ssize(usable_cores_in_order());
  CHECK(Launcher(folder, 2,
                 "echo $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE at $MASTER_ADDR > said-$RANK; "
                 "nproc > cores-$RANK")
            .code() == 0);
  CHECK(file_in(folder, "said-0") == "0 of 2, 0 of 2 at 127.0.0.1\n");
  CHECK(file_in(folder, "said-1") == "1 of 2, 1 of 2 at 127.0.0.1\n");
  CHECK(std::stoll(file_in(folder, "cores-0")) == std::max<int64_t>(1, (cores + 1) / 2));
  CHECK(std::stoll(file_in(folder, "cores-1")) == std::max<int64_t>(1, cores / 2));
}

TEST_CASE("the exit code is that of the process that failed first, and those that go on without it are killed") {
  const TempDir folder;
  const auto start = std::chrono::steady_clock::now();
  CHECK(Launcher(folder, 2, "[ $RANK = 1 ] && exit 3; exec sleep 60").code() == 3);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("processes that do not end after the first one has are killed, and it was a success") {
  const TempDir folder;
  const auto start = std::chrono::steady_clock::now();
  CHECK(Launcher(folder, 2, "[ $RANK = 0 ] && exit 0; exec sleep 60").code() == 0);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("a process that is killed and could not say so is named by its launcher") {
  const TempDir folder;
  CHECK(Launcher(folder, 2, "[ $RANK = 1 ] && kill -9 $$; sleep 0.3; kill -9 $$").code() == 4);
  CHECK_THAT(file_in(folder, "errors"), Catch::StartsWith("cloze: error: rank 1 (pid ") &&
                                            Catch::Contains("was ended by signal 9 (killed, or out of memory)"));
}

TEST_CASE("where another process has said why, the launcher says nothing") {
  const TempDir folder;
  CHECK(Launcher(folder, 2, "[ $RANK = 1 ] && kill -9 $$; sleep 0.3; exit 4").code() == 4);
  CHECK(file_in(folder, "errors").empty());
}

TEST_CASE("a signal to the launcher reaches every process once, and what was interrupted ends with its code") {
  const TempDir folder;
  const Launcher launcher(folder, 2,
                          "trap 'echo signal >> said-$RANK; exit 130' TERM; touch ready-$RANK; "
                          "while true; do sleep 0.05; done");
  for (const auto* name : {"ready-0", "ready-1"}) await_file(folder, name);
  kill(launcher.process(), SIGTERM);
  CHECK(launcher.code() == 130);
  CHECK(file_in(folder, "said-0") == "signal\n");
  CHECK(file_in(folder, "said-1") == "signal\n");
}

TEST_CASE("processes end with a launcher that is killed") {
  const TempDir folder;
  const Launcher launcher(folder, 2,
                          "trap 'touch ended-$RANK; exit 130' TERM; touch ready-$RANK; "
                          "while true; do sleep 0.05; done");
  for (const auto* name : {"ready-0", "ready-1"}) await_file(folder, name);
  kill(launcher.process(), SIGKILL);
  for (const auto* name : {"ended-0", "ended-1"}) await_file(folder, name);
  CHECK(launcher.code() == 128 + SIGKILL);
}

TEST_CASE("cores stand beside each other by NUMA domain, then by the core whose threads they are") {
  const TempDir system;
  const auto usable = usable_cores_in_order();
  if (usable.size() < 2) return;
  const auto last = *std::max_element(usable.begin(), usable.end());
  for (const int core : usable) {
    const auto folder = system / concat("cpu", core);
    std::filesystem::create_directories(folder + "/topology");
    std::filesystem::create_directories(folder + (core == last ? "/node0" : "/node1"));
    std::ofstream(folder + "/topology/thread_siblings_list") << core << "\n";
  }
  CHECK(usable_cores_in_order(system / "").front() == last);
  for (const int core : usable) {
    std::filesystem::remove(system / concat("cpu", core) + (core == last ? "/node0" : "/node1"));
    std::ofstream(system / concat("cpu", core) + "/topology/thread_siblings_list") << last - core << ",1000\n";
  }
  CHECK(usable_cores_in_order(system / "").front() == last);
}

TEST_CASE("a process that takes its share of the cores has consecutive ones of those that it may use") {
  const TempDir folder;
  const auto cores = usable_cores_in_order();
  const pid_t process = fork();
  if (process == 0) {
    take_share_of_cores(1, 2);
    const auto own = usable_cores_in_order();
    const auto expected = std::vector(cores.begin() + (std::ssize(cores) + 1) / 2, cores.end());
    _exit(cores.size() < 2 || own == expected ? 0 : 1);
  }
  CHECK(wait_for(process) == 0);
}
