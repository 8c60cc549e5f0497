#include "run/process.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "core/error.h"
#include "core/log.h"
#include "core/tensor/parallel.h"
#include "core/worker_threads.h"

namespace cloze {

int64_t usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

namespace {

/// The number of compute threads, which `wanted` is if the system starts so many: a runtime of OpenMP that cannot start
/// one ends the process. `is_asked`: the user has named it, so that fewer are an Error.
int64_t allowed_threads(int64_t wanted, bool is_asked) {
  constexpr int64_t pools = 3;  // ours, that of OpenMP, and one of LibTorch
  const int64_t needed = pools * (wanted - 1);
  const int64_t left = startable_threads(needed);
  if (left == needed) return wanted;
  require<Error>(!is_asked, "train.threads is ", wanted, ", which needs ", needed,
                 " threads beside this one, and the system starts ", left, "; lower train.threads, or ",
                 threads_remedy);
  constexpr int64_t of_others = 2;  // such as those that prepare batches
  const int64_t possible = 1 + std::max<int64_t>(0, left - of_others) / pools;
  log_warning("threads", concat("the system starts only ", left, " more threads, so that ", possible, " of ", wanted,
                                " compute; ", threads_remedy));
  return possible;
}

}  // namespace

void configure_threads(int64_t threads) {
  constexpr int64_t most_threads = 1024;  // the stack has room for the teams of OpenMP
  const int64_t cores = usable_cores();
  require<ConfigError>(threads <= most_threads, "train.threads is ", threads, ", must be at most ", most_threads,
                       "; this machine has ", cores, " cores");
  if (threads > cores)
    log_warning("threads", concat("train.threads is ", threads, ", and this process may use ", cores,
                                  cores == 1 ? " core" : " cores",
                                  ": lower it, since threads that share a core wait for each other"));
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(static_cast<int>(allowed_threads(threads > 0 ? threads : cores, threads > 0)));
  // They start here, and what is started later finds the system full and says so.
  at::parallel_for(0, at::get_num_threads(), 1, [](int64_t, int64_t) {});
  each_part(at::get_num_threads(), [](int64_t) {});
}

std::string shared_cores_warning(const CoreTime& before, const CoreTime& now) {
  constexpr double much = 0.1, long_enough = 1;  // a fraction of the time in which threads could have run; [s]
  const double used = now.used - before.used, waited = now.waited - before.waited;
  const double fraction = 1 - share_of_cores(before, now);
  if (used + waited < long_enough || fraction < much) return {};
  return concat("threads waited for a core ", std::lround(100 * fraction),
                " % of the time: end the other processes on these cores, or expect steps to take so much longer");
}

double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

double machine_memory() {
  struct sysinfo info{};
  if (sysinfo(&info) != 0) return 0;
  const auto unit = static_cast<double>(info.mem_unit);
  const double swap = unit * static_cast<double>(info.totalswap);
  const double total = unit * static_cast<double>(info.totalram) + swap;
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), {}};
  return std::min(total, group_memory(groups, "/sys/fs/cgroup", swap));
}

double group_memory(const std::string& groups, const std::string& root, double swap) {
  double least = std::numeric_limits<double>::infinity();
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {  // ID:CONTROLLERS:PATH, which names none in version 2
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const auto mount = controllers.empty() ? root : root + "/memory";
    const auto* name = controllers.empty() ? "/memory.max" : "/memory.limit_in_bytes";
    for (auto group = line.substr(second + 1);; group.resize(group.rfind('/'))) {
      std::ifstream file(mount + group + name);
      double limit = 0;  // `max` is no number
      if (file >> limit && limit > 0) least = std::min(least, limit + swap);
      if (group.find('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace cloze
