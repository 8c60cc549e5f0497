// Rows of masked next-token prediction: held against the rows of the unmasked text.
#include "objectives/mntp/mntp.h"
#include "train/inspection/masking_checks.h"

namespace cloze {

namespace {

class ShiftedInspector final : public RowInspector {
 public:
  ShiftedInspector(const InspectedRun& run, const MntpConfig& config)
      : run_(run), config_(config), plain_(run.rows_of(unmasked())) {}

  std::vector<InspectedExample> count(const Batch& batch, const std::vector<RowDraws>& draws, uint64_t first) override {
    auto rows = labelled_rows(batch);
    const auto plain = labelled_rows(plain_.batch(first, static_cast<int64_t>(rows.size())));
    texts_.clear();
    for (size_t r = 0; r < rows.size(); ++r) {
      texts_.push_back(unmasked_text(plain[r]));
      check(rows[r], plain[r], texts_[r], draws[r], first + r);
    }
    return rows;
  }

  void add_text(InspectedExample& e, size_t row) const override {
    e.text = run_.tokenizer().decode(texts_[row]);
    for (size_t t = 0; t < e.input_ids.size(); ++t) {
      const bool marked = !is_causal(e) && is_chosen(e, t);
      e.corrupted += (t > 0 ? " " : "") + (marked ? marked_token(run_, e.input_ids[t], e.labels[t - 1])
                                                  : run_.tokenizer().readable_piece(e.input_ids[t]));
      if (e.labels[t] != -100)
        e.targets += (e.targets.empty() ? "" : " ") + run_.tokenizer().readable_piece(e.labels[t]);
    }
  }

  std::vector<ShownTokens> shown(const InspectedExample& e) const override {
    std::vector<ShownToken> read;
    for (size_t t = 0; t < e.input_ids.size(); ++t) {
      const bool marked = !is_causal(e) && is_chosen(e, t);
      read.push_back(marked ? shown_chosen(run_, e.input_ids[t], e.labels[t - 1]) : shown_token(run_, e.input_ids[t]));
      if (e.labels[t] != -100) read.back().below = run_.tokenizer().readable_piece(e.labels[t]);
    }
    return {{.title = "reads, and predicts the token after", .tokens = read}};
  }

  void conclude(Inspection& inspection) override {
    inspection.facts = masking_facts(masked_);
    inspection.facts["unknown_share"] = fraction(masked_.unknown + causal_unknown_, tokens_);
    inspection.facts["split"] = mask_split_of(masked_);
    inspection.checks.push_back(strict_check("labels other than the token after their position", wrong_labels_));
    inspection.checks.push_back(strict_check("changed tokens that are not predicted", wrong_tokens_));
    if (is_decoder()) {
      inspection.facts["causal_share"] = fraction(sequences_ - masked_.sequences, sequences_);
      inspection.checks.push_back(strict_check("steps with a wrong number of causal rows", wrong_steps()));
      inspection.checks.push_back(strict_check("causal rows that differ from the rows of clm", wrong_causal_));
      inspection.checks.push_back(strict_check("masked rows with a wrong prefix", wrong_prefixes_));
    }
    test_masking(config_, masked_, lengths_, run_.vocabulary, inspection);
    inspection.lengths = {lengths_};
  }

 private:
  bool is_decoder() const { return run_.model().is_decoder(); }
  static bool is_causal(const InspectedExample& row) { return row.prefix == 0; }
  /// The token is predicted, from the position before it.
  static bool is_chosen(const InspectedExample& row, size_t t) { return t > 0 && row.labels[t - 1] != -100; }

  /// Objectives whose rows are the same text, unmasked.
  Objectives unmasked() const {
    if (is_decoder()) return {config_.causal()};
    auto none = config_;
    none.mlm_probability = none.initial_mlm_probability = 0;
    none.dupe_factor = 0;
    Objectives objectives{none};
    for (const auto& other : run_.config.objectives)
      if (!as<MntpConfig>(other)) objectives.push_back(other);
    return objectives;
  }

  /// The text of an unmasked row; of a decoder the last token is a label only.
  std::vector<int64_t> unmasked_text(const InspectedExample& row) const {
    auto text = row.input_ids;
    if (is_decoder() && !text.empty()) text.push_back(row.labels.back());
    return text;
  }

  int64_t rows_per_step() const { return run_.steps.batch_size * run_.steps.accumulation; }

  void check(const InspectedExample& row, const InspectedExample& plain, const std::vector<int64_t>& text,
             const RowDraws& drawn, uint64_t sequence) {
    ++sequences_;
    tokens_ += static_cast<int64_t>(row.input_ids.size());
    causal_in_step_.resize(static_cast<size_t>(sequence / static_cast<uint64_t>(rows_per_step())) + 1);
    causal_in_step_.back() += is_causal(row);
    for (size_t t = 0; t < row.input_ids.size(); ++t) {
      const bool predicted = row.labels[t] != -100;
      wrong_labels_ += predicted && (t + 1 >= text.size() || text[t + 1] != row.labels[t]);
      wrong_tokens_ += !is_chosen(row, t) && row.input_ids[t] != text[t];
    }
    if (is_causal(row)) {
      wrong_causal_ += row.input_ids != plain.input_ids || row.labels != plain.labels;
      causal_unknown_ += std::count(row.input_ids.begin(), row.input_ids.end(), run_.vocabulary.special.unk);
      return;
    }
    wrong_prefixes_ += is_decoder() && row.prefix != static_cast<int64_t>(row.input_ids.size());
    count_masked(row, text, drawn, sequence);
  }

  /// The row as the masking knows it: of a decoder from the second token to the one that is a label only.
  void count_masked(const InspectedExample& row, const std::vector<int64_t>& text, const RowDraws& drawn,
                    uint64_t sequence) {
    auto ids = row.input_ids, labels = row.labels;
    if (is_decoder() && !ids.empty()) {
      ids.erase(ids.begin());
      ids.push_back(labels.back() == -100 ? text.back() : -1);
    } else if (!ids.empty()) {
      labels.insert(labels.begin(), -100);
      labels.pop_back();
    }
    Masking masking = config_;
    masking.mlm_probability = masking_rate(config_, run_.steps, sequence, run_.collator.size());
    count_row(masked_, lengths_, {ids, labels, drawn.lengths}, &masking, run_.vocabulary);
  }

  /// Of the steps that were read whole.
  int64_t wrong_steps() const {
    const auto rows = static_cast<uint64_t>(rows_per_step());
    int64_t wrong = 0;
    for (uint64_t step = 0; (step + 1) * rows <= static_cast<uint64_t>(sequences_); ++step) {
      const auto expected =
          causal_rows(config_.causal_share, (step + 1) * rows) - causal_rows(config_.causal_share, step * rows);
      wrong += causal_in_step_[step] != static_cast<int64_t>(expected);
    }
    return wrong;
  }

  const InspectedRun& run_;
  const MntpConfig& config_;
  Collator plain_;
  std::vector<std::vector<int64_t>> texts_;  // of the batch counted last
  MaskingCounts masked_;
  LengthCounts lengths_;
  std::vector<int64_t> causal_in_step_;
  int64_t sequences_ = 0, tokens_ = 0, causal_unknown_ = 0;
  int64_t wrong_labels_ = 0, wrong_tokens_ = 0, wrong_causal_ = 0, wrong_prefixes_ = 0;
};

}  // namespace

std::unique_ptr<RowInspector> make_inspector(const MntpConfig& config, const InspectedRun& run) {
  return std::make_unique<ShiftedInspector>(run, config);
}

}  // namespace cloze
