// Inspection of masked next-token prediction: its rows against the rows of the unmasked text.
#include "analysis/masking_checks.h"
#include "objectives/collator.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

class MntpInspector {
 public:
  explicit MntpInspector(const RunConfig& config)
      : config_(config),
        store_(config.data.tokens, "train"),
        vocabulary_(store_.tokenizer()),
        mntp_(*first_of<MntpConfig>(config.objectives)),
        steps_{config.train.batch_size, config.train.accumulation, config.train.budget.steps},
        collator_(store_, config.objectives, config.data, row_streams(config.train), "train", resolved(), steps_),
        texts_(store_, unmasked(), config.data, row_streams(config.train), "train", config_.model, steps_) {}

  Inspection run(int64_t examples, int64_t sequences, const std::function<void(Batch&)>& change) {
    found_.lengths.resize(1);
    std::vector<RowDraws> draws;
    for (int64_t first = 0; first < sequences; first += config_.train.batch_size) {
      const int64_t count = std::min(config_.train.batch_size, sequences - first);
      auto batch = collator_.batch(static_cast<uint64_t>(first), count, &draws);
      if (change) change(batch);
      const auto texts = rows_of(texts_.batch(static_cast<uint64_t>(first), count));
      const auto rows = rows_of(batch);
      positions_ += batch.input_ids.numel();
      for (size_t r = 0; r < rows.size(); ++r) {
        text_ += draws[r].example_tokens;
        used_ += draws[r].used_tokens;
        const auto sequence = static_cast<uint64_t>(first) + r;
        const auto text = text_of(texts[r]);
        check(rows[r], texts[r], text, draws[r], sequence);
        if (static_cast<int64_t>(found_.examples.size()) < examples)
          found_.examples.push_back(example_of(rows[r], text));
      }
    }
    summarize();
    return std::move(found_);
  }

 private:
  /// A row of a batch; labels: the next token at each position, -100 = not predicted.
  struct Row {
    std::vector<int64_t> ids, labels, types;
    int64_t prefix = -1, pair_label = -1;
    bool causal() const { return prefix == 0; }
  };

  bool is_decoder() const { return backbone_of(config_.model).is_decoder(); }
  /// The model with the special ids that training takes from the tokenizer.
  const ModelConfig& resolved() {
    take_special_ids(config_.model, vocabulary_.special);
    return config_.model;
  }
  /// Objectives whose rows are the same text, unmasked.
  Objectives unmasked() const {
    if (is_decoder()) return {ClmConfig{}};
    MlmConfig none;
    none.mlm_probability = 0;
    Objectives objectives{none};
    for (const auto& other : config_.objectives)
      if (!std::holds_alternative<MntpConfig>(other)) objectives.push_back(other);
    return objectives;
  }

  static std::vector<Row> rows_of(const Batch& batch) {
    const int64_t width = batch.input_ids.size(1);
    std::vector<Row> rows(static_cast<size_t>(batch.input_ids.size(0)));
    for (size_t r = 0; r < rows.size(); ++r) {
      auto& row = rows[r];
      const auto number = static_cast<int64_t>(r), begin = number * width;
      const int64_t length =
          batch.attention_mask.defined() ? batch.attention_mask[number].sum().item<int64_t>() : width;
      const auto* ids = batch.input_ids.data_ptr<int64_t>() + begin;
      row.ids.assign(ids, ids + length);
      row.labels.assign(static_cast<size_t>(length), -100);
      row.types.assign(static_cast<size_t>(length), 0);
      if (batch.token_type_ids.defined())
        std::copy_n(batch.token_type_ids.data_ptr<int64_t>() + begin, length, row.types.begin());
      if (batch.prefix.defined()) row.prefix = batch.prefix.data_ptr<int64_t>()[r];
      if (batch.pair_label.defined()) row.pair_label = batch.pair_label.data_ptr<int64_t>()[r];
    }
    for (int64_t i = 0; batch.positions.defined() && i < batch.positions.numel(); ++i) {
      const auto position = batch.positions.data_ptr<int64_t>()[i];
      auto& labels = rows[static_cast<size_t>(position / width)].labels;
      if (const auto at = static_cast<size_t>(position % width); at < labels.size())
        labels[at] = batch.labels.data_ptr<int64_t>()[i];
    }
    return rows;
  }

  /// The text of an unmasked row; of a decoder the last token is a label only.
  std::vector<int64_t> text_of(const Row& row) const {
    auto text = row.ids;
    if (is_decoder() && !text.empty()) text.push_back(row.labels.back());
    return text;
  }

  void check(const Row& row, const Row& plain, const std::vector<int64_t>& text, const RowDraws& drawn,
             uint64_t sequence) {
    ++sequences_;
    tokens_ += static_cast<int64_t>(row.ids.size());
    const auto step = sequence / static_cast<uint64_t>(steps_.batch_size * steps_.accumulation);
    causal_in_step_.resize(static_cast<size_t>(step) + 1);
    causal_in_step_.back() += row.causal();
    for (size_t t = 0; t < row.ids.size(); ++t) {
      const bool predicted = row.labels[t] != -100, chosen = t > 0 && row.labels[t - 1] != -100;
      wrong_labels_ += predicted && (t + 1 >= text.size() || text[t + 1] != row.labels[t]);
      wrong_tokens_ += !chosen && row.ids[t] != text[t];
    }
    if (row.causal()) {
      wrong_causal_ += row.ids != plain.ids || row.labels != plain.labels;
      causal_.unknown += std::count(row.ids.begin(), row.ids.end(), vocabulary_.special.unk);
      return;
    }
    wrong_prefixes_ += is_decoder() && row.prefix != static_cast<int64_t>(row.ids.size());
    // The row as the masking knows it: of a decoder from the second token to the one that is a label only.
    auto ids = row.ids, labels = row.labels;
    if (is_decoder() && !ids.empty()) {
      ids.erase(ids.begin());
      ids.push_back(labels.back() == -100 ? text.back() : -1);
    } else if (!ids.empty()) {
      labels.insert(labels.begin(), -100);
      labels.pop_back();
    }
    Masking masking = mntp_;
    masking.mlm_probability = masking_share(mntp_, steps_, sequence);
    count_row(masked_, found_.lengths[0], {ids, labels, drawn.lengths}, &masking, vocabulary_);
  }

  InspectedExample example_of(const Row& row, const std::vector<int64_t>& text) const {
    const auto& tokenizer = store_.tokenizer();
    InspectedExample e{.input_ids = row.ids, .labels = row.labels, .token_type_ids = row.types};
    e.pair_label = row.pair_label;
    e.prefix = row.prefix;
    e.text = tokenizer.decode(text);
    for (size_t t = 0; t < row.ids.size(); ++t) {
      auto token = tokenizer.piece(row.ids[t]);
      if (!row.causal() && t > 0 && row.labels[t - 1] != -100)
        token = row.ids[t] == vocabulary_.special.mask ? "{" + token + "}"
                : row.ids[t] == row.labels[t - 1]      ? "(" + token + ")"
                                                       : "<" + token + ">";
      e.corrupted += (t > 0 ? " " : "") + token;
      if (row.labels[t] != -100) e.targets += (e.targets.empty() ? "" : " ") + tokenizer.piece(row.labels[t]);
    }
    return e;
  }

  void summarize() {
    auto& facts = found_.facts;
    facts = facts_of(masked_);
    facts["sequences"] = sequences_;
    facts["tokens"] = tokens_;
    facts["padding_share"] = 1 - share(tokens_, positions_);
    facts["unknown_share"] = share(masked_.unknown + causal_.unknown, tokens_);
    facts["full_share"] = share(tokens_, sequences_ * config_.data.max_seq_length);
    facts["read_share"] = collator_.text_share() * (text_ > 0 ? share(used_, text_) : 1);
    facts["split"] = mask_split_of(masked_);
    found_.checks.push_back(strict_check("labels other than the token after their position", wrong_labels_));
    found_.checks.push_back(strict_check("changed tokens that are not predicted", wrong_tokens_));
    if (is_decoder()) {
      facts["causal_share"] = share(sequences_ - masked_.sequences, sequences_);
      const auto rows = static_cast<uint64_t>(steps_.batch_size * steps_.accumulation);
      int64_t wrong_steps = 0;  // of those that were read whole
      for (uint64_t step = 0; (step + 1) * rows <= static_cast<uint64_t>(sequences_); ++step)
        wrong_steps +=
            causal_in_step_[step] != static_cast<int64_t>(causal_rows(mntp_.causal_share, (step + 1) * rows) -
                                                          causal_rows(mntp_.causal_share, step * rows));
      found_.checks.push_back(strict_check("steps with a wrong number of causal rows", wrong_steps));
      found_.checks.push_back(strict_check("causal rows that differ from the rows of clm", wrong_causal_));
      found_.checks.push_back(strict_check("masked rows with a wrong prefix", wrong_prefixes_));
    }
    test_masking(mntp_, masked_, found_.lengths[0], vocabulary_, found_);
  }

  RunConfig config_;
  TokenStore store_;
  Vocabulary vocabulary_;
  MntpConfig mntp_;
  StepRows steps_;
  Collator collator_, texts_;
  MaskingCounts masked_, causal_;
  std::vector<int64_t> causal_in_step_;
  int64_t sequences_ = 0, tokens_ = 0, positions_ = 0;
  int64_t wrong_labels_ = 0, wrong_tokens_ = 0, wrong_causal_ = 0, wrong_prefixes_ = 0;
  int64_t text_ = 0, used_ = 0;  // tokens of the examples, and those used in rows
  Inspection found_;
};

}  // namespace

Inspection inspect_mntp(const RunConfig& config, int64_t examples, int64_t sequences,
                        const std::function<void(Batch&)>& change) {
  return MntpInspector(config).run(examples, sequences, change);
}

}  // namespace cloze
