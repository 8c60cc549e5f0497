#include <numeric>

#include "train/inspection/generative_checks.h"
#include "objectives/span_corruption/span_corruption.h"
#include "objectives/span_corruption/noise.h"

namespace cloze {

namespace {

/// The runs of texts, one run of each text tested, in rotation, because the runs of a text are dependent.
void count_runs(LengthCounts& lengths, const std::vector<int64_t>& runs, size_t text) {
  for (const auto n : runs) add_to_bin(lengths.runs, n);
  if (runs.size() < 2) return;
  add_to_bin(lengths.drawn, runs[text % runs.size()]);
  const auto p = part_lengths(std::accumulate(runs.begin(), runs.end(), int64_t{0}), static_cast<int64_t>(runs.size()));
  lengths.expected.resize(std::max(lengths.expected.size(), p.size()));
  for (size_t n = 0; n < p.size(); ++n) lengths.expected[n] += p[n];
}

/// Spans: all partitions of a text into the rounded numbers of masked tokens and spans are equally likely.
struct SpanChecks final : GenerativeChecks {
  explicit SpanChecks(const SpanCorruptionConfig& c) : config(c) {}

  void count(const SourceTargetRow& counted) override {
    ++texts;
    hidden.add(counted);
    count_runs(masked, counted.masked_runs, texts);
    count_runs(kept, counted.kept_runs, texts);
    const int64_t tokens = counted.kept + counted.target_tokens;
    if (tokens < 2) return;
    const auto noise = noise_count(tokens, config.noise_density, config.mean_noise_span_length);
    wrong += counted.target_tokens != noise.tokens || counted.source_sentinels != noise.spans ||
             counted.target_sentinels != noise.spans;
  }

  void conclude(Inspection& inspection) override {
    hidden.add_fact(inspection);
    inspection.checks.push_back(strict_check("texts with a wrong number of masked tokens or spans", wrong));
    for (const auto* lengths : {&masked, &kept})
      inspection.checks.push_back(
          fit_check(concat(lengths->name, " span lengths in tokens, one span per text (chi-square)"), lengths->drawn,
                    lengths->expected));
    inspection.lengths = {masked, kept};
  }

  const SpanCorruptionConfig& config;
  HiddenShare hidden;
  LengthCounts masked{.name = "masked", .unit = "tokens"}, kept{.name = "kept", .unit = "tokens"};
  size_t texts = 0;
  int64_t wrong = 0;
};

/// Single tokens, moved to the target.
struct TokenChecks final : GenerativeChecks {
  explicit TokenChecks(double density) : fraction_of_tokens(density) {}

  void count(const SourceTargetRow& counted) override {
    hidden.add(counted);
    for (const auto n : counted.masked_runs) add_to_bin(lengths.runs, n);
    tokens += counted.kept + counted.target_tokens;
    corrupted += counted.target_tokens;
  }

  void conclude(Inspection& inspection) override {
    hidden.add_fact(inspection);
    const double p = fraction_of_tokens, all = static_cast<double>(tokens);
    inspection.checks.push_back(
        sum_check("corrupted tokens", static_cast<double>(corrupted), p * all, p * (1 - p) * all));
    inspection.lengths = {lengths};
  }

  double fraction_of_tokens;
  HiddenShare hidden;
  LengthCounts lengths;
  int64_t tokens = 0, corrupted = 0;
};

/// Sources as long as their targets, with masks for a share of the tokens.
struct WholeTextChecks final : GenerativeChecks {
  WholeTextChecks(std::string text, double masked) : name(std::move(text)), fraction_of_masks(masked) {}

  void count(const SourceTargetRow& counted) override {
    tokens += counted.target_tokens;
    masks += counted.masks;
    wrong += counted.source_length != static_cast<int64_t>(counted.row.labels.size());
  }

  void conclude(Inspection& inspection) override {
    const double p = fraction_of_masks, all = static_cast<double>(tokens);
    inspection.checks.push_back(strict_check("sources whose length differs from their targets", wrong));
    if (!name.empty())
      inspection.checks.push_back(sum_check(name, static_cast<double>(masks), p * all, p * (1 - p) * all));
    inspection.lengths.resize(1);
  }

  std::string name;  // of the test of the masks; empty: there are none
  double fraction_of_masks;
  int64_t tokens = 0, masks = 0, wrong = 0;
};

/// The length of the prefix is uniform on 1 ... n - 1.
struct PrefixChecks final : GenerativeChecks {
  bool source_ends() const override { return false; }

  void count(const SourceTargetRow& counted) override {
    const int64_t tokens = counted.kept + counted.target_tokens;
    if (tokens < 3) return;
    const auto n = static_cast<double>(tokens);
    prefixes += counted.kept;
    mean += n / 2;
    variance += ((n - 1) * (n - 1) - 1) / 12;
  }

  void conclude(Inspection& inspection) override {
    if (variance > 0)
      inspection.checks.push_back(sum_check("prefix tokens", static_cast<double>(prefixes), mean, variance));
    inspection.lengths.resize(1);
  }

  int64_t prefixes = 0;
  double mean = 0, variance = 0;
};

}  // namespace

std::unique_ptr<GenerativeChecks> make_checks(const SpanCorruptionConfig& config) {
  const double density = config.noise_density;
  switch (config.corruption) {
    case Corruption::spans:
      return std::make_unique<SpanChecks>(config);
    case Corruption::iid:
    case Corruption::drop:
      return std::make_unique<TokenChecks>(density);
    case Corruption::mass:
      return std::make_unique<WholeTextChecks>("corrupted tokens", density);
    case Corruption::bert:
      return std::make_unique<WholeTextChecks>("masked tokens", 0.9 * density);  // 10 % become random tokens
    case Corruption::deshuffle:
      return std::make_unique<WholeTextChecks>("", 0);
    case Corruption::prefix_lm:
      return std::make_unique<PrefixChecks>();
  }
  return std::make_unique<GenerativeChecks>();
}

}  // namespace cloze
