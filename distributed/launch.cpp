#include "distributed/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <tuple>

#include "core/file.h"
#include "core/log.h"
#include "core/process.h"
#include "core/worker_threads.h"
#include "distributed/part_tree.h"
#include "distributed/watch.h"

namespace cloze {

namespace {

using LaunchClock = std::chrono::steady_clock;

/// The NUMA domain of a core of this number, the first thread of its core, and itself.
std::tuple<int, int, int> domain_and_core(const std::string& system, int number) {
  const auto folder = concat(system, "/cpu", number);
  int domain = 0, first = number;
  std::error_code unknown;
  for (std::filesystem::directory_iterator at(folder, unknown), end; !unknown && at != end; at.increment(unknown))
    if (const auto name = at->path().filename().string(); name.starts_with("node") && name.size() > 4)
      domain = std::atoi(name.c_str() + 4);
  std::ifstream(folder + "/topology/thread_siblings_list") >> first;  // `3,7` or `6-7`
  return {domain, first, number};
}

/// The processes that are started, for the handler of signals.
std::array<std::atomic<pid_t>, 1024> started{};

void pass_on(int signal) {
  for (const auto& child : started)
    if (const pid_t process = child; process > 0) kill(process, signal);
}

void pass_signals_on() {
  struct sigaction action{};
  action.sa_handler = pass_on;
  sigfillset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  struct sigaction before{};
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
}

/// Becomes a rank of the run.
[[noreturn]] void become_rank(int64_t rank, int64_t processes, const Listener& listener,
                              const std::vector<std::string>& command, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(130);
  setpgid(0, 0);  // Ctrl-C reaches the parent alone, which passes it on
  if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) dup2(nothing, STDIN_FILENO);
  take_share_of_cores(rank, processes);
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), /*overwrite=*/1); };
  for (const auto* name : {"RANK", "LOCAL_RANK"}) set(name, concat(rank));
  for (const auto* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) set(name, concat(processes));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", concat(listener.port));
  set(own_launcher, concat(listener.socket));
  if (rank == 0) fcntl(listener.socket, F_SETFD, 0);
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());
  _exit(127);
}

/// The processes of a run while they run, and how they have ended.
class Launched {
 public:
  Launched(int64_t processes, const std::vector<std::string>& command) {
    const auto listener = listen_here(/*is_local=*/true);
    for (int64_t rank = 0; rank < processes; ++rank) start(rank, processes, listener, command);
    close(listener.socket);
  }

  int wait() {
    while (!running_.empty()) {
      collect();
      if (LaunchClock::now() > killed_from_) kill_all();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (!silent_.empty() && !has_spoken_)  // else another one has said why
      std::fprintf(stderr, "cloze: error: %s; the same command with --resume goes on from the last checkpoint\n",
                   silent_.c_str());
    return first_ > 0 ? first_ : is_interrupted_ ? 130 : 0;
  }

 private:
  void start(int64_t rank, int64_t processes, const Listener& listener, const std::vector<std::string>& command) {
    const pid_t parent = getpid(), child = fork_with_default_signals();
    if (child == 0) become_rank(rank, processes, listener, command, parent);
    if (child < 0) {
      const auto reason = system_reason();
      kill_all();
      fail<Error>("process ", rank + 1, " of ", processes, " cannot be started (", reason, "); lower --processes, or ",
                  threads_remedy);
    }
    started[static_cast<size_t>(rank)] = child;
    running_[child] = rank;
  }

  void collect() {
    int status = 0;
    for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto process = running_.find(child);
      if (process == running_.end()) continue;
      started[static_cast<size_t>(process->second)] = 0;
      note_end(process->second, child, status);
      running_.erase(process);
    }
  }

  void note_end(int64_t rank, pid_t child, int status) {
    constexpr int lost = 4;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : lost;
    const bool has_failed = code != 0 && code != 130 && !are_killed_;
    const auto soon = LaunchClock::now() + std::chrono::seconds(5);  // until which the others hear of it and end
    if (has_failed || rank == 0) killed_from_ = std::min(killed_from_, soon);
    is_interrupted_ = is_interrupted_ || code == 130;
    if (!has_failed) return;
    if (first_ == 0) first_ = code;
    has_spoken_ = has_spoken_ || WIFEXITED(status);
    if (WIFSIGNALED(status) && silent_.empty())
      silent_ = concat("rank ", rank, " (pid ", child, ") was ended by signal ", WTERMSIG(status),
                       WTERMSIG(status) == SIGKILL ? " (killed, or out of memory)" : "");
  }

  void kill_all() {
    are_killed_ = true;
    for (const auto& [child, rank] : running_) kill(child, SIGKILL);
  }

  std::map<pid_t, int64_t> running_{};  ///< ranks
  int first_ = 0;                       ///< exit code of the first that failed
  LaunchClock::time_point killed_from_ = LaunchClock::time_point::max();
  bool is_interrupted_ = false, has_spoken_ = false, are_killed_ = false;
  std::string silent_{};  ///< how the first has ended that could not say so itself
};

}  // namespace

std::vector<int> usable_cores_in_order(const std::string& system) {
  cpu_set_t usable;
  std::vector<std::tuple<int, int, int> > cores_by_domain;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0)
    for (int number = 0; number < CPU_SETSIZE; ++number)
      if (CPU_ISSET(number, &usable)) cores_by_domain.push_back(domain_and_core(system, number));
  std::sort(cores_by_domain.begin(), cores_by_domain.end());
  std::vector<int> cores;
  for (const auto& [domain, first, core] : cores_by_domain) cores.push_back(core);
  return cores;
}

void take_share_of_cores(int64_t index, int64_t count) {
  const auto cores = usable_cores_in_order();
  const auto usable = std::ssize(cores);
  if (usable == 0) return;
  auto range = parts_of(index, count, usable);
  if (range.size() == 0) range = {index % usable, index % usable + 1};
  cpu_set_t own;
  CPU_ZERO(&own);
  for (auto at = range.begin; at < range.end; ++at) CPU_SET(cores[static_cast<size_t>(at)], &own);
  sched_setaffinity(0, sizeof own, &own);
}

int launch(int64_t processes, const std::vector<std::string>& command) {
  pass_signals_on();
  return Launched(processes, command).wait();
}

}  // namespace cloze
