#pragma once
// Processes of a test program that train together.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/process.h"
#include "distributed/communicator.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

/// A port of this machine that nobody has.
inline int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(listener, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  close(listener);
  return ntohs(address.sin_port);
}

inline std::string setting(const char* name) { return getenv(name) ? getenv(name) : ""; }

inline void say(const std::string& text) { std::ofstream(setting("CLOZE_SAID"), std::ios::trunc) << text; }

/// What a rank of a test does, and what it answers.
using Scenario = std::function<std::string(cloze::Communicator&)>;
inline std::map<std::string, Scenario>& scenarios() {
  static std::map<std::string, Scenario> all;
  return all;
}

/// The end of a rank: its exit code, and its answer or the sentence with which it ended.
struct RankEnd {
  int code = 0;
  std::string said{};
};

/// Which ranks of a scenario are started, and where they meet.
struct Started {
  double timeout = 60;
  int64_t first = 0, end = -1;  ///< -1: all
  int port = free_port();
  std::string id{};
  std::string argument{};  ///< that the scenario finds as CLOZE_ARGUMENT
  bool is_local = false;   ///< they know that all are on this machine, whose memory they then share
};

/// Processes of this program, each of which runs the test case `[rank]` as one rank of a scenario.
class Ranks {
 public:
  Ranks(const std::string& scenario, int64_t size, const Started& started = {}) {
    for (int64_t rank = started.first; rank < (started.end < 0 ? size : started.end); ++rank) {
      std::vector<std::string> settings{cloze::concat("CLOZE_SCENARIO=", scenario),
                                        cloze::concat("CLOZE_RANK=", rank),
                                        cloze::concat("CLOZE_SIZE=", size),
                                        cloze::concat("CLOZE_PORT=", started.port),
                                        cloze::concat("CLOZE_TIMEOUT=", started.timeout),
                                        cloze::concat("CLOZE_ID=", started.id),
                                        cloze::concat("CLOZE_ARGUMENT=", started.argument),
                                        cloze::concat("CLOZE_LOCAL=", started.is_local ? size : 1),
                                        cloze::concat("CLOZE_SAID=", said_by(rank - started.first))};
      std::vector<char*> environment;
      for (auto& setting : settings) environment.push_back(setting.data());
      environment.push_back(nullptr);
      auto program = cloze::program_path();
      std::string which = "[rank]";
      char* arguments[] = {program.data(), which.data(), nullptr};
      posix_spawn_file_actions_t quiet;
      posix_spawn_file_actions_init(&quiet);
      posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
      posix_spawn(&processes_.emplace_back(), program.c_str(), &quiet, nullptr, arguments, environment.data());
      posix_spawn_file_actions_destroy(&quiet);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (const auto process : processes_) ::kill(process, SIGKILL);
  }

  void signal(size_t rank, int number) const { ::kill(processes_.at(rank), number); }
  /// Waits until a rank has said something.
  void await(int64_t rank) const {
    while (read_file(said_by(rank)).empty()) usleep(10'000);
  }
  std::vector<RankEnd> ends() {
    std::vector<RankEnd> all;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      ::kill(processes_[rank], SIGCONT);
      const int code = wait_for(processes_[rank]);
      all.push_back({code, read_file(said_by(static_cast<int64_t>(rank)))});
    }
    processes_.clear();
    return all;
  }
  RankEnd end_of(size_t rank) {
    const int code = wait_for(processes_.at(rank));
    return {code, read_file(said_by(static_cast<int64_t>(rank)))};
  }

 private:
  std::string said_by(int64_t rank) const { return folder_ / cloze::concat("rank-", rank); }
  TempDir folder_{};
  std::vector<pid_t> processes_{};
};
