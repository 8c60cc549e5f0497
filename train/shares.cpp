#include "train/shares.h"

#include <algorithm>
#include <optional>

#include "core/fingerprint.h"

namespace cloze {

namespace {

/// Slices of whole parameters, with about as many numbers each.
SliceBounds slices_of(const FlatParameters& flat, int64_t processes) {
  SliceBounds bounds{0};
  const int64_t numbers = flat.values.numel();
  for (const auto& range : flat.ranges())
    if (std::ssize(bounds) < processes && range.offset * processes >= numbers * std::ssize(bounds))
      bounds.push_back(range.offset);
  bounds.resize(static_cast<size_t>(processes) + 1, numbers);
  return bounds;
}

}  // namespace

PartRange micro_batches_in(const PartRange& own, int64_t parts, int64_t of_step) {
  return {parts_of(own.begin, parts, of_step).begin, parts_of(own.end - 1, parts, of_step).end};
}

Shares::Shares(Communicator& processes, const TrainConfig& config, FlatParameters& flat)
    : processes_(processes),
      parts_(config.parts),
      is_deterministic_(config.deterministic),
      flat_(flat),
      slices_(slices_of(flat, processes.size())) {}

PartRange Shares::own_slice() const {
  const auto rank = static_cast<size_t>(processes_.rank());
  return {slices_[rank], slices_[rank + 1]};
}

/// The slices before the own one, and those after it.
void Shares::for_others(const std::function<void(const PartRange&)>& use) const {
  const auto own = own_slice();
  use({0, own.begin});
  use({own.end, flat_.values.numel()});
}

int64_t Shares::owner_of_parameter(size_t parameter) const {
  return std::ranges::upper_bound(slices_, flat_.ranges()[parameter].offset) - slices_.begin() - 1;
}

int64_t Shares::owner_of_micro_batch(int64_t micro_batch, int64_t of_step) const {
  int64_t rank = 0;
  while (!micro_batches_in(parts_of(rank, processes_.size(), parts_), parts_, of_step).contains(micro_batch)) ++rank;
  return rank;
}

/// The sum of the subtree of own parts, in the flat gradients where the last own part is among them.
Tensor Shares::sum_of_parts(const PartRange& node, const std::function<void(int64_t part)>& add_part) {
  const auto known_sum = [&](const PartRange& part) -> std::optional<Tensor> {
    if (part.size() > 1) return std::nullopt;
    add_part(part.begin);
    if (part.end == own_parts().end) return flat_.grads;
    auto kept = flat_.grads.clone();
    flat_.grads.zero_();
    return kept;
  };
  return sum_of_tree(node, known_sum, [&](Tensor& left, const Tensor& right) {
    if (!right.is_same(flat_.grads)) {
      left.add_(right);
      return;
    }
    flat_.grads.add_(left);  // the same sum
    left = flat_.grads;
  });
}

Tensor Shares::sum_as_they_come(const std::function<void(int64_t part)>& add_part) {
  for (int64_t part = own_parts().begin; part < own_parts().end; ++part) add_part(part);
  return flat_.grads;
}

void Shares::sum_gradients(const std::function<void(int64_t part)>& add_part) {
  std::vector<Tensor> sums;
  if (is_deterministic_)
    for (const auto& node : subtrees_in({0, parts_}, own_parts())) sums.push_back(sum_of_parts(node, add_part));
  else
    sums.push_back(sum_as_they_come(add_part));
  if (is_alone()) return;
  processes_.sum_slices(flat_.grads, sums, is_deterministic_ ? parts_ : processes_.size(), slices_);
  for_others([&](const PartRange& slice) { flat_.grads.narrow(0, slice.begin, slice.size()).zero_(); });
}

std::vector<double> Shares::exchange_squares() const {
  std::vector<Tensor> gradients;
  for (const auto& range : flat_.ranges())
    if (own_slice().contains(range.offset)) gradients.push_back(flat_.grads.narrow(0, range.offset, range.numel));
  std::vector<double> own = norms_of(gradients), all;
  for (auto& norm : own) norm *= norm;
  for (const auto& squares : processes_.exchange(own)) all.insert(all.end(), squares.begin(), squares.end());
  return all;
}

void Shares::gather_values() {
  if (is_alone()) return;
  processes_.gather(flat_.values, slices_);
  if (!flat_.shadow.defined()) return;
  for_others([&](const PartRange& slice) {
    flat_.shadow.narrow(0, slice.begin, slice.size()).copy_(flat_.values.narrow(0, slice.begin, slice.size()));
  });
}

void Shares::require_equal_weights() const {
  const auto values = flat_.values.cpu();
  const auto hash = XXH3_64bits(values.data_ptr<float>(), values.nbytes()) >> 11;
  const auto hashes = processes_.exchange({static_cast<double>(hash)});
  for (size_t rank = 1; rank < hashes.size(); ++rank)
    require<Error>(hashes[rank] == hashes[0], "the weights of ", processes_.name_of(static_cast<int64_t>(rank)),
                   " are not those of ", processes_.name_of(0), " (", hex_of(static_cast<uint64_t>(hashes[rank][0])),
                   ", ", hex_of(static_cast<uint64_t>(hashes[0][0])),
                   "), which no step can leave; resume from the last checkpoint, on machines of one kind");
}

}  // namespace cloze
