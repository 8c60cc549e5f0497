#include "data/sampling/mixed_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cloze {

namespace {

constexpr uint64_t whole_share = uint64_t{1} << 32;
/// Rows among which the texts are shuffled: objectives that go by the parity of a row's number meet every text.
constexpr uint64_t shuffled_rows = 32;

/// floor(rows * fraction / 2^32), exactly: a rounded product would leave out a row, or give one twice.
uint64_t share_of(uint64_t rows, uint64_t fraction) {
  return (rows >> 32) * fraction + ((rows & (whole_share - 1)) * fraction >> 32);
}

}  // namespace

MixtureOrder::MixtureOrder(const std::vector<double>& rows, uint64_t key) : key_(key) {
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  size_ = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(all)));
  double rest = all;
  for (size_t part = 0; part < rows.size(); ++part) {
    const auto wanted = static_cast<uint64_t>(std::llround(rows[part] / rest * static_cast<double>(whole_share)));
    of_all_.push_back(rows[part] / all);
    of_rest_.push_back(part + 1 == rows.size() ? whole_share : std::clamp<uint64_t>(wanted, 1, whole_share - 1));
    rest -= rows[part];
  }
}

/// The text whose row stands at a position before shuffling: each takes every (2^32 / of_rest)-th row that is left.
size_t MixtureOrder::part_at(uint64_t position) const {
  size_t part = 0;
  for (;; ++part) {
    const auto before = share_of(position, of_rest_[part]);
    if (share_of(position + 1, of_rest_[part]) > before) return part;
    position -= before;
  }
}

/// The number of rows of a text before a position.
uint64_t MixtureOrder::rows_before(uint64_t position, size_t part) const {
  for (size_t earlier = 0; earlier < part; ++earlier) position -= share_of(position, of_rest_[earlier]);
  return share_of(position, of_rest_[part]);
}

RowOfPart MixtureOrder::at(uint64_t index) const {
  if (of_rest_.size() == 1) return {.row = index};
  const uint64_t block = index / shuffled_rows, first = block * shuffled_rows;
  const Permutation shuffled(shuffled_rows, mix(key_, block));
  const auto part_of = [&](uint64_t row) { return part_at(first + shuffled(row - first)); };
  RowOfPart part{.part = part_of(index)};
  part.row = rows_before(first, part.part);
  for (uint64_t row = first; row < index; ++row) part.row += part_of(row) == part.part;
  return part;
}

MixedSampler::MixedSampler(const TokenStore& store, const SamplerOptions& options, const Rng& rng)
    : store_(store), options_(options), order_key_(rng.key("order")), order_(cut(rng), rng.key("mixture")) {}

/// Makes the parts; returns how many sequences of each an epoch has.
std::vector<double> MixedSampler::cut(const Rng& rng) {
  std::vector<double> sequences;
  uint64_t items = 0;
  for (const auto& part : store_.parts()) {
    const auto& made = parts_.emplace_back(Part{.sampler = Sampler(part.text, options_, rng),
                                                .first_document = part.first_document,
                                                .first_token = part.first_token,
                                                .first_item = items});
    items += made.sampler.items();
    sequences.push_back(part.passes * static_cast<double>(made.sampler.size()));
  }
  return sequences;
}

double MixedSampler::random_next_rate() const {
  double fraction = 0;
  for (size_t part = 0; part < parts_.size(); ++part)
    fraction += order_.fraction(part) * parts_[part].sampler.random_next_rate();
  return fraction;
}

void MixedSampler::sample(uint64_t index, Example& example) const {
  const auto [number, row] = order_.at(index);
  const auto& part = parts_[number];
  part.sampler.sample(row, example);
  example.item += part.first_item;
  example.document += part.first_document;
  example.first_document = part.first_document;
  for (auto& span : example.spans) span.first += part.first_token;
}

/// The approximate number of tokens of its row; for a pair of texts that of the longer side.
uint64_t MixedSampler::length_of(const Example& example) const {
  uint64_t tokens = 0;
  for (const auto& span : example.spans) tokens += span.count;
  if (example.random_next) return example.target_length;
  if (options_.packing != Packing::whole) return std::min(tokens, example.target_length);
  const uint64_t source = store_.first_token(store_.first_sentence(example.document) + 1) - example.spans.front().first;
  return std::min(options_.length, std::max(source, tokens - source));
}

/// The sequences of the step that begins with sequence `begin`, batch by batch.
std::vector<uint64_t> MixedSampler::step_by_length(uint64_t begin, const StepBatches& step) const {
  std::vector<std::pair<uint64_t, uint64_t>> sorted(step.rows());  // length, sequence
  Example example;
  for (uint64_t i = 0; i < sorted.size(); ++i) {
    sample(begin + i, example);
    sorted[i] = {length_of(example), begin + i};
  }
  std::ranges::sort(sorted);
  std::vector<uint64_t> order;
  for (const auto& batch : dealt_by_length(step.rows(), step, mix(order_key_, ~(begin / step.rows()))))
    for (const auto row : batch) order.push_back(sorted[row].second);
  return order;
}

std::vector<uint64_t> MixedSampler::by_length(uint64_t first, uint64_t count, const StepBatches& step) const {
  std::vector<uint64_t> order;
  if (step.count < 2 || options_.packing == Packing::full) {  // one batch, or nearly all have the same length
    order.resize(count);
    std::iota(order.begin(), order.end(), first);
    return order;
  }
  std::vector<uint64_t> of_step;
  for (uint64_t index = first; index < first + count; ++index) {
    const uint64_t row = index % step.rows();
    if (of_step.empty() || row == 0) of_step = step_by_length(index - row, step);
    order.push_back(of_step[row]);
  }
  return order;
}

}  // namespace cloze
