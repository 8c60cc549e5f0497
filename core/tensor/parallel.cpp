#include "core/tensor/parallel.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "core/worker_threads.h"

#if defined(__x86_64__)
extern "C" int MKL_Set_Num_Threads_Local(int) __attribute__((weak));  // of oneMKL, if LibTorch has it
#endif

namespace cloze {

namespace {

/// Sets the threads of MKL for this thread, if LibTorch has it; returns those before.
int set_mkl_threads(int count) {
#if defined(__x86_64__)
  if (MKL_Set_Num_Threads_Local) return MKL_Set_Num_Threads_Local(count);
#endif
  return count;
}

/// While one exists, operators of LibTorch that this thread calls start no others.
class OneThread {
 public:
  OneThread() : threads_(omp_get_max_threads()), mkl_threads_(set_mkl_threads(1)) { omp_set_num_threads(1); }
  ~OneThread() {
    omp_set_num_threads(threads_);
    set_mkl_threads(mkl_threads_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int threads_, mkl_threads_;
};

/// Tells the processor that this thread waits for another.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// True once `happened` is, which is asked for as long as it takes to wake a thread; longer, and the core would be
/// taken from threads that have work.
template <class F>
bool soon(const F& happened) {
  constexpr std::chrono::microseconds patience(30);
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    for (int i = 0; i < 8; ++i) {
      if (happened()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// Threads that take parts beside the one that has them.
class Helpers {
 public:
  /// `count`: with the one that has the parts.
  explicit Helpers(int count)
      : threads(count), workers_(count - 1, [this] { help(); }, [this] { end(); }, "lower train.threads") {}

  void run(int64_t count, const std::function<void(int64_t)>& f) {
    f_ = &f;
    count_ = static_cast<uint32_t>(count);
    has_failed_ = false;
    undone_ = static_cast<int32_t>(count);
    free_ = ++job_ << 32 | count_;
    ring(std::min<int64_t>(count, threads) - 1);
    {
      const OneThread alone;
      while (take_part()) continue;
    }
    // What is left are parts that others are at. They need a core: this thread leaves them its own.
    if (!soon([&] { return undone_ == 0; }))
      for (int32_t left = undone_; left > 0; left = undone_) undone_.wait(left);
    if (has_failed_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  const int threads;

 private:
  /// Takes one part and computes it; false if none is free.
  bool take_part() {
    uint64_t seen = free_.load();
    do {
      if (static_cast<uint32_t>(seen) == 0) return false;
    } while (!free_.compare_exchange_weak(seen, seen - 1));
    // Since this part is not done, the job is the one that the part is of, however late this thread looked.
    try {
      if (!has_failed_) (*f_)(count_ - static_cast<uint32_t>(seen));
    } catch (...) {
      if (!has_failed_.exchange(true)) error_ = std::current_exception();
    }
    if (--undone_ == 0) undone_.notify_all();
    return true;
  }

  void help() {
    at::get_num_threads();  // at the first question LibTorch sets how many threads this one may use
    const OneThread alone;
    for (;;) {
      const uint32_t heard = bell_;  // before anything is looked at, so that no bell is slept through
      if (is_over_) return;
      if (take_part()) continue;
      if (!soon([&] { return static_cast<uint32_t>(free_.load()) > 0; })) bell_.wait(heard);
    }
  }

  /// Wakes `count` threads, if so many sleep.
  void ring(int64_t count) {
    ++bell_;
    if (count == threads - 1)
      bell_.notify_all();
    else
      for (int64_t i = 0; i < count; ++i) bell_.notify_one();
  }
  void end() {
    is_over_ = true;
    ring(threads - 1);
  }

  const std::function<void(int64_t)>* f_ = nullptr;
  uint32_t count_ = 0;
  uint64_t job_ = 0;
  std::atomic<uint64_t> free_{0};   ///< the number of the job, and how many of its parts nobody has taken
  std::atomic<int32_t> undone_{0};  ///< parts
  std::atomic<uint32_t> bell_{0};
  std::atomic<bool> is_over_{false}, has_failed_{false};
  std::exception_ptr error_;
  WorkerThreads workers_;  ///< last: what they use outlives them
};

}  // namespace

void each_part(int64_t count, const std::function<void(int64_t)>& f) {
  const int threads = at::get_num_threads();
  if (count <= 1 || threads == 1 || at::in_parallel_region()) {
    const OneThread alone;
    for (int64_t part = 0; part < count; ++part) f(part);
    return;
  }
  static std::mutex one_job;
  static auto& helpers = *new std::unique_ptr<Helpers>;  // its threads end with the process, which waits for none
  const std::lock_guard lock(one_job);
  if (!helpers || helpers->threads != threads) {
    helpers.reset();
    helpers = std::make_unique<Helpers>(threads);
  }
  helpers->run(count, f);
}

void each_range(int64_t count, int64_t size, const std::function<void(int64_t, int64_t)>& f) {
  each_part((count + size - 1) / size, [&](int64_t k) { f(k * size, std::min(count, (k + 1) * size)); });
}

}  // namespace cloze
