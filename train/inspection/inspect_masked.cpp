// Rows of mlm, nsp, sop, rtd and sbo: counts for each masking of a mixture, and for segment pairs.
#include <algorithm>

#include "objectives/masking_config.h"
#include "train/inspection/masking_checks.h"

namespace cloze {

namespace {

class MaskedInspector final : public RowInspector {
 public:
  explicit MaskedInspector(const InspectedRun& run)
      : run_(run),
        maskings_(maskings_of(run.config.objectives)),
        counts_(std::max<size_t>(1, maskings_.size())),
        lengths_(counts_.size()) {
    for (size_t m = 0; mixes() && m < maskings_.size(); ++m) lengths_[m].name = concat("mixture.", m);
  }

  std::vector<InspectedExample> count(const Batch& batch, const std::vector<RowDraws>& draws, uint64_t first) override {
    auto rows = labelled_rows(batch);
    forced_pairs_ += batch.forced_pairs;
    for (size_t r = 0; r < rows.size(); ++r) {
      count(rows[r], draws[r], first + r);
      if (mixes()) rows[r].masking = static_cast<int64_t>(draws[r].masking);
    }
    return rows;
  }

  void add_text(InspectedExample& example, size_t) const override { add_masked_text(run_, example); }

  std::vector<ShownTokens> shown(const InspectedExample& e) const override {
    std::vector<ShownToken> read, classified;
    size_t predictions = 0;
    for (size_t i = 0; i < e.input_ids.size(); ++i) {
      const auto id = e.input_ids[i], label = e.labels[i];
      auto& token = read.emplace_back(label == -100 ? shown_token(run_, id) : shown_chosen(run_, id, label));
      if (label != -100) token.below = run_.tokenizer().readable_piece(label);
      if (e.replacements.empty()) continue;
      classified.push_back(label == -100 ? token : sampled(e.replacements[predictions++], label));
    }
    if (!classified.empty()) {
      const bool generates = !e.replacement_numbers.empty();
      return {{.title = generates ? "generator reads" : "chosen tokens", .tokens = read},
              {.title = generates ? "discriminator reads, drawn by the first weights" : "discriminator reads",
               .tokens = classified}};
    }
    if (e.pair_label < 0) return {{.title = "reads", .tokens = read}};
    const auto second = std::find(e.token_type_ids.begin(), e.token_type_ids.end(), 1) - e.token_type_ids.begin();
    return {{.title = "reads, segment A", .tokens = {read.begin(), read.begin() + second}},
            {.title = "segment B", .tokens = {read.begin() + second, read.end()}}};
  }

  void conclude(Inspection& inspection) override {
    MaskingCounts all;
    for (const auto& c : counts_) all += c;
    inspection.facts = masking_facts(all);
    inspection.facts["unknown_share"] = fraction(all.unknown, all.tokens);
    if (pairs_ > 0) check_pairs(inspection);
    if (!maskings_.empty()) inspection.facts["split"] = mask_split_of(all);
    for (size_t i = 0; i < maskings_.size(); ++i)
      test_masking(maskings_[i], counts_[i], lengths_[i], run_.vocabulary, inspection);
    if (mixes()) check_mixture(all.sequences, inspection);
    inspection.lengths = std::move(lengths_);
  }

 private:
  bool mixes() const { return maskings_.size() > 1; }

  /// A sample that replaces a masked token.
  ShownToken sampled(int64_t id, int64_t label) const {
    const bool replaced = id != label;
    return {.piece = run_.tokenizer().readable_piece(id),
            .role = replaced ? TokenRole::replaced : TokenRole::restored,
            .below = replaced ? "replaced" : "original"};
  }

  void count(const InspectedExample& row, const RowDraws& drawn, uint64_t sequence) {
    auto& counts = counts_[drawn.masking];
    auto& lengths = lengths_[drawn.masking];
    const MaskedRow masked{row.input_ids, row.labels, drawn.lengths};
    if (row.pair_label >= 0) ++pairs_, label_1_ += row.pair_label;
    if (maskings_.empty()) {
      count_row(counts, lengths, masked, nullptr, run_.vocabulary);
      return;
    }
    auto masking = maskings_[drawn.masking];
    masking.mlm_probability = masking_rate(masking, run_.steps, sequence, run_.collator.size());
    count_row(counts, lengths, masked, &masking, run_.vocabulary);
  }

  /// A share of an epoch's pairs has B from another document; swapped pairs are drawn among the others.
  void check_pairs(Inspection& inspection) const {
    const auto rule = segment_pair_rule(run_.config.objectives, run_.config.data.packing);
    const double swapped = rule ? rule->swap_prob : 0, random = run_.collator.random_next_rate();
    const auto rows = static_cast<double>(pairs_), forced = static_cast<double>(forced_pairs_), drawn = rows - forced;
    inspection.facts["pair_label_1_share"] = fraction(label_1_, pairs_);
    inspection.checks.push_back(
        sum_check("pairs with text of another document", forced, rows * random, rows * random * (1 - random)));
    if (swapped > 0)
      inspection.checks.push_back(sum_check("pairs with label 1", static_cast<double>(label_1_),
                                            forced + drawn * swapped, drawn * swapped * (1 - swapped)));
  }

  void check_mixture(int64_t sequences, Inspection& inspection) const {
    std::vector<double> rows, expected;
    for (size_t i = 0; i < maskings_.size(); ++i) {
      rows.push_back(static_cast<double>(counts_[i].sequences));
      expected.push_back(maskings_[i].share * static_cast<double>(sequences));
      auto facts = masking_facts(counts_[i]);
      facts["share"] = fraction(counts_[i].sequences, sequences);
      facts["split"] = mask_split_of(counts_[i]);
      inspection.facts["mixture"].push_back(facts);
    }
    inspection.checks.push_back(fit_check("rows per masking (chi-square)", rows, expected));
  }

  const InspectedRun& run_;
  std::vector<MaskingPart> maskings_;
  std::vector<MaskingCounts> counts_;  // of each masking, or of all rows
  std::vector<LengthCounts> lengths_;  // the same
  int64_t pairs_ = 0, label_1_ = 0, forced_pairs_ = 0;
};

}  // namespace

std::unique_ptr<RowInspector> make_masked_inspector(const InspectedRun& run) {
  return std::make_unique<MaskedInspector>(run);
}

}  // namespace cloze
