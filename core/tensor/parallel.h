#pragma once
// The work of a step on all compute threads: as many as LibTorch may use (`at::set_num_threads`). Work is cut into
// parts by its sizes alone, so that threads change no bit. A thread takes one part after another, and nothing waits for
// a thread that has taken none: one whose core another process uses delays no more than the part that it is at.
#include <cstdint>
#include <functional>

namespace cloze {

/// Runs f(part) for every part below `count`, each on one thread, where operators of LibTorch start no threads. Parts
/// of a part run on its thread. Rethrows the first exception of a part; parts that nobody has begun are left out then.
/// Throws Error where the system does not start the threads.
void each_part(int64_t count, const std::function<void(int64_t)>& f);
/// Runs f(begin, end) for ranges of `size` of `count` items, of which the last may be smaller, as parts.
void each_range(int64_t count, int64_t size, const std::function<void(int64_t, int64_t)>& f);

}  // namespace cloze
