#pragma once
// Settings of the whole process: threads, memory, numbers near zero.
#include <cstdint>
#include <string>

namespace cloze {

/// Threads of the numerical work (0 = one for each core that this process may use) and flushing of denormal numbers.
void configure_threads(int64_t threads);
/// Largest resident set of this process so far [bytes].
double peak_memory();
/// Cores that this process may use.
int64_t usable_cores();
/// Runs a gnuplot script that lies in `folder`, for half a minute at most; false when there is no gnuplot or it failed.
bool run_gnuplot(const std::string& folder, const std::string& script);

}  // namespace cloze
