#pragma once
// Processes documents on many threads, with results in the order of the input.
#include <xxhash.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "core/worker_threads.h"
#include "data/prepare/prepare.h"

namespace cloze {

struct RawBatch {
  uint64_t number = 0;
  std::vector<RawDocument> documents;
};

/// The number of threads that `options` requests.
inline int64_t threads_of(const PrepareOptions& options) {
  return options.threads > 0 ? options.threads : std::max<int64_t>(1, std::thread::hardware_concurrency());
}

/// A hash of the lines: equal for duplicates of a document.
inline uint64_t content_hash(const RawDocument& document) {
  uint64_t hash = 0;
  for (const auto& line : document.lines) hash = XXH3_64bits_withSeed(line.data(), line.size(), hash + 1);
  return hash;
}

/// The next documents of a text that `wanted` accepts; `more` becomes false at the end of the text.
template <class Wanted>
RawBatch read_batch(DocumentReader& reader, bool& more, const Wanted& wanted) {
  constexpr uint64_t batch_bytes = 256 << 10;
  RawBatch batch;
  RawDocument document;
  for (uint64_t bytes = 0; bytes < batch_bytes;) {
    more = reader.next(document);
    if (!more) break;
    if (!wanted(document)) continue;
    bytes += document.bytes;
    batch.documents.push_back(std::move(document));
  }
  return batch;
}

/// Runs `work` on batches on `threads` threads; results come out in the order of the batches. Few batches are in flight
/// at a time.
template <class Result>
class DocumentPool {
 public:
  /// Throws Error where the system does not start so many threads.
  DocumentPool(int64_t threads, std::function<Result(const RawBatch&)> work)
      : work_(std::move(work)),
        limit_(static_cast<size_t>(4 * threads)),
        threads_(threads, [this] { run(); }, [this] { stop(); }, "lower --threads") {}
  bool full() {
    const std::lock_guard lock(mutex_);
    return sent_ - received_ >= limit_;
  }
  bool idle() {
    const std::lock_guard lock(mutex_);
    return sent_ == received_;
  }
  void send(RawBatch batch) {
    {
      const std::lock_guard lock(mutex_);
      batch.number = sent_++;
      waiting_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }
  /// Waits for the next result in order.
  Result receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.count(received_) > 0 || error_; });
    if (error_) std::rethrow_exception(error_);
    return std::move(done_.extract(received_++).mapped());
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
  }

  void run() {
    for (;;) {
      RawBatch batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
        if (stop_) return;
        batch = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
      }
      try {
        Result result = work_(batch);
        const std::lock_guard lock(mutex_);
        done_.emplace(batch.number, std::move(result));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  std::function<Result(const RawBatch&)> work_;
  size_t limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RawBatch> waiting_;
  std::map<uint64_t, Result> done_;
  uint64_t sent_ = 0, received_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  WorkerThreads threads_;  ///< last: what they use outlives them
};

}  // namespace cloze
