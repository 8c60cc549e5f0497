#include "run/process.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

extern char** environ;

namespace cloze {

int64_t usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void configure_threads(int64_t threads) {
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(static_cast<int>(threads > 0 ? threads : usable_cores()));
}

double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

double machine_memory() {
  struct sysinfo info{};
  if (sysinfo(&info) != 0) return 0;
  return static_cast<double>(info.mem_unit) *
         (static_cast<double>(info.totalram) + static_cast<double>(info.totalswap));
}

bool run_gnuplot(const std::string& folder, const std::string& script) {
  std::vector<std::string> arguments{"timeout", "30", "gnuplot", script};
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  for (const int file : {1, 2}) posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool started = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  int status = 1;
  if (started) waitpid(child, &status, 0);
  return started && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace cloze
