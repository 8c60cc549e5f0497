// Rows of generative objectives: sources and targets.
#include "train/inspection/generative_checks.h"

namespace cloze {

namespace {

class GenerativeInspector final : public RowInspector {
 public:
  GenerativeInspector(std::unique_ptr<GenerativeChecks> checks, const InspectedRun& run)
      : run_(run), two_(run.model().is_encoder_decoder()), checks_(std::move(checks)) {}

  std::vector<InspectedExample> count(const Batch& batch, const std::vector<RowDraws>& draws, uint64_t) override {
    auto rows = rows_of(batch);
    for (size_t r = 0; r < rows.size(); ++r) count(rows[r], draws[r]);
    return rows;
  }

  void add_text(InspectedExample& e, size_t) const override {
    e.corrupted = token_text(e.input_ids);
    e.targets = token_text(e.labels);
    e.text = run_.tokenizer().decode(e.labels);
  }

  std::vector<ShownTokens> shown(const InspectedExample& e) const override {
    auto read = tokens_of(e.input_ids);
    if (two_) {
      auto generated = tokens_of(e.decoder_input_ids);
      predict_below(e, generated, 0);
      return {{.title = "encoder reads", .tokens = read},
              {.title = "decoder reads, and predicts", .tokens = generated}};
    }
    predict_below(e, read, read.size() - std::min(read.size(), e.labels.size()));
    return {{.title = "reads, and predicts", .tokens = read}};
  }

  void conclude(Inspection& inspection) override {
    inspection.facts = {{"unknown_share", fraction(unknown_, source_)},
                        {"source_length", fraction(source_, sequences_)},
                        {"target_length", fraction(target_, sequences_)},
                        {"masks_in_a_source", fraction(masks_, sequences_)},
                        {"as_long_as_allowed_share", fraction(long_, sequences_)}};
    if (two_) inspection.checks.push_back(strict_check("sources and targets without an end token", unended_));
    checks_->conclude(inspection);
  }

 private:
  bool is_mask(int64_t id) const {
    const auto& special = run_.vocabulary.special;
    return id == special.mask || id == special.sentence_mask;
  }
  bool is_sentinel(int64_t id) const { return run_.tokenizer().piece(id).rfind("<extra_id_", 0) == 0; }

  std::string token_text(const std::vector<int64_t>& ids) const {
    std::string text;
    for (const auto id : ids) {
      const auto token = run_.tokenizer().readable_piece(id);
      text += (text.empty() ? "" : " ") + (is_sentinel(id) || is_mask(id) ? "{" + token + "}" : token);
    }
    return text;
  }

  std::vector<ShownToken> tokens_of(const std::vector<int64_t>& ids) const {
    std::vector<ShownToken> tokens;
    for (const auto id : ids) {
      auto& token = tokens.emplace_back(shown_token(run_, id));
      if (is_sentinel(id) || is_mask(id)) token.role = TokenRole::placeholder;
    }
    return tokens;
  }

  /// Puts the labels below the tokens from position `first` on.
  void predict_below(const InspectedExample& e, std::vector<ShownToken>& tokens, size_t first) const {
    for (size_t i = 0; i < e.labels.size() && first + i < tokens.size(); ++i)
      tokens[first + i].below = run_.tokenizer().readable_piece(e.labels[i]);
  }

  /// The rows of a batch; labels: the targets.
  std::vector<InspectedExample> rows_of(const Batch& batch) const {
    const auto& decoder_ids = two_ ? batch.decoder_input_ids : batch.input_ids;
    const int64_t width = batch.input_ids.size(1), decoder_width = decoder_ids.size(1);
    std::vector<InspectedExample> rows(static_cast<size_t>(batch.input_ids.size(0)));
    for (int64_t i = 0; i < batch.positions.numel(); ++i)
      rows[static_cast<size_t>(batch.positions.data_ptr<int64_t>()[i] / decoder_width)].labels.push_back(
          batch.labels.data_ptr<int64_t>()[i]);
    for (int64_t r = 0; r < batch.input_ids.size(0); ++r) {
      auto& row = rows[static_cast<size_t>(r)];
      const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[r].sum().item<int64_t>() : width;
      const auto* ids = batch.input_ids.data_ptr<int64_t>() + r * width;
      row.input_ids.assign(ids, ids + length);
      if (!two_) continue;
      const auto* begin = decoder_ids.data_ptr<int64_t>() + r * decoder_width;
      row.decoder_input_ids.assign(begin, begin + row.labels.size());
    }
    return rows;
  }

  /// Lengths of the runs between sentinels in ids[begin, end).
  std::vector<int64_t> runs_of(const std::vector<int64_t>& ids, size_t begin, size_t end) const {
    std::vector<int64_t> runs{0};
    for (size_t i = begin; i < end; ++i) {
      if (is_sentinel(ids[i]))
        runs.push_back(0);
      else
        ++runs.back();
    }
    std::erase(runs, 0);
    return runs;
  }

  /// A decoder without encoder has source and target in one sequence.
  size_t source_length(const InspectedExample& e) const {
    const size_t inputs = e.input_ids.size();
    return two_ ? inputs : inputs + 1 - std::min(e.labels.size(), inputs + 1);
  }

  void count(const InspectedExample& e, const RowDraws& drawn) {
    const auto source = e.input_ids.size(), target = e.labels.size();
    const auto max_length = static_cast<size_t>(run_.config.data.max_seq_length);
    const auto end = run_.vocabulary.special.sep;
    ++sequences_;
    source_ += static_cast<int64_t>(source);
    target_ += static_cast<int64_t>(target);
    long_ += source >= max_length || target >= max_length;
    if (two_) unended_ += e.labels.empty() || e.labels.back() != end || e.input_ids.back() != end;
    const auto counted = counted_row(e, drawn);
    masks_ += counted.masks;
    checks_->count(counted);
  }

  SourceTargetRow counted_row(const InspectedExample& e, const RowDraws& drawn) {
    const size_t begin = run_.model().prepend_bos ? 1 : 0;  // text starts after the begin token
    const size_t length = source_length(e), last = two_ || checks_->source_ends() ? 1 : 0;
    SourceTargetRow counted{.row = e, .drawn = drawn, .source_length = static_cast<int64_t>(length)};
    for (size_t i = begin; i + last < length; ++i) {
      const auto id = e.input_ids[i];
      ++(is_sentinel(id) ? counted.source_sentinels : counted.kept);
      counted.masks += is_mask(id);
      unknown_ += id == run_.vocabulary.special.unk;
    }
    for (size_t i = begin; i + 1 < e.labels.size(); ++i)
      ++(is_sentinel(e.labels[i]) ? counted.target_sentinels : counted.target_tokens);
    if (counted.target_sentinels > 0) counted.masked_runs = runs_of(e.labels, begin, e.labels.size() - 1);
    counted.kept_runs = runs_of(e.input_ids, begin, std::max<size_t>(length, 1) - 1);
    return counted;
  }

  const InspectedRun& run_;
  bool two_;  // an encoder and a decoder
  std::unique_ptr<GenerativeChecks> checks_;
  int64_t sequences_ = 0, source_ = 0, target_ = 0, unknown_ = 0, masks_ = 0;
  int64_t long_ = 0, unended_ = 0;
};

}  // namespace

std::unique_ptr<RowInspector> make_generative_inspector(std::unique_ptr<GenerativeChecks> checks,
                                                        const InspectedRun& run) {
  return std::make_unique<GenerativeInspector>(std::move(checks), run);
}

}  // namespace cloze
