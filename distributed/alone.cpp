#include <algorithm>

#include "distributed/communicator.h"
#include "distributed/watch.h"

namespace cloze {

namespace {

class Alone final : public Communicator {
 public:
  Alone() : Communicator(0, 1) {}
  std::string name_of(int64_t) const override { return "this process"; }
  std::string network() const override { return ""; }
  Tensor sum_slices(const std::vector<Tensor>& sums, int64_t, const SliceBounds&) override { return sums.at(0); }
  void gather(const Tensor&, const SliceBounds&) override {}
  void broadcast(const Tensor&) override {}
  void move(const Tensor&, int64_t, int64_t) override {}
  std::vector<std::vector<double>> exchange(const std::vector<double>& own) override { return {own}; }
  std::string share(const std::string& text) override { return text; }
  void fail_for_all(const std::string&, int) override {}
};

}  // namespace

std::vector<std::string> exchange_texts(Communicator& processes, const std::string& own) {
  std::vector<std::string> texts;
  for (const auto& characters : processes.exchange({own.begin(), own.end()})) {
    auto& text = texts.emplace_back();
    for (const double character : characters) text += static_cast<char>(character);
  }
  return texts;
}

int64_t processes_here(Communicator& processes) {
  const auto hosts = exchange_texts(processes, name_of_host());
  return std::ranges::count(hosts, hosts[static_cast<size_t>(processes.rank())]);
}

Communicator& alone() {
  static Alone process;
  return process;
}

}  // namespace cloze
