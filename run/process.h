#pragma once
// Settings and measurements of the whole process: threads, denormals, memory.
#include <cstdint>
#include <string>

namespace cloze {

/// Sets the number of compute threads (0 = one per usable core) and flushes denormal numbers to zero.
void configure_threads(int64_t threads);
/// Largest resident set of this process so far [bytes].
double peak_memory();
/// Memory of the machine, swap included [bytes]; 0: not known.
double machine_memory();
/// Cores that this process may use.
int64_t usable_cores();
/// Runs a gnuplot script in `folder` for at most 30 s; false if gnuplot is missing or fails.
bool run_gnuplot(const std::string& folder, const std::string& script);

}  // namespace cloze
