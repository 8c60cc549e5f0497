#include "core/core_time.h"

#include <filesystem>
#include <fstream>

namespace cloze {

CoreTime core_time(const std::string& tasks) {
  CoreTime all;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator(tasks, none)) {
    std::ifstream file(task.path() / "schedstat");  // times on a core and waiting for one [ns]; then a count
    double used = 0, waited = 0;
    if (!(file >> used >> waited)) continue;
    all.used += 1e-9 * used;
    all.waited += 1e-9 * waited;
  }
  return all;
}

double share_of_cores(const CoreTime& before, const CoreTime& now) {
  const double used = now.used - before.used, waited = now.waited - before.waited;
  // Threads that have ended since take their times with them.
  return used > 0 && waited > 0 ? used / (used + waited) : 1;
}

}  // namespace cloze
