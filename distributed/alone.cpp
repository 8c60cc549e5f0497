#include "distributed/communicator.h"

namespace cloze {

namespace {

class Alone final : public Communicator {
 public:
  Alone() : Communicator(0, 1) {}
  Tensor sum_slices(const std::vector<Tensor>& sums, int64_t, const SliceBounds&) override { return sums.at(0); }
  void gather(const Tensor&, const SliceBounds&) override {}
  void broadcast(const Tensor&) override {}
  std::vector<std::vector<double>> exchange(const std::vector<double>& own) override { return {own}; }
  std::string share(const std::string& text) override { return text; }
  void fail_for_all(const std::string&, int) override {}
};

}  // namespace

std::unique_ptr<Communicator> alone() { return std::make_unique<Alone>(); }

}  // namespace cloze
