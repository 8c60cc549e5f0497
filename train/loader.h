#pragma once
// Batches prepared in the background by worker threads and returned in order: those of one of the processes that train
// a run together.
#include <ATen/Parallel.h>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "core/part_range.h"
#include "core/worker_threads.h"
#include "objectives/batch.h"

namespace cloze {

/// The numbers of every step that a process makes batches of: [own.begin, own.end) of as many as a step has.
struct OwnNumbers {
  int64_t of_step = 1;
  PartRange own{0, 1};

  /// The k-th of them from the step on that begins with `first`.
  uint64_t at(uint64_t k, uint64_t first) const {
    const auto each = static_cast<uint64_t>(own.size());
    return first + k / each * static_cast<uint64_t>(of_step) + static_cast<uint64_t>(own.begin) + k % each;
  }
};

/// What number n stands for is `make(n)`, a pure function: the number of workers affects only the speed.
class Loader {
 public:
  /// Throws Error where the system does not start so many workers.
  Loader(std::function<std::vector<Batch>(uint64_t)> make, uint64_t first, int64_t workers,
         const OwnNumbers& numbers = {})
      : make_(std::move(make)),
        first_(first),
        numbers_(numbers),
        ahead_(static_cast<uint64_t>(workers) + 3),
        threads_(workers, [this] { work(); }, [this] { stop(); }, "lower train.workers or train.threads") {}
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Waits for the batches of the next number. Rethrows exceptions of `make`.
  std::vector<Batch> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || ready_.count(next_to_return_) > 0; });
    if (error_) std::rethrow_exception(error_);
    auto batches = std::move(ready_.extract(next_to_return_).mapped());
    ++next_to_return_;
    lock.unlock();
    changed_.notify_all();
    return batches;
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  }

  void work() {
    at::set_num_threads(1);  // operators in a worker must not start threads of their own
    for (;;) {
      uint64_t number = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || error_ || next_to_make_ < next_to_return_ + ahead_; });
        if (stop_ || error_) return;
        number = next_to_make_;
        ++next_to_make_;
      }
      try {
        auto batches = make_(numbers_.at(number, first_));
        const std::lock_guard lock(mutex_);
        ready_.emplace(number, std::move(batches));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  std::function<std::vector<Batch>(uint64_t)> make_;
  uint64_t first_;
  OwnNumbers numbers_;
  uint64_t ahead_;  ///< numbers by which batches may be ready before they are wanted
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, std::vector<Batch>> ready_;
  uint64_t next_to_make_ = 0, next_to_return_ = 0;  ///< of the own numbers
  bool stop_ = false;
  std::exception_ptr error_;
  WorkerThreads threads_;  ///< last: what they use outlives them
};

}  // namespace cloze
