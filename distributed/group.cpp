// Processes that meet by c10d's TCPStore and talk by its Gloo, and by NCCL of what is on their cards: the one file that
// includes c10d.
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
#include <arpa/inet.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Logging.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "core/device/nccl.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/text.h"
#include "distributed/shared_memory.h"
#include "distributed/watch.h"

namespace cloze {

namespace {

using Seconds = std::chrono::duration<double>;
using Steady = std::chrono::steady_clock;
using Store = c10::intrusive_ptr<c10d::Store>;

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

/// The first line of what c10d throws, without the place in its sources.
std::string reason_of(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  while (text.starts_with("[") && text.find("] ") != text.npos) text.erase(0, text.find("] ") + 2);
  return text.substr(0, text.find(" (possible"));
}

Store connect(const Meeting& meeting, bool serves, double seconds) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(meeting.port);
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = milliseconds(seconds);
  if (serves && meeting.listener >= 0) options.masterListenFd = meeting.listener;
  return c10::make_intrusive<c10d::TCPStore>(meeting.host, options);
}

/// The store that the first process serves. Says every ten seconds that it waits for it.
Store await_store(const Meeting& meeting) {
  constexpr int64_t late = 5;  // tries, of two seconds each, from one line to the next
  const bool speaks = meeting.local_rank == 0 || meeting.rank == 1;
  const auto end = Steady::now() + std::chrono::duration_cast<Steady::duration>(Seconds(meeting.timeout));
  for (int64_t tries = 1;; ++tries) try {
      auto store = connect(meeting, /*serves=*/false, /*seconds=*/2);
      store->setTimeout(milliseconds(meeting.timeout));
      return store;
    } catch (const std::exception&) {
      if (interrupted) throw Interrupted("stopped before rank 0 had come");
      if (Steady::now() > end)
        fail<ProcessLost>("rank 0 has not answered at ", meeting.host, ":", meeting.port, " for ", meeting.timeout,
                          " seconds; start it, name its host with --rendezvous HOST:PORT, or raise --timeout");
      if (speaks && tries % late == 0)
        log_info("processes", concat("waiting for rank 0 at ", meeting.host, ":", meeting.port));
    }
}

/// Throws ConfigError for a host that has no address.
void check_host(const Meeting& meeting) {
  addrinfo* addresses = nullptr;
  const int error = getaddrinfo(meeting.host.c_str(), nullptr, nullptr, &addresses);
  require<ConfigError>(error == 0, "'", meeting.host, "' is no host that is known here (", gai_strerror(error),
                       "); name that of rank 0 with --rendezvous HOST:PORT");
  freeaddrinfo(addresses);
}

/// The store of all processes. What is in it from before the launcher has started them again is of no use.
Store open_store(const Meeting& meeting) {
  check_host(meeting);
  const auto open = [&]() -> Store {
    if (meeting.rank > 0 || meeting.has_store) return await_store(meeting);
    try {
      return connect(meeting, /*serves=*/true, meeting.timeout);
    } catch (const std::exception& error) {
      const bool is_taken = std::string(error.what()).find("EADDRINUSE") != std::string::npos;
      require<ConfigError>(!is_taken, "port ", meeting.port, " of this machine is taken, by another run or program; ",
                           "name one that is free with --rendezvous HOST:PORT");
      fail<ConfigError>("rank 0 does not reach itself at ", meeting.host, ":", meeting.port,
                        "; name its own host with --rendezvous HOST:PORT");
    }
  };
  return c10::make_intrusive<c10d::PrefixStore>(concat("cloze/", meeting.restarts), open());
}

/// The watch, whose port the first process writes into the store.
std::unique_ptr<Watch> open_watch(const Meeting& meeting, const Store& store) {
  if (meeting.rank == 0) {
    const auto listener = listen_here(meeting.is_local());
    put(store, "watch", concat(listener.port));
    return std::make_unique<Watch>(meeting, listener);
  }
  try {
    store->wait({"watch"}, milliseconds(meeting.timeout));
  } catch (const std::exception&) {
    fail<ProcessLost>("rank 0 has not come to ", meeting.host, ":", meeting.port, " within ", meeting.timeout,
                      " seconds; start it, or raise --timeout");
  }
  return std::make_unique<Watch>(meeting, std::stoi(text_at(store, "watch")));
}

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  else if (address->sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  return text;
}

/// The address of this machine from which a host is reached, or nothing. No packet is sent.
std::string address_towards(const std::string& host) {
  addrinfo hints{}, *addresses = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host.c_str(), "1", &hints, &addresses) != 0) return "";
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  const int probe = socket(addresses->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool is_known =
      connect(probe, addresses->ai_addr, addresses->ai_addrlen) == 0 && getsockname(probe, address, &size) == 0;
  close(probe);
  freeaddrinfo(addresses);
  return is_known ? address_text(address) : "";
}

/// An interface of this machine and an address of it.
struct Interface {
  std::string name{}, address{};
};

/// The interface whose address reaches the first process; where that is this machine itself, by a name of its own, the
/// first one that leads to others.
Interface interface_of(const Meeting& meeting) {
  const auto wanted = address_towards(meeting.host);
  const bool is_own = wanted.starts_with("127.") || wanted == "::1";
  Interface chosen;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return chosen;
  for (const auto* at = all; at != nullptr && chosen.name.empty(); at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const auto address = address_text(at->ifa_addr);
    const bool leads_out = at->ifa_addr->sa_family == AF_INET && (at->ifa_flags & IFF_LOOPBACK) == 0;
    const bool is_asked = meeting.interface_name.empty()
                              ? (is_own && !meeting.is_local() ? leads_out : address == wanted)
                              : meeting.interface_name == at->ifa_name && !address.empty();
    if (is_asked) chosen = {at->ifa_name, address};
  }
  freeifaddrs(all);
  return chosen;
}

/// Gloo among the processes. It waits for days: the watch finds those that are lost, and what the first process does
/// between two steps lasts as long as it lasts.
c10::intrusive_ptr<c10d::ProcessGroupGloo> open_group(const Meeting& meeting, const Store& store, const Interface& by) {
  constexpr double month = 30 * 24 * 3600;
  auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(month));
  options->devices = {by.name.empty() ? c10d::ProcessGroupGloo::createDefaultDevice()
                      : meeting.interface_name.empty()
                          ? c10d::ProcessGroupGloo::createDeviceForHostname(by.address)
                          : c10d::ProcessGroupGloo::createDeviceForInterface(meeting.interface_name)};
  options->threads = 2;
  return c10::make_intrusive<c10d::ProcessGroupGloo>(store, static_cast<int>(meeting.rank),
                                                     static_cast<int>(meeting.size), options);
}

/// A tensor that goes to another process, or comes from it.
struct Moved {
  int64_t peer;
  Tensor tensor;
};

void* stream_of(const Tensor& on_card) {
  const auto device = on_card.device();
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

std::vector<device::Transfer> on_cards(const std::vector<Moved>& all) {
  std::vector<device::Transfer> transfers;
  for (const auto& [peer, tensor] : all) transfers.push_back({peer, tensor.data_ptr(), tensor.nbytes()});
  return transfers;
}

class Group final : public Communicator {
 public:
  explicit Group(const Meeting& meeting)
      : Communicator(meeting.rank, meeting.size, meeting.local_rank, meeting.local_size),
        store_(open_store(meeting)),
        watch_(open_watch(meeting, store_)),
        sees_memory_(meeting.is_local()) {
    names_ = watch_->await_all();
    const auto by = interface_of(meeting);
    network_ = by.name.empty() ? "" : concat(by.name, " (", by.address, ")");
    guarded([&] { group_ = open_group(meeting, store_, by); });
    if (sees_memory_) numbers_ = SharedNumbers::open(*this);
  }

  /// The first process, which serves the store, leaves last.
  ~Group() override {
    try {
      if (std::uncaught_exceptions() == 0 && !has_failed_) exchange({});
    } catch (const std::exception&) {  // all is done; the others end without it, too
    }
    watch_->leave();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  std::string name_of(int64_t rank) const override { return names_.at(static_cast<size_t>(rank)); }
  std::string network() const override { return network_; }

  void sum_slices(const Tensor& flat, const std::vector<Tensor>& sums, int64_t parts,
                  const SliceBounds& slices) override {
    const PartRange all{0, parts};
    std::vector<std::vector<PartRange> > nodes_of;
    size_t most = 0;
    for (int64_t r = 0; r < size(); ++r) {
      nodes_of.push_back(subtrees_in(all, parts_of(r, size(), parts)));
      most = std::max(most, nodes_of.back().size());
    }
    const auto* shared = shared_for(flat, static_cast<int64_t>(most) * slices.back());
    if (shared != nullptr) share_sums(sums, slices, *shared);
    std::map<int64_t, std::pair<int64_t, Tensor> > received;  // by the first part of a node: its end, its sum
    for (size_t k = 0; k < most; ++k) {
      const auto own = k < sums.size() ? sums[k] : Tensor();
      const auto slices_of_others = shared != nullptr ? shared_slices(own, k, nodes_of, slices, *shared)
                                                      : sent_slices(flat, own, k, nodes_of, slices);
      for (size_t r = 0, at = 0; r < nodes_of.size(); ++r)
        if (k < nodes_of[r].size()) received[nodes_of[r][k].begin] = {nodes_of[r][k].end, slices_of_others[at++]};
    }
    const auto sum_of_node = [&](PartRange node) -> std::optional<Tensor> {
      const auto node_slices = received.find(node.begin);
      if (node_slices == received.end() || node_slices->second.first != node.end) return std::nullopt;
      return node_slices->second.second;
    };
    const auto own_slice = slice_of(flat, slices, rank());
    const auto sum = sum_of_tree(all, sum_of_node, [&](Tensor& left, const Tensor& right) {
      if (right.data_ptr() != own_slice.data_ptr()) {
        left.add_(right);
        return;
      }
      right.add_(left);  // the same sum, where it is to be
      left = right;
    });
    if (sum.data_ptr() != own_slice.data_ptr()) own_slice.copy_(sum);
    if (shared != nullptr) await_all();  // before whose next sums no other overwrites the segments
  }

  void gather(const Tensor& flat, const SliceBounds& slices) override {
    if (const auto* shared = shared_for(flat, flat.numel())) {
      slice_of(shared->of(rank()), slices, rank()).copy_(slice_of(flat, slices, rank()));
      await_all();
      for (int64_t r = 0; r < size(); ++r)
        if (r != rank()) slice_of(flat, slices, r).copy_(slice_of(shared->of(r), slices, r));
      return await_all();
    }
    std::vector<Moved> sent, received;
    for (int64_t away = 1; away < size(); ++away) {
      const auto to = (rank() + away) % size(), from = (rank() + size() - away) % size();
      sent.push_back({to, slice_of(flat, slices, rank())});
      received.push_back({from, slice_of(flat, slices, from)});
    }
    transfer(flat, std::move(sent), std::move(received));
  }

  void broadcast(const Tensor& tensor) override {
    const auto* cards = cards_for(tensor);
    guarded([&] {
      std::vector<Tensor> tensors{tensor};
      if (cards != nullptr)
        cards->broadcast(tensor.data_ptr(), tensor.nbytes(), stream_of(tensor));
      else
        group_->broadcast(tensors)->wait();
    });
  }

  void move(const Tensor& tensor, int64_t from, int64_t to) override {
    if (from == to) return;
    transfer(tensor, rank() == from ? std::vector<Moved>{{to, tensor}} : std::vector<Moved>(),
             rank() == to ? std::vector<Moved>{{from, tensor}} : std::vector<Moved>());
  }

  std::vector<std::vector<double> > exchange(const std::vector<double>& own) override {
    if (numbers_) {
      std::vector<std::vector<double> > all;
      guarded([&] { all = numbers_->exchange(own); });
      return all;
    }
    constexpr size_t at_once = 31;
    std::vector<double> begin{static_cast<double>(own.size())};
    begin.insert(begin.end(), own.begin(), own.begin() + static_cast<int64_t>(std::min(own.size(), at_once)));
    auto all = all_of(begin, at_once + 1);
    size_t most = 0;
    for (const auto& numbers : all) most = std::max(most, static_cast<size_t>(numbers[0]));
    if (most > at_once) {  // again, all of them
      auto gathered = all_of(own, static_cast<int64_t>(most));
      for (size_t r = 0; r < all.size(); ++r) all[r].insert(all[r].begin() + 1, gathered[r].begin(), gathered[r].end());
    }
    for (auto& numbers : all) {
      const auto count = static_cast<size_t>(numbers[0]);
      numbers.erase(numbers.begin());
      numbers.resize(count);
    }
    return all;
  }

  std::string broadcast_text(const std::string& text) override {
    const auto key = concat("shared/", shared_++);
    if (is_first()) {
      guarded([&] { put(store_, key, text); });
      return text;
    }
    std::string shared;
    guarded([&] { shared = await_text(key); });
    return shared;
  }

  void fail_for_all(const std::string& sentence, int exit_code) override {
    has_failed_ = true;
    watch_->fail({.exit_code = exit_code, .sentence = sentence});
  }

 private:
  static Tensor slice_of(const Tensor& flat, const SliceBounds& slices, int64_t r) {
    const auto begin = slices[static_cast<size_t>(r)];
    return flat.narrow(0, begin, slices[static_cast<size_t>(r) + 1] - begin);
  }

  using Nodes = std::vector<std::vector<PartRange> >;  // of each process

  /// Sends and receives tensors, all at once. `like`: on the device of all of them.
  void transfer(const Tensor& like, std::vector<Moved> sent, std::vector<Moved> received) {
    const auto* cards = cards_for(like);
    for (auto* all : {&sent, &received}) std::erase_if(*all, [](const Moved& one) { return one.tensor.numel() == 0; });
    guarded([&] {
      if (cards != nullptr) return cards->transfer(on_cards(sent), on_cards(received), stream_of(like));
      std::vector<c10::intrusive_ptr<c10d::Work> > works;
      for (const auto& [peer, tensor] : received) {
        std::vector<Tensor> tensors{tensor};
        works.push_back(group_->recv(tensors, static_cast<int>(peer), 0));
      }
      for (const auto& [peer, tensor] : sent) {
        std::vector<Tensor> tensors{tensor};
        works.push_back(group_->send(tensors, static_cast<int>(peer), 0));
      }
      for (const auto& work : works) work->wait();
    });
  }

  /// NCCL, where tensors are on cards.
  const device::Nccl* cards_for(const Tensor& like) {
    if (!like.is_cuda()) return nullptr;
    if (!cards_) {
      const auto id = broadcast_text(is_first() ? device::Nccl::new_id() : "");
      cards_ = std::make_unique<device::Nccl>(rank(), size(), id);
    }
    return cards_.get();
  }

  /// The own slices of the k-th nodes of all processes that have so many, by the network.
  std::vector<Tensor> sent_slices(const Tensor& flat, const Tensor& own, size_t k, const Nodes& nodes_of,
                                  const SliceBounds& slices) {
    std::vector<Moved> sent, received;
    std::vector<Tensor> gathered;
    for (int64_t r = 0; r < size(); ++r) {
      const bool gives = k < nodes_of[static_cast<size_t>(r)].size(), is_own = r == rank();
      if (own.defined() && !is_own) sent.push_back({r, slice_of(own, slices, r)});
      if (gives) gathered.push_back(is_own ? slice_of(own, slices, r) : at::empty_like(slice_of(flat, slices, rank())));
      if (gives && !is_own) received.push_back({r, gathered.back()});
    }
    transfer(flat, std::move(sent), std::move(received));
    return gathered;
  }

  /// The same by the memory of the machine, where share_sums has put them.
  std::vector<Tensor> shared_slices(const Tensor& own, size_t k, const Nodes& nodes_of, const SliceBounds& slices,
                                    const SharedMemory& shared) const {
    const auto begin = slices[static_cast<size_t>(rank())], width = slices[static_cast<size_t>(rank()) + 1] - begin;
    std::vector<Tensor> parts;
    for (int64_t r = 0; r < size(); ++r) {
      if (k >= nodes_of[static_cast<size_t>(r)].size()) continue;
      const auto at = static_cast<int64_t>(k) * slices.back() + begin;
      parts.push_back(r == rank() ? own.narrow(0, begin, width) : shared.of(r).narrow(0, at, width));
    }
    return parts;
  }

  /// Shows the others what they need of the own sums.
  void share_sums(const std::vector<Tensor>& sums, const SliceBounds& slices, const SharedMemory& shared) {
    for (size_t k = 0; k < sums.size(); ++k)
      for (size_t r = 0; r + 1 < slices.size(); ++r) {
        if (static_cast<int64_t>(r) == rank()) continue;
        const auto width = slices[r + 1] - slices[r];
        shared.of(rank())
            .narrow(0, static_cast<int64_t>(k) * slices.back() + slices[r], width)
            .copy_(sums[k].narrow(0, slices[r], width));
      }
    await_all();
  }

  /// Memory of so many floats for each process, where all are on one machine, and `flat` on the CPU.
  const SharedMemory* shared_for(const Tensor& flat, int64_t floats) {
    if (!flat.is_cpu()) return nullptr;
    if (sees_memory_ && (!shared_memory_ || shared_memory_->floats() < floats)) {
      shared_memory_ = SharedMemory::open(*this, floats);
      sees_memory_ = shared_memory_ != nullptr;
    }
    return shared_memory_.get();
  }

  void await_all() { exchange({}); }

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
    const auto start = Steady::now();
    try {
      verb();
    } catch (const std::exception& error) {
      has_failed_ = true;
      watch_->await_end();
      fail<ProcessLost>("another process does not answer (", reason_of(error), ")");
    }
    waited_ += Seconds(Steady::now() - start).count();
  }

  /// Waits for a text as long as the store is there: the watch ends this process with the first one.
  std::string await_text(const std::string& key) const {
    for (;;) try {
        store_->wait({key}, std::chrono::seconds(1));
        return text_at(store_, key);
      } catch (const c10::Error&) {
        store_->check({key});  // throws where the store has ended
      }
  }

  Store store_;
  std::unique_ptr<Watch> watch_;
  std::vector<std::string> names_{};
  std::string network_{};
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_{};
  std::unique_ptr<device::Nccl> cards_{};
  bool has_failed_ = false;
  int64_t shared_ = 0;
  std::unique_ptr<SharedMemory> shared_memory_{};
  std::unique_ptr<SharedNumbers> numbers_{};
  bool sees_memory_;  ///< of the others, as far as is known
};

}  // namespace

std::unique_ptr<Communicator> meet(const Meeting& meeting) {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*replaces=*/0);  // c10d's stack traces of what is said here in a sentence
  c10::initLogging();
  return std::make_unique<Group>(meeting);
}

}  // namespace cloze

#endif
