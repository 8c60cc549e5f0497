#pragma once
// Settings and measurements of the whole process: threads, denormals, memory.
#include <cstdint>
#include <string>

#include "core/core_time.h"

namespace cloze {

/// Starts compute threads (0 = one per usable core, or as many as the system starts) and flushes denormal numbers to
/// zero. Warns of more than the cores that this process may use. Throws ConfigError for more than it can have, Error
/// where the system does not start so many.
void configure_threads(int64_t threads);
/// A warning if the threads of this process have waited for cores for long between the two times; else empty.
std::string shared_cores_warning(const CoreTime& before, const CoreTime& now);
/// Largest resident set of this process so far [bytes].
double peak_memory();
/// Memory of the machine, swap included, or what the control groups of this process allow it of that [bytes]; 0: not
/// known.
double machine_memory();
/// The least memory that control groups allow a process, swap included [bytes]; infinite without a limit. `groups`: the
/// text of /proc/self/cgroup; `root`: where they are mounted.
double group_memory(const std::string& groups, const std::string& root, double swap);
/// Cores that this process may use.
int64_t usable_cores();

}  // namespace cloze
