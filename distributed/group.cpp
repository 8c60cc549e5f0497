// Processes that meet by c10d's TCPStore and talk by its Gloo: the one file that includes c10d.
#include "distributed/communicator.h"

#ifdef CLOZE_NO_GLOO

namespace cloze {

std::unique_ptr<Communicator> meet(const Meeting&) {
  fail<ConfigError>(
      "the LibTorch of this build has no Gloo that Cloze knows; train with one process, or build with the "
      "wheel of torch 2.13");
}

}  // namespace cloze

#else

#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/log.h"
#include "core/text.h"

namespace cloze {

namespace {

using Seconds = std::chrono::duration<double>;
using Steady = std::chrono::steady_clock;
using Store = c10::intrusive_ptr<c10d::TCPStore>;

constexpr auto pulse = std::chrono::milliseconds(300);     ///< from one sign of life to the next
constexpr auto silence = std::chrono::milliseconds(1500);  ///< of a process that has ended
constexpr auto late = std::chrono::seconds(10);            ///< from one line about who has not come to the next

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::string text_at(const Store& store, const std::string& key) {
  const auto bytes = store->get(key);
  return {bytes.begin(), bytes.end()};
}

void put(const Store& store, const std::string& key, const std::string& text) {
  store->set(key, std::vector<uint8_t>(text.begin(), text.end()));
}

std::string name_of_host() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

/// The first line of what c10d throws, without the place in its sources.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  while (text.starts_with("[") && text.find("] ") != text.npos) text.erase(0, text.find("] ") + 2);
  return text.substr(0, text.find(" (possible"));
}

Store connect(const Meeting& meeting, bool serves) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(meeting.port);
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = milliseconds(meeting.timeout);
  return c10::make_intrusive<c10d::TCPStore>(meeting.host, options);
}

/// The store of all processes, which the first one serves.
Store open_store(const Meeting& meeting) {
  const bool serves = meeting.rank == 0;
  try {
    return connect(meeting, serves);
  } catch (const std::exception& error) {
    if (serves)
      fail<ConfigError>("port ", meeting.port, " of ", meeting.host, " cannot be taken (", reason_of(error),
                        "); name one that is free with --rendezvous HOST:PORT");
    fail<ProcessLost>("rank 0 does not answer at ", meeting.host, ":", meeting.port, " (", reason_of(error),
                      "); start it, or name its host with --rendezvous HOST:PORT");
  }
}

/// The processes of a run, and what each says of itself.
class Roll {
 public:
  Roll(Store store, int64_t rank, int64_t size) : store_(std::move(store)), rank_(rank), size_(size) {
    put(store_, key("here", rank), concat("rank ", rank, " on ", name_of_host(), " (pid ", getpid(), ")"));
  }

  /// Waits until all are here, and says every few seconds who is not.
  void wait(double timeout, double longer) const {
    const auto start = Steady::now();
    for (auto said = start;;) {
      const auto missing = absent_or_fail();
      if (missing.empty()) return;
      const auto now = Steady::now();
      const auto who = concat(missing.size() == 1 ? "rank " : "ranks ", listed(missing));
      if (now - start > Seconds(timeout + longer))
        fail<ProcessLost>(who, " of ", size_, " did not come within ", timeout, " seconds; start ",
                          missing.size() == 1 ? "it" : "them", ", or raise --timeout");
      if (now - said > late) {
        log_info("processes", concat("waiting for ", who, " of ", size_));
        said = now;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  /// `rank 3 on HOST (pid 71)`.
  std::string name(int64_t rank) const { return text_at(store_, key("here", rank)); }
  void beat(int64_t count) const { put(store_, key("alive", rank_), concat(count)); }
  /// The last sign of life of each process.
  std::vector<std::string> beats() const {
    std::vector<std::string> all;
    for (int64_t rank = 0; rank < size_; ++rank)
      all.push_back(store_->check({key("alive", rank)}) ? text_at(store_, key("alive", rank)) : "");
    return all;
  }

 private:
  static std::string key(const char* of, int64_t rank) { return concat(of, "/", rank); }
  std::vector<std::string> absent_or_fail() const {
    try {
      return absent();
    } catch (const std::exception& error) {
      fail<ProcessLost>("rank 0 has ended before all had come (", reason_of(error), ")");
    }
  }
  std::vector<std::string> absent() const {
    std::vector<std::string> ranks;
    for (int64_t rank = 0; rank < size_; ++rank)
      if (!store_->check({key("here", rank)})) ranks.push_back(concat(rank));
    return ranks;
  }

  Store store_;
  int64_t rank_, size_;
};

/// A failure of one process, as it stands in the store.
struct Failure {
  int exit_code = 1;
  std::string sentence{};
};

/// A thread that shows that this process lives and looks whether the others do, whatever the run is at.
class Watch {
 public:
  Watch(const Meeting& meeting, const Roll& roll, Store store)
      : meeting_(meeting), roll_(roll), store_(std::move(store)), thread_([this] { run(); }) {}
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  bool pause() {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, pulse, [&] { return is_stopped_; });
  }

  void run() {
    try {
      for (int64_t count = 0; pause(); ++count) look(count);
    } catch (const std::exception&) {  // of the store, which ends with the first process
      end({.exit_code = ProcessLost("").exit_code(), .sentence = "rank 0 has ended"});
    }
  }

  void look(int64_t count) {
    roll_.beat(count);
    if (store_->check({"failed"})) {
      const auto text = text_at(store_, "failed");
      end({.exit_code = std::stoi(text), .sentence = text.substr(text.find('\n') + 1)});
    }
    if (meeting_.rank == 0) look_for_the_silent();
  }

  /// The first process says of one that has been silent for too long that it is lost.
  void look_for_the_silent() {
    const auto now = Steady::now();
    const auto beats = roll_.beats();
    for (size_t rank = 0; rank < beats.size(); ++rank) {
      auto& [beat, heard] = heard_.try_emplace(rank, beats[rank], now).first->second;
      if (beat != beats[rank]) {
        beat = beats[rank];
        heard = now;
      }
      if (now - heard > Seconds(meeting_.timeout))
        end({.exit_code = ProcessLost("").exit_code(),
             .sentence = concat(roll_.name(static_cast<int64_t>(rank)), " has not answered for ", meeting_.timeout,
                                " seconds")});
    }
  }

  void end(const Failure& failure) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_stopped_, true)) return;
    }
    if (meeting_.rank == 0) {
      put(store_, "failed", concat(failure.exit_code, "\n", failure.sentence));
      std::this_thread::sleep_for(3 * pulse);  // in which the others read it
    }
    if (meeting_.end) meeting_.end(failure.sentence, failure.exit_code);
  }

  const Meeting& meeting_;
  const Roll& roll_;
  Store store_;
  std::map<size_t, std::pair<std::string, Steady::time_point> > heard_{};
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool is_stopped_ = false;
  std::thread thread_;  ///< last: what it uses outlives it
};

c10::intrusive_ptr<c10d::ProcessGroupGloo> open_group(const Meeting& meeting, const Store& store) {
  auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(meeting.timeout));
  const bool is_local = meeting.host == "127.0.0.1" || meeting.host == "localhost";
  options->devices = {!meeting.interface_name.empty()
                          ? c10d::ProcessGroupGloo::createDeviceForInterface(meeting.interface_name)
                      : is_local ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                 : c10d::ProcessGroupGloo::createDefaultDevice()};
  options->threads = 2;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(meeting.rank),
                                                     static_cast<int>(meeting.size), options);
}

class Group final : public Communicator {
 public:
  explicit Group(const Meeting& meeting)
      : Communicator(meeting.rank, meeting.size),
        meeting_(meeting),
        store_(open_store(meeting)),
        watched_(connect(meeting, false)),
        roll_(watched_, meeting.rank, meeting.size) {
    constexpr double longer = 1;  // for the first process, with which the store ends
    roll_.wait(meeting.timeout, meeting.rank == 0 ? longer : 0);
    group_ = open_group(meeting_, store_);
    watch_.emplace(meeting_, roll_, watched_);
  }

  /// The first process, which serves the store, leaves last.
  ~Group() override {
    try {
      if (std::uncaught_exceptions() == 0 && !has_failed_) exchange({});
    } catch (const std::exception&) {  // all is done; the others end without it, too
    }
    watch_->stop();
    if (rank() != 0) try {
        store_->add("left", 1);
      } catch (const std::exception&) {
      }
    else
      for (int tries = 0; tries < 200 && store_->add("left", 0) < size() - 1; ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Tensor sum_slices(const std::vector<Tensor>& sums, int64_t parts, const SliceBounds& slices) override {
    const PartRange all{0, parts};
    std::vector<std::vector<PartRange> > nodes_of;
    size_t most = 0;
    for (int64_t r = 0; r < size(); ++r) {
      nodes_of.push_back(subtrees_in(all, parts_of(r, size(), parts)));
      most = std::max(most, nodes_of.back().size());
    }
    std::map<int64_t, std::pair<int64_t, Tensor> > received;  // by the first part of a node: its end, its sum
    for (size_t k = 0; k < most; ++k) {
      const auto slice = take_slices(k < sums.size() ? sums[k] : Tensor(), k, nodes_of, slices);
      for (size_t r = 0, at = 0; r < nodes_of.size(); ++r)
        if (k < nodes_of[r].size())
          received[nodes_of[r][k].begin] = {nodes_of[r][k].end, slice[static_cast<int64_t>(at++)]};
    }
    const auto given = [&](PartRange node) -> std::optional<Tensor> {
      const auto found = received.find(node.begin);
      if (found == received.end() || found->second.first != node.end) return std::nullopt;
      return found->second.second;
    };
    return sum_of_tree(all, given, [](Tensor& left, const Tensor& right) { left.add_(right); });
  }

  void gather(const Tensor& flat, const SliceBounds& slices) override {
    guarded([&] {
      std::vector<c10::intrusive_ptr<c10d::Work> > works;
      const auto view = [&](int64_t r) {
        const auto begin = slices[static_cast<size_t>(r)];
        return std::vector<Tensor>{flat.narrow(0, begin, slices[static_cast<size_t>(r) + 1] - begin)};
      };
      auto own = view(rank());
      for (int64_t away = 1; away < size(); ++away) {
        const auto to = (rank() + away) % size(), from = (rank() + size() - away) % size();
        auto others = view(from);
        if (others[0].numel() > 0) works.push_back(group_->recv(others, static_cast<int>(from), 0));
        if (own[0].numel() > 0) works.push_back(group_->send(own, static_cast<int>(to), 0));
      }
      for (const auto& work : works) work->wait();
    });
  }

  void broadcast(const Tensor& tensor) override {
    guarded([&] {
      std::vector<Tensor> tensors{tensor};
      group_->broadcast(tensors)->wait();
    });
  }

  void move(const Tensor& tensor, int64_t from, int64_t to) override {
    std::vector<Tensor> tensors{tensor};
    guarded([&] {
      if (from == to) return;
      if (rank() == from) group_->send(tensors, static_cast<int>(to), 0)->wait();
      if (rank() == to) group_->recv(tensors, static_cast<int>(from), 0)->wait();
    });
  }

  std::vector<std::vector<double> > exchange(const std::vector<double>& own) override {
    int64_t most = 0;
    std::vector<int64_t> counts;
    for (const auto& count : all_of({static_cast<double>(own.size())}, 1)) {
      counts.push_back(static_cast<int64_t>(count.at(0)));
      most = std::max(most, counts.back());
    }
    auto all = most > 0 ? all_of(own, most) : std::vector<std::vector<double> >(counts.size());
    for (size_t r = 0; r < all.size(); ++r) all[r].resize(static_cast<size_t>(counts[r]));
    return all;
  }

  std::string share(const std::string& text) override {
    const auto key = concat("shared/", shared_++);
    if (is_first()) {
      guarded([&] { put(store_, key, text); });
      return text;
    }
    for (;;) {
      try {
        store_->wait({key}, std::chrono::seconds(1));
        break;
      } catch (const std::exception&) {  // the watch ends this process when the first one has ended
        if (has_failed_) throw;
      }
    }
    return text_at(store_, key);
  }

  void fail_for_all(const std::string& sentence, int exit_code) override {
    has_failed_ = true;
    try {
      if (store_->check({"failed"})) return;  // the first failure is the reason of all others
      put(store_, "failed", concat(exit_code, "\n", sentence));
      std::this_thread::sleep_for(3 * pulse);  // in which the others read it
    } catch (const std::exception&) {          // the store has ended with the first process
    }
  }

 private:
  /// The own slices of the k-th nodes of all processes that have so many, one row each.
  Tensor take_slices(const Tensor& own, size_t k, const std::vector<std::vector<PartRange> >& nodes_of,
                     const SliceBounds& slices) {
    const auto width = slices[static_cast<size_t>(rank()) + 1] - slices[static_cast<size_t>(rank())];
    std::vector<int64_t> sent, taken;
    int64_t rows = 0;
    for (size_t r = 0; r < nodes_of.size(); ++r) {
      const bool gives = k < nodes_of[r].size();
      sent.push_back(own.defined() ? slices[r + 1] - slices[r] : 0);
      taken.push_back(gives ? width : 0);
      rows += gives;
    }
    auto all = at::empty({rows * width});
    auto given = own.defined() ? own : at::empty({0});
    guarded([&] { group_->alltoall_base(all, given, taken, sent)->wait(); });
    return all.view({rows, width});
  }

  /// The numbers of every process, filled up to `count`.
  std::vector<std::vector<double> > all_of(const std::vector<double>& own, int64_t count) {
    std::vector<Tensor> inputs{at::zeros({count}, at::kDouble)};
    std::copy(own.begin(), own.end(), inputs[0].data_ptr<double>());
    std::vector<std::vector<Tensor> > outputs(1);
    for (int64_t r = 0; r < size(); ++r) outputs[0].push_back(at::empty_like(inputs[0]));
    guarded([&] { group_->allgather(outputs, inputs)->wait(); });
    std::vector<std::vector<double> > all;
    for (const auto& tensor : outputs[0])
      all.emplace_back(tensor.data_ptr<double>(), tensor.data_ptr<double>() + count);
    return all;
  }

  /// Runs what may find that another process has ended. The watch says more of it than c10d does, and ends this
  /// process.
  template <class Verb>
  void guarded(const Verb& verb) {
    try {
      verb();
    } catch (const std::exception& error) {
      const auto lost = silent_one();
      has_failed_ = true;
      fail<ProcessLost>(lost.empty() ? concat("another process does not answer (", reason_of(error), ")")
                                     : lost + " has ended");
    }
  }

  /// The process that shows no sign of life, or nothing.
  std::string silent_one() const {
    try {
      const auto before = roll_.beats();
      std::this_thread::sleep_for(silence);
      const auto after = roll_.beats();
      for (int64_t r = 0; r < size(); ++r)
        if (r != rank() && before[static_cast<size_t>(r)] == after[static_cast<size_t>(r)]) return roll_.name(r);
    } catch (const std::exception&) {
      return "rank 0";
    }
    return "";
  }

  Meeting meeting_;
  Store store_, watched_;
  Roll roll_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_{};
  std::optional<Watch> watch_{};
  std::atomic<bool> has_failed_ = false;
  int64_t shared_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> meet(const Meeting& meeting) {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*replaces=*/0);  // c10d's stack traces of what is said here in a sentence
  c10::initLogging();
  return std::make_unique<Group>(meeting);
}

}  // namespace cloze

#endif
