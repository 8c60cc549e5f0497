#pragma once
// Threads that work until they are told to end.
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace cloze {

/// What helps where the system starts no more threads or processes.
inline constexpr const char* threads_remedy =
    "let this user have more threads and processes (ulimit -u; in a container, its limit of PIDs) and memory for them "
    "(ulimit -v)";

class WorkerThreads {
 public:
  /// Starts `count` threads.
  ///
  /// work    of each thread; throws nothing
  /// end     lets the work of every thread end; may be called more than once
  /// remedy  needs fewer threads: `lower --threads`
  /// Throws Error where the system does not start all of them, after the end of those that it did.
  WorkerThreads(int64_t count, const std::function<void()>& work, std::function<void()> end, const std::string& remedy);
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  /// Waits for their end.
  ~WorkerThreads() { join(); }

 private:
  void join();
  std::function<void()> end_;
  std::vector<std::thread> threads_{};
};

/// How many threads the system lets this process start now beside those that it has, up to `wanted`.
int64_t startable_threads(int64_t wanted);

}  // namespace cloze
