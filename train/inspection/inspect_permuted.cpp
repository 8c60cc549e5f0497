// Rows of plm.
#include <algorithm>

#include "objectives/plm/plm.h"
#include "train/inspection/masking_checks.h"

namespace cloze {

namespace {

class PermutedInspector final : public RowInspector {
 public:
  PermutedInspector(const InspectedRun& run, const PlmConfig& config) : run_(run), config_(config) {}

  std::vector<InspectedExample> count(const Batch& batch, const std::vector<RowDraws>& draws, uint64_t) override {
    auto rows = labelled_rows(batch);
    for (size_t r = 0; r < rows.size(); ++r) {
      count(rows[r], draws[r]);
      rows[r].query_rank = draws[r].query_rank;
      rows[r].key_rank = draws[r].key_rank;
      rows[r].backward = batch.backward.defined() && batch.backward.data_ptr<bool>()[r];
      rows[r].continues = batch.continues;
    }
    return rows;
  }

  void add_text(InspectedExample& example, size_t) const override { add_masked_text(run_, example); }

  std::vector<ShownTokens> shown(const InspectedExample& e) const override {
    const auto order = prediction_order(e);
    std::vector<ShownToken> read, predicted;
    for (const auto id : e.input_ids) read.push_back(shown_token(run_, id));
    for (size_t rank = 0; rank < order.size(); ++rank) {
      auto& token = read[order[rank]];
      token.role = TokenRole::ordered;
      token.below = std::to_string(rank + 1);
      predicted.push_back(token);
    }
    return {{.title = "reads", .tokens = read}, {.title = "predicts, in this order", .tokens = predicted}};
  }

  void conclude(Inspection& inspection) override {
    inspection.facts = masking_facts(counts_);
    inspection.facts["unknown_share"] = fraction(counts_.unknown, counts_.tokens);
    inspection.checks.push_back(strict_check(wrong_number_of_predictions, counts_.wrong_counts));
    lengths_.unit = "tokens";
    fit_lengths(lengths_, ngram_lengths(config_.max_ngram), "drawn n-gram lengths in tokens (chi-square)", inspection);
    inspection.lengths = {lengths_};
  }

 private:
  void count(const InspectedExample& row, const RowDraws& drawn) {
    const auto& special = run_.vocabulary.special;
    const int64_t predicted =
        count_row(counts_, lengths_, {row.input_ids, row.labels, drawn.lengths, true}, nullptr, run_.vocabulary);
    const auto length = static_cast<int64_t>(row.input_ids.size());
    const int64_t wanted = std::min(length, wanted_predictions(config_, length));
    // [SEP] and [CLS] may be chosen, but are not predicted.
    const auto unpredicted = std::count_if(row.input_ids.begin(), row.input_ids.end(),
                                           [&](int64_t id) { return id == special.sep || id == special.cls; });
    counts_.wrong_counts += predicted > wanted || predicted < wanted - unpredicted;
  }

  const InspectedRun& run_;
  const PlmConfig& config_;
  MaskingCounts counts_;
  LengthCounts lengths_;
};

}  // namespace

std::unique_ptr<RowInspector> make_inspector(const PlmConfig& config, const InspectedRun& run) {
  return std::make_unique<PermutedInspector>(run, config);
}

}  // namespace cloze
