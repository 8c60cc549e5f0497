#include "suites/babylm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "scoring/encoded_passage.h"
#include "suites/statistics.h"

namespace cloze {

namespace {

std::optional<BabylmBackend> backend_of(const ObjectiveConfig& objective, bool encoder_decoder) {
  if (encoder_decoder && as_kind(objective).is_generative()) return BabylmBackend::enc_dec_prefix;
  for (const auto backend : {BabylmBackend::mlm, BabylmBackend::mntp, BabylmBackend::causal})
    if (trains_for(objective, backend)) return backend;
  return {};
}

}  // namespace

bool trains_for(const ObjectiveConfig& objective, BabylmBackend backend) {
  const auto& kind = as_kind(objective);
  switch (backend) {
    case BabylmBackend::mlm:
      return kind.fills_masks() && !kind.next_token();
    case BabylmBackend::mntp:
      return kind.predicts_shifted();
    case BabylmBackend::causal:
      return kind.is_generative() && !kind.layout();
    case BabylmBackend::enc_dec_mask:
    case BabylmBackend::enc_dec_prefix:
      return kind.is_generative() && kind.layout();
  }
  return false;
}

std::optional<BabylmBackend> babylm_backend(const RunConfig& config) {
  const bool encoder_decoder = backbone_of(config.model).is_encoder_decoder();
  for (const auto& objective : config.objectives)
    if (const auto found = backend_of(objective, encoder_decoder)) return found;
  return {};
}

Tokenizer::Frame babylm_frame(const LoadedRun& run) {
  const auto& model = backbone_of(run.config.model);
  return run.tokenizer.frame(
      TextReader{.kind = kind_of(run.config.model), .end = model.is_generative() ? model.eos_token_id : -1});
}

float babylm_sum(std::span<const float> logs) {
  return at::tensor(std::vector<float>(logs.begin(), logs.end()), at::kFloat).sum().item<float>();
}

float babylm_sum(const Passage& passage, const PassageScore& score) {
  std::vector<float> logs;
  for (const auto& token : score.tokens)
    if (counts_from(passage.left.size(), token.begin, token.end))
      logs.push_back(static_cast<float>(token.log_probability));
  return babylm_sum(logs);
}

size_t babylm_choice(std::span<const float> sums) {
  size_t best = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (std::isnan(sums[i])) return i;
    if (sums[i] > sums[best]) best = i;
  }
  return best;
}

float babylm_first_probability(std::span<const float> sums) {
  const auto row = at::tensor(std::vector<float>(sums.begin(), sums.end()), at::kFloat);
  return at::softmax(row, 0)[0].item<float>();
}

double babylm_spearman(const std::vector<double>& a, const std::vector<double>& b) {
  require<DataError>(a.size() == b.size(), "a correlation of ", a.size(), " values with ", b.size());
  const auto is_nan = [](double x) { return std::isnan(x); };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (a.size() < 2 || std::any_of(a.begin(), a.end(), is_nan) || std::any_of(b.begin(), b.end(), is_nan)) return nan;
  // Ranks are multiples of a half, so that these sums are exact in any order; the last steps are those of numpy's
  // corrcoef.
  const auto x = ranks(a), y = ranks(b);
  const auto n = static_cast<double>(a.size());
  const double mean = 0.5 * (n + 1);
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return nan;
  const double fact = 1 / (n - 1);
  return std::clamp(xy * fact / std::sqrt(yy * fact) / std::sqrt(xx * fact), -1.0, 1.0);
}

}  // namespace cloze
