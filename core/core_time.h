#pragma once
// What the threads of a process have had of the cores.
#include <string>

#include "core/stopwatch.h"

namespace cloze {

/// What the threads of a process have had of the cores so far, all together [s].
struct CoreTime {
  double used = 0, waited = 0;  ///< waited: when they could have run, and others had the cores
};

/// That of this process; zeros where the system does not say. `tasks`: the folder of its threads.
CoreTime core_time(const std::string& tasks = "/proc/self/task");

/// The share of the time in which the threads could have run between the two times that they did run; 1 where the
/// system does not say.
double share_of_cores(const CoreTime& before, const CoreTime& now);

/// The time that work takes where no other process wants its cores, whatever these do meanwhile.
class UndisturbedStopwatch {
 public:
  /// [s]
  double seconds() const { return share_of_cores(before_, core_time()) * seconds_since(start_); }

 private:
  CoreTime before_ = core_time();
  Clock::time_point start_ = Clock::now();
};

}  // namespace cloze
