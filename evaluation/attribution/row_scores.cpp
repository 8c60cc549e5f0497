#include "evaluation/attribution/row_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/tensor/parallel.h"
#include "objectives/rows.h"
#include "run/device.h"

namespace cloze {

namespace {

constexpr int64_t tokens_at_once = 2048, tokens_of_device = 32768;

/// Variants whose rows are of one length, as a batch whose embeddings are those that they keep.
class VariantBatch {
 public:
  VariantBatch(const ScoredRows& in, const LabelledSetting& setting, const std::vector<RowVariant>& variants,
               std::span<const size_t> numbers)
      : in_(in), variants_(variants), numbers_(numbers) {
    BatchRows rows;
    for (const auto n : numbers) rows.push_back(&in.rows[score_of(n).row]);
    auto made = labelled_batch(setting, rows, /*with_targets=*/false);
    made.candidates = Tensor();  // rows of an item do not stand together
    const auto device = device_of(in.network);
    batch_ = to_device(std::move(made), device);
    const auto& tables = *in.network.backbone->embedding_tables();
    const auto embedded = [&](const Tensor& ids) { return at::embedding(tables.word.value(), ids) * tables.scale; };
    own_ = embedded(batch_.input_ids);
    baseline_ = embedded(at::full_like(batch_.input_ids.slice(0, 0, 1).slice(1, 0, 1), in.baseline));
    const auto shares = kept().to(device, own_.scalar_type());
    vectors_ = shares * own_ + (1 - shares) * baseline_;
    vectors_.set_requires_grad(at::GradMode::is_enabled());
    batch_.input_embeddings = vectors_;
    generates_ = !rows[0]->target.empty();
    // The decoder of a head reads the same tokens, shifted by one.
    const auto& decoder_ids = batch_.decoder_input_ids;
    if (decoder_ids.defined() && !generates_)
      batch_.decoder_embeddings = at::cat({embedded(decoder_ids.slice(1, 0, 1)), vectors_.slice(1, 0, -1)}, 1);
  }

  /// Computes the scores of its variants.
  void score(TokenGradient gradient, std::vector<VariantScore>& all) {
    const auto logits = generates_ ? next_token_logits() : task_logits(in_.network, batch_);  // [B, (T), L]
    std::vector<int64_t> places;
    for (const auto n : numbers_) {
      const auto score = score_of(n);
      const auto row = std::ssize(places) * (logits.numel() / logits.size(0));
      places.push_back(row + std::max<int64_t>(score.token, 0) * logits.size(-1) + score.column);
    }
    const auto scores = logits.reshape(-1).index_select(0, to_tensor(places).to(logits.device()));
    if (gradient != TokenGradient::none) scores.sum().backward();
    const auto values = scores.detach().to(at::kCPU, at::kDouble), others = logits.detach().to(at::kCPU, at::kDouble);
    const auto gradients = gradient == TokenGradient::none ? Tensor() : of_tokens(gradient).to(at::kCPU).contiguous();
    for (int64_t i = 0; i < std::ssize(numbers_); ++i) {
      const auto n = numbers_[static_cast<size_t>(i)];
      auto& made = all[n];
      made.score = made.probability = values.data_ptr<double>()[i];
      if (!gradients.defined()) {
        made.probability = probability(made.score, score_of(n), others[i]);
        continue;
      }
      const auto* row = gradients.data_ptr<double>() + i * gradients.size(1);
      made.gradients.assign(row, row + gradients.size(1));
    }
  }

 private:
  /// The logits of a network that generates are of the token of the score already.
  RowScore score_of(size_t number) const {
    auto score = in_.scores[variants_[number].score];
    if (generates_) score.token = -1;
    return score;
  }

  /// The logits [B, V] of the tokens of targets that are explained.
  Tensor next_token_logits() const {
    const auto hidden = in_.network.backbone->hidden(batch_);
    std::vector<int64_t> places;
    int64_t before = 0;
    for (const auto n : numbers_) {
      const auto& score = in_.scores[variants_[n].score];
      places.push_back(before + score.token);
      before += std::ssize(in_.rows[score.row].target);
    }
    const auto index = batch_.positions.index_select(0, to_tensor(places).to(hidden.device()));
    const auto states = take_rows(hidden.flatten(0, 1), index);
    const auto projected = in_.network.objectives[0]->projection(*in_.network.backbone, states);
    return linear(projected.value().rows, projected->table, projected->bias).to(at::kFloat);
  }

  /// [B, T, 1]; a target that follows its source in one row stays.
  Tensor kept() const {
    const auto length = batch_.input_ids.size(1);
    auto shares = at::ones({std::ssize(numbers_), length, 1}, at::kFloat);
    auto* to = shares.data_ptr<float>();
    for (size_t i = 0; i < numbers_.size(); ++i)
      std::ranges::copy(variants_[numbers_[i]].kept, to + static_cast<int64_t>(i) * length);
    return shares;
  }

  /// fp64 [B, T]
  Tensor of_tokens(TokenGradient gradient) const {
    const auto by_vectors = vectors_.grad().to(at::kDouble);
    if (gradient == TokenGradient::length) return by_vectors.square().sum(-1).sqrt();
    return (by_vectors * (gradient == TokenGradient::by_input ? own_ : own_ - baseline_)).sum(-1);
  }

  static double probability(double score, const RowScore& of, const Tensor& logits) {
    if (of.among == ProbabilityAmong::none) return score;
    if (of.among == ProbabilityAmong::itself) return 1 / (1 + std::exp(-score));
    const auto rivals = of.among == ProbabilityAmong::tokens ? logits.select(1, of.column)
                        : of.token < 0                       ? logits
                                                             : logits[of.token];
    return std::exp(score - at::logsumexp(rivals, {0}).item<double>());
  }

  const ScoredRows& in_;
  const std::vector<RowVariant>& variants_;
  std::span<const size_t> numbers_;
  bool generates_ = false;
  Batch batch_{};
  Tensor own_{}, baseline_{}, vectors_{};  // [B, T, E], of the tokens; [1, 1, E]; [B, T, E], that are read
};

}  // namespace

void require_embeddings(const Network& network) {
  require<ConfigError>(probes_of(network) == nullptr,
                       "the run is a probe of layers, which has no gradient by words; name a run that is fine-tuned "
                       "as a whole");
  const auto& backbone = *network.backbone;
  const bool is_shared = backbone.token_embedding().value().is_same(backbone.embedding_tables()->word.value());
  require<ConfigError>(is_shared, "encoder and decoder have token embeddings of their own, and words are explained ",
                       "for networks that share them; name another run");
}

std::vector<VariantScore> score_variants(const ScoredRows& in, const std::vector<RowVariant>& variants,
                                         TokenGradient gradient) {
  const auto setting = labelled_setting(in.network.model_config(), in.objectives);
  const InEvaluation evaluation(in.network);
  const bool is_cpu = device_of(in.network).is_cpu();
  std::vector<size_t> order(variants.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto length = [&](size_t n) { return std::ssize(variants[n].kept); };
  std::ranges::stable_sort(order, {}, length);
  std::vector<std::span<const size_t>> batches;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const auto most = (is_cpu ? tokens_at_once : tokens_of_device) / std::max<int64_t>(length(order[begin]), 1);
    const auto last = std::min(order.size(), begin + static_cast<size_t>(std::max<int64_t>(most, 1)));
    for (end = begin + 1; end < last && length(order[end]) == length(order[begin]);) ++end;
    batches.push_back(std::span<const size_t>(order).subspan(begin, end - begin));
  }
  std::vector<VariantScore> all(variants.size());
  const auto run = [&](int64_t number) {
    if (interrupted) throw Interrupted("stopped before all words were explained");
    const at::AutoGradMode with_gradients(gradient != TokenGradient::none);
    VariantBatch(in, setting, variants, batches[static_cast<size_t>(number)]).score(gradient, all);
  };
  if (is_cpu && batches.size() > 1)
    each_part(std::ssize(batches), run);
  else
    for (int64_t number = 0; number < std::ssize(batches); ++number) run(number);
  return all;
}

}  // namespace cloze
