#include "core/worker_threads.h"

#include <chrono>
#include <future>
#include <system_error>

#include "core/error.h"

namespace cloze {

WorkerThreads::WorkerThreads(int64_t count, const std::function<void()>& work, std::function<void()> end,
                             const std::string& remedy)
    : end_(std::move(end)) {
  try {
    threads_.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) threads_.emplace_back(work);
  } catch (const std::system_error& error) {
    const auto started = threads_.size();
    join();
    fail<Error>("thread ", started + 1, " of ", count, " cannot be started (", error.code().message(), "); ", remedy,
                ", or ", threads_remedy);
  } catch (...) {
    join();
    throw;
  }
}

void WorkerThreads::join() {
  end_();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

int64_t startable_threads(int64_t wanted) {
  constexpr std::chrono::milliseconds until_gone(1);  // the system counts a thread for a moment after its end
  std::promise<void> end;
  const auto ended = end.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(wanted));
  try {
    while (static_cast<int64_t>(threads.size()) < wanted) threads.emplace_back([ended] { ended.wait(); });
  } catch (const std::system_error&) {
  }
  end.set_value();
  for (auto& thread : threads) thread.join();
  if (!threads.empty()) std::this_thread::sleep_for(until_gone);
  return static_cast<int64_t>(threads.size());
}

}  // namespace cloze
