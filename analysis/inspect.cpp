#include "analysis/inspect.h"

#include <algorithm>
#include <optional>

#include "analysis/replacements.h"
#include "analysis/row_inspector.h"

namespace cloze {

namespace {

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

  size_t text_of(uint64_t document) const {
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
      if (!of_text.empty()) of_text[text_of(drawn.document)] += drawn.example_tokens;
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
                              {"share", totals.texts[i].share},
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
