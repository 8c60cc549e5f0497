#pragma once
// How the processes of a run watch over each other: by a connection of each with the first one, beside those by which
// they train. Without LibTorch.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/meeting.h"

namespace cloze {

/// A socket that listens at a port of its own, on this machine alone or for others, too.
struct Listener {
  int socket = -1;
  int port = 0;
};
Listener listen_here(bool is_local);

/// A thread that shows the others that this process lives. When another one dies, is silent for too long or says that
/// it has failed, it ends this one (Meeting::end), whatever the run is at.
class Watch {
 public:
  /// Of the first process, to which the others come.
  Watch(const Meeting& meeting, Listener listener);
  /// Of another one. Throws ProcessLost where nobody listens at the port.
  Watch(const Meeting& meeting, int port);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  /// Fails for all, unless it has left.
  ~Watch();

  /// Waits until all are here; the first process says every ten seconds who is not. Answers with their names by rank:
  /// `rank 3 on HOST (pid 71)`. Throws ProcessLost where some do not come in time, Interrupted after a signal.
  std::vector<std::string> await_all();
  /// Tells all others that this process ends with a failure, unless they end already.
  void fail(const Failure& failure);
  /// Waits for the end that this process is about to meet, for some seconds.
  void await_end();
  /// From now on nobody waits for this process, nor this one for others.
  void leave();

 private:
  using Steady = std::chrono::steady_clock;
  /// A connection with another process.
  struct Line {
    int socket = -1;
    int64_t rank = -1;           ///< -1: it has not said yet
    std::string received{};      ///< of a message whose end is missing
    Steady::time_point heard{};  ///< when it last gave a sign of life
    bool has_left = false;
  };

  bool is_first() const { return meeting_.rank == 0; }
  void begin();
  void run();
  void show_life();
  void wait_for_words();
  void take_callers();
  std::optional<Failure> listen_to_all();
  std::optional<Failure> listen_to(Line& line);
  std::optional<Failure> understand(Line& line, const std::string& message);
  void take_in(Line& line, const std::string& message);
  void refuse(Line& line, const std::string& reason) const;
  void begin_together();
  std::string name_of(int64_t rank) const;
  std::string missing() const;
  void tell(const std::string& message) const;
  void close_gently();
  void wake() const;

  const Meeting meeting_;
  int listener_ = -1, alarm_ = -1;
  std::vector<Line> lines_{};         ///< those of the first process with all others, of another one with the first
  std::vector<std::string> names_{};  ///< by rank; empty of those who are not here
  bool is_complete_ = false;          ///< all have come
  bool is_over_ = false;              ///< this process has left or has failed
  bool is_ending_ = false;            ///< this process is being ended
  Steady::time_point looked_{};       ///< the last time that the thread ran
  Steady::time_point shown_{};        ///< the last time that it gave a sign of life
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::thread thread_{};
};

/// `rank 3 on HOST (pid 71)`, of this process.
std::string own_name(int64_t rank);
/// The name of this machine.
std::string name_of_host();

}  // namespace cloze
