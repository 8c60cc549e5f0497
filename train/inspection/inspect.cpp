#include "train/inspection/inspect.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "models/initialization.h"
#include "objectives/network.h"
#include "objectives/rtd/replacement_numbers.h"
#include "objectives/rtd/rtd.h"
#include "run/checkpoints/init.h"
#include "train/inspection/row_inspector.h"
#include "train/stepper.h"
#include "train/training.h"

namespace cloze {

namespace {

/// The replacements of the rows of a run: of a generator that trains, those of the first step, whose weights are known;
/// of all steps the numbers by which it draws. Dropout is that of training.
class Replacements {
 public:
  /// Throws ConfigError for weights of `init.from` that do not fit.
  explicit Replacements(const InspectedRun& run);
  /// Adds them to the rows of a batch, which starts at sequence number `first`.
  void add(const Batch& batch, uint64_t first, std::vector<InspectedExample>& rows);

 private:
  RunConfig config_;
  Rng rng_;
  std::unique_ptr<Network> network_;
};

Replacements::Replacements(const InspectedRun& run)
    : config_(resolved_config(run.config, run.store)),
      rng_(rng_of(config_.train, RandomStream::dropout)),
      network_(std::make_unique<Network>(config_.model, config_.objectives)) {
  const auto& model = backbone_of(config_.model);
  initialize(collect_params(*network_), model.initializer_range, is_truncated(model.initializer),
             rng_of(config_.train, RandomStream::init));
  if (!config_.init.from.empty()) init_from(config_.init.from, *network_, run.tokenizer(), config_.init);
  network_->train();
}

void Replacements::add(const Batch& batch, uint64_t first, std::vector<InspectedExample>& rows) {
  const auto& rtd = *first_of<RtdConfig>(config_.objectives);
  const auto number = static_cast<int64_t>(first) / config_.train.batch_size;
  const int64_t step = number / config_.train.accumulation;
  if (!batch.positions.defined() || rtd.generator_only(step)) return;
  const auto key = pass_key(rng_, step, static_cast<size_t>(number % config_.train.accumulation));
  const bool generates = rtd.replace_by == ReplaceBy::generator;
  const auto numbers = replacement_numbers(batch.positions.numel(), key);
  Batch rewritten = batch;
  if (step == 0 || !generates) {
    network_->before_step(step, rng_);
    network_->objective_at(RtdConfig::kind)->rewrite(rewritten, key);
  }
  const int64_t width = batch.input_ids.size(1);
  const auto drawn = rewritten.input_ids.flatten().contiguous();
  for (int64_t i = 0; i < batch.positions.numel(); ++i) {
    const auto position = batch.positions.data_ptr<int64_t>()[i];
    auto& row = rows[static_cast<size_t>(position / width)];
    if (rewritten.replaced.defined()) row.replacements.push_back(drawn.data_ptr<int64_t>()[position]);
    if (generates) row.replacement_numbers.push_back(numbers.data_ptr<double>()[i]);
  }
}

/// What the rows of every kind have.
struct RowTotals {
  int64_t sequences = 0, tokens = 0;
  int64_t positions = 0;                 ///< tokens and padding
  int64_t example_tokens = 0, used = 0;  ///< tokens of the examples, and those of them that are in rows
  std::vector<TextPart> texts{};         ///< of a mixture
  std::vector<int64_t> of_text{};        ///< tokens of the examples of each; empty: no mixture

  explicit RowTotals(const TokenStore& store) : texts(store.parts()) {
    if (texts.size() > 1) of_text.resize(texts.size());
  }

  size_t text_index(uint64_t document) const {
    const auto next = std::ranges::upper_bound(texts, document, {}, &TextPart::first_document);
    return static_cast<size_t>(next - texts.begin()) - 1;
  }

  void add(const Batch& batch, const std::vector<RowDraws>& draws) {
    sequences += batch.input_ids.size(0);
    tokens += batch.tokens;
    positions += batch.input_ids.numel() + (batch.decoder_input_ids.defined() ? batch.decoder_input_ids.numel() : 0);
    for (const auto& drawn : draws) {
      example_tokens += drawn.example_tokens;
      used += drawn.used_tokens;
      if (!of_text.empty()) of_text[text_index(drawn.document)] += drawn.example_tokens;
    }
  }
};

void add_facts(const RowTotals& totals, const InspectedRun& run, nlohmann::json& facts) {
  const int64_t sides = run.model().is_encoder_decoder() ? 2 : 1;  // sources and targets are separate rows
  facts["sequences"] = totals.sequences;
  facts["tokens"] = totals.tokens;
  facts["padding_share"] = 1 - fraction(totals.tokens, totals.positions);
  facts["full_share"] = fraction(totals.tokens, totals.sequences * run.config.data.max_seq_length * sides);
  facts["read_share"] =
      run.collator.text_fraction() * (totals.example_tokens > 0 ? fraction(totals.used, totals.example_tokens) : 1);
  if (totals.example_tokens == 0) return;  // rows that run through a text
  for (size_t i = 0; i < totals.of_text.size(); ++i)
    facts["texts"].push_back({{"tokens", totals.texts[i].text.folder()},
                              {"share", totals.texts[i].fraction},
                              {"read_share", fraction(totals.of_text[i], totals.example_tokens)}});
}

/// Throws ConfigError for numbers that no command means.
void check_numbers(const RunConfig& config, int64_t examples, int64_t sequences, bool shows) {
  constexpr int64_t most_sequences = 1'000'000'000, most_tokens = 1 << 26;  // examples are held until all are counted
  constexpr int64_t most_on_page = 100;
  require<ConfigError>(examples >= 0 && sequences >= 1, "--examples must be at least 0, --sequences at least 1");
  require<ConfigError>(sequences <= most_sequences, "--sequences ", sequences, " are too many to count over (at most ",
                       most_sequences, "); lower it");
  const int64_t most_examples = std::max<int64_t>(1, most_tokens / config.data.max_seq_length);
  require<ConfigError>(examples <= most_examples, "--examples ", examples, " are too many to show (at most ",
                       most_examples, " of data.max_seq_length ", config.data.max_seq_length, "); lower it");
  require<ConfigError>(!shows || examples <= most_on_page, "--examples ", examples,
                       " are too many for a page (at most ", most_on_page, "); lower it");
}

/// The rows that are inspected. Static masking repeats rows, which the tests would take for independent ones.
int64_t inspected_rows(const InspectedRun& run, int64_t wanted) {
  const int64_t versions = dupe_factor_of(run.config.objectives);
  if (versions == 0) return wanted;
  const auto sequences = static_cast<int64_t>(run.collator.size());
  return wanted / sequences >= versions ? versions * sequences : wanted;
}

}  // namespace

Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences,
                             const std::function<void(Batch&)>& change, bool shows) {
  require<ConfigError>(
      !config.data.tokens.empty(),
      "data.tokens is not given; prepare text with `cloze prepare` and name its folder with --set data.tokens=FOLDER");
  check_numbers(config, examples, sequences, shows);
  const InspectedRun run(config);
  const auto inspector = make_row_inspector(run);
  std::optional<Replacements> replacements;
  if (examples > 0 && any_that(config.objectives, &ObjectiveKind::replaces_tokens)) replacements.emplace(run);
  const int64_t all = inspected_rows(run, std::max(examples, sequences)), rows = config.train.batch_size;
  Inspection inspection;
  RowTotals totals(run.store);
  std::vector<RowDraws> draws;
  for (int64_t first = 0; first < all; first += rows) {
    auto batch = run.collator.batch(static_cast<uint64_t>(first), std::min(rows, all - first), &draws);
    if (change) change(batch);
    totals.add(batch, draws);
    auto counted = inspector->count(batch, draws, static_cast<uint64_t>(first));
    const auto left = static_cast<size_t>(examples) - inspection.examples.size();
    if (replacements && left > 0) replacements->add(batch, static_cast<uint64_t>(first), counted);
    for (size_t r = 0; r < std::min(counted.size(), left); ++r) {
      inspector->add_text(counted[r], r);
      if (shows) counted[r].shown = inspector->shown(counted[r]);
      inspection.examples.push_back(std::move(counted[r]));
    }
  }
  inspector->conclude(inspection);
  add_facts(totals, run, inspection.facts);
  return inspection;
}

}  // namespace cloze
