// Tried when the build is configured: whether c10d's Gloo of this LibTorch is the one that distributed/group.cpp knows.
// Two ranks, which are threads here, add a number.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <thread>

int main() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto server = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  options.port = server->getPort();
  options.isServer = false;
  double sums[2] = {0, 0};
  const auto run = [&](int rank) {
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    auto own = c10d::ProcessGroupGloo::Options::create(std::chrono::seconds(20));
    own->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
    c10d::ProcessGroupGloo group(store, rank, 2, own);
    auto sent = at::ones({2}), taken = at::zeros({2});
    std::vector<int64_t> sizes{1, 1}, wanted{1, 1};
    group.alltoall_base(taken, sent, wanted, sizes)->wait();
    sums[rank] = taken.sum().item<double>();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return sums[0] == 2 && sums[1] == 2 ? 0 : 1;
}
