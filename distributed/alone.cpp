#include <cstring>
#include <nlohmann/json.hpp>

#include "distributed/communicator.h"

namespace cloze {

using nlohmann::json;

namespace {

class Alone final : public Communicator {
 public:
  Alone() : Communicator(0, 1, 0, 1) {}
  std::string name_of(int64_t) const override { return "this process"; }
  std::string network() const override { return ""; }
  void sum_slices(const Tensor& flat, const std::vector<Tensor>& sums, int64_t, const SliceBounds&) override {
    if (!sums.at(0).is_same(flat)) flat.copy_(sums[0]);
  }
  void gather(const Tensor&, const SliceBounds&) override {}
  void broadcast(const Tensor&) override {}
  void move(const Tensor&, int64_t, int64_t) override {}
  std::vector<std::vector<double>> exchange(const std::vector<double>& own) override { return {own}; }
  std::string broadcast_text(const std::string& text) override { return text; }
  void fail_for_all(const std::string&, int) override {}
};

}  // namespace

std::vector<json> exchange_json(Communicator& processes, const json& own) {
  const auto bytes = json::to_cbor(own);
  std::vector<double> packed(1 + (bytes.size() + sizeof(double) - 1) / sizeof(double));
  packed[0] = static_cast<double>(bytes.size());
  std::memcpy(packed.data() + 1, bytes.data(), bytes.size());
  std::vector<json> all;
  for (const auto& numbers : processes.exchange(packed)) {
    const auto* begin = reinterpret_cast<const uint8_t*>(numbers.data() + 1);
    all.push_back(json::from_cbor(begin, begin + static_cast<size_t>(numbers[0])));
  }
  return all;
}

Communicator& alone() {
  static Alone process;
  return process;
}

}  // namespace cloze
