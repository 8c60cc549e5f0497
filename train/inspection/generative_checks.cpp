#include "train/inspection/generative_checks.h"

#include <cmath>
#include <numeric>

#include "objectives/denoising/denoising.h"

namespace cloze {

namespace {

struct CausalLmChecks final : GenerativeChecks {
  void count(const SourceTargetRow& counted) override {
    const auto &ids = counted.row.input_ids, &labels = counted.row.labels;
    for (size_t i = 0; i + 1 < labels.size(); ++i) wrong += labels[i] != ids[i + 1 + (ids.size() - labels.size())];
  }
  void conclude(Inspection& inspection) override {
    inspection.lengths.resize(1);
    inspection.checks.push_back(strict_check("labels that are not the next token", wrong));
  }
  int64_t wrong = 0;
};

/// The least part of the hidden tokens that spans at random positions, which overlap, leave: (1 - exp(-r)) / r at r
/// = 1.
constexpr double kept_by_overlaps = 0.63;

struct DenoisingChecks final : GenerativeChecks {
  explicit DenoisingChecks(const DenoisingConfig& c) : config(c) {}

  void count(const SourceTargetRow& counted) override {
    hidden.hidden += counted.drawn.corrupted;
    hidden.tokens += counted.target_tokens;
    for (const auto n : counted.drawn.lengths) add_to_bin(lengths.drawn, n);
  }

  void conclude(Inspection& inspection) override {
    hidden.add_fact(inspection);
    inspection.checks.push_back(
        enough_check("hidden tokens of those wanted, where spans overlap", static_cast<double>(hidden.hidden),
                     kept_by_overlaps * config.mask_ratio * static_cast<double>(hidden.tokens)));
    if (config.mask_length == MaskLength::span_poisson) {
      lengths.expected = expected_lengths();
      inspection.checks.push_back(
          fit_check("drawn span lengths in words (chi-square)", lengths.drawn, lengths.expected));
    }
    inspection.lengths = {lengths};
  }

  /// Lewis et al. 2020, section 2.2. The number of draws depends on the lengths drawn so far, never on the next one.
  std::vector<double> expected_lengths() const {
    std::vector<double> expected;
    double left = std::accumulate(lengths.drawn.begin(), lengths.drawn.end(), 0.0),
           p = left * std::exp(-config.poisson_lambda);
    for (size_t n = 0; n < lengths.drawn.size(); p *= config.poisson_lambda / static_cast<double>(++n)) {
      expected.push_back(p);
      left -= p;
    }
    if (!expected.empty()) expected.back() += std::max(left, 0.0);  // this length or longer
    return expected;
  }

  const DenoisingConfig& config;
  HiddenShare hidden;
  LengthCounts lengths;
};

struct GapSentencesChecks final : GenerativeChecks {
  void count(const SourceTargetRow& counted) override { hidden.add(counted); }
  void conclude(Inspection& inspection) override {
    hidden.add_fact(inspection);
    inspection.lengths.resize(1);
  }
  HiddenShare hidden;
};

}  // namespace

std::unique_ptr<GenerativeChecks> make_checks(const ObjectiveKind& kind) {
  if (kind.layout()) return std::make_unique<GenerativeChecks>();
  return std::make_unique<CausalLmChecks>();
}
std::unique_ptr<GenerativeChecks> make_checks(const DenoisingConfig& config) {
  return std::make_unique<DenoisingChecks>(config);
}
std::unique_ptr<GenerativeChecks> make_checks(const GapSentencesConfig&) {
  return std::make_unique<GapSentencesChecks>();
}

}  // namespace cloze
