#pragma once
// Which process of a run the others wait for.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace cloze {

/// Notices a process for which the others wait again and again.
class SlowProcess {
 public:
  /// Of the time since the last call: the rank for which another process has waited more than a fifth of it, now for
  /// the third time in a row.
  ///
  /// waited   seconds that each process was in verbs (Communicator::seconds_waited); what all of them were is the time
  ///          that talking takes
  /// seconds  the time
  std::optional<int64_t> look(const std::vector<double>& waited, double seconds) {
    constexpr double much = 0.2;
    constexpr int64_t often = 3;
    const auto [least, most] = std::minmax_element(waited.begin(), waited.end());
    const int64_t rank = least - waited.begin();
    const bool is_waited_for = *most - *least > much * seconds;
    times_ = is_waited_for && (rank == rank_ || times_ == 0) ? times_ + 1 : is_waited_for;
    rank_ = rank;
    if (times_ < often) return std::nullopt;
    times_ = 0;
    return rank;
  }

 private:
  int64_t rank_ = 0, times_ = 0;
};

}  // namespace cloze
