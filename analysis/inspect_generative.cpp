// Effects of generative objectives on real text.
#include <cmath>
#include <numeric>

#include "objectives/collator.h"
#include "objectives/generative_rows.h"
#include "analysis/inspect.h"

namespace cloze {

namespace {

class GenerativeInspector {
 public:
  explicit GenerativeInspector(const RunConfig& config)
      : config_(config),
        model_(backbone_of(config.model)),
        store_(config.data.tokens, "train"),
        vocabulary_(store_.tokenizer()),
        objective_(*generative_of(config.objectives)),
        collator_(store_, config.objectives, config.data, row_streams(config.train), "train", resolved(),
                  {config.train.batch_size, config.train.accumulation, config.train.budget.steps}) {}

  Inspection run(int64_t examples, int64_t sequences) {
    const int64_t rows = config_.train.batch_size;  // batches as in training, so that padding is the same
    if (spans_ && spans_->corruption == Corruption::spans)
      found_.lengths = {{.name = "masked", .unit = "tokens"}, {.name = "kept", .unit = "tokens"}};
    else
      found_.lengths.resize(1);
    std::vector<RowDraws> draws;
    for (int64_t first = 0; first < sequences; first += rows) {
      const auto batch = collator_.batch(static_cast<uint64_t>(first), std::min(rows, sequences - first), &draws);
      const auto& decoder_ids = model_.is_encoder_decoder() ? batch.decoder_input_ids : batch.input_ids;
      positions_ += batch.input_ids.numel() + (model_.is_encoder_decoder() ? decoder_ids.numel() : 0),
          tokens_ += batch.tokens;
      std::vector<std::vector<int64_t>> labels(static_cast<size_t>(decoder_ids.size(0)));
      for (int64_t i = 0; i < batch.positions.numel(); ++i)
        labels[static_cast<size_t>(batch.positions.data_ptr<int64_t>()[i] / decoder_ids.size(1))].push_back(
            batch.labels.data_ptr<int64_t>()[i]);
      for (int64_t row = 0; row < batch.input_ids.size(0); ++row) {
        const int64_t length =
            batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : batch.input_ids.size(1);
        InspectedExample e;
        const auto* ids = batch.input_ids.data_ptr<int64_t>() + row * batch.input_ids.size(1);
        e.input_ids.assign(ids, ids + length);
        e.labels = labels[static_cast<size_t>(row)];
        if (model_.is_encoder_decoder()) {
          const auto* begin = decoder_ids.data_ptr<int64_t>() + row * decoder_ids.size(1);
          e.decoder_input_ids.assign(begin, begin + e.labels.size());
        }
        count(e);
        corrupted_ += draws[static_cast<size_t>(row)].corrupted;
        example_tokens_ += draws[static_cast<size_t>(row)].example_tokens;
        used_tokens_ += draws[static_cast<size_t>(row)].used_tokens;
        for (const auto n : draws[static_cast<size_t>(row)].lengths) add_to_bin(found_.lengths[0].drawn, n);
        if (static_cast<int64_t>(found_.examples.size()) >= examples) continue;
        e.corrupted = token_text(e.input_ids), e.targets = token_text(e.labels),
        e.text = store_.tokenizer().decode(e.labels);
        found_.examples.push_back(std::move(e));
      }
    }
    summarize();
    return std::move(found_);
  }

 private:
  /// The model config, with the special ids of the tokenizer as in training.
  const ModelConfig& resolved() {
    take_special_ids(config_.model, vocabulary_.special);
    model_ = backbone_of(config_.model);
    return config_.model;
  }
  bool is_mask(int64_t id) const { return id == vocabulary_.special.mask || id == vocabulary_.special.sentence_mask; }
  bool is_sentinel(int64_t id) const { return store_.tokenizer().piece(id).rfind("<extra_id_", 0) == 0; }

  std::string token_text(const std::vector<int64_t>& ids) const {
    std::string text;
    for (const auto id : ids)
      text += (text.empty() ? "" : " ") + (is_sentinel(id) || is_mask(id) ? "{" + store_.tokenizer().piece(id) + "}"
                                                                          : store_.tokenizer().piece(id));
    return text;
  }

  /// True if the objective corrupts a share of the tokens, instead of reordering or splitting the text.
  bool has_corrupted_share() const {
    if (spans_)
      return spans_->corruption == Corruption::spans || spans_->corruption == Corruption::iid ||
             spans_->corruption == Corruption::drop;
    return std::holds_alternative<DenoisingConfig>(objective_) ||
           std::holds_alternative<GapSentencesConfig>(objective_);
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

  /// Adds the runs of one text. Only one of them is tested, in rotation, because the runs of a text are dependent.
  void count_runs(LengthCounts& lengths, const std::vector<int64_t>& runs) {
    for (const auto n : runs) add_to_bin(lengths.runs, n);
    if (runs.size() < 2) return;
    add_to_bin(lengths.drawn, runs[static_cast<size_t>(sequences_) % runs.size()]);
    const auto p =
        part_lengths(std::accumulate(runs.begin(), runs.end(), int64_t{0}), static_cast<int64_t>(runs.size()));
    lengths.expected.resize(std::max(lengths.expected.size(), p.size()));
    for (size_t n = 0; n < p.size(); ++n) lengths.expected[n] += p[n];
  }

  void count(const InspectedExample& e) {
    ++sequences_;
    source_ += static_cast<int64_t>(e.input_ids.size()), target_ += static_cast<int64_t>(e.labels.size());
    int64_t source_sentinels = 0, kept = 0, target_tokens = 0, target_sentinels = 0, masks = 0;
    const size_t begin = model_.prepend_bos ? 1 : 0;  // text starts after the start token
    // A decoder without encoder has source and target in one sequence.
    const size_t source_length = model_.is_encoder_decoder()
                                     ? e.input_ids.size()
                                     : e.input_ids.size() + 1 - std::min(e.labels.size(), e.input_ids.size() + 1);
    const bool ends = model_.is_encoder_decoder() || !spans_ ||
                      spans_->corruption != Corruption::prefix_lm;  // a prefix has no end token
    for (size_t i = begin; i + (ends ? 1 : 0) < source_length; ++i) {
      const auto id = e.input_ids[i];
      source_sentinels += is_sentinel(id), masks += is_mask(id), kept += !is_sentinel(id);
      unknown_ += id == vocabulary_.special.unk;
    }
    for (size_t i = begin; i + 1 < e.labels.size(); ++i)
      ++(is_sentinel(e.labels[i]) ? target_sentinels : target_tokens);
    const auto masked = target_sentinels > 0 ? runs_of(e.labels, begin, e.labels.size() - 1) : std::vector<int64_t>();
    if (found_.lengths.size() == 2)
      count_runs(found_.lengths[0], masked),
          count_runs(found_.lengths[1], runs_of(e.input_ids, begin, source_length - 1));
    else
      for (const auto n : masked) add_to_bin(found_.lengths[0].runs, n);
    masks_ += masks;
    if (std::holds_alternative<DenoisingConfig>(objective_))
      text_ += target_tokens;
    else if (has_corrupted_share())
      text_ += kept - masks + target_tokens,
          corrupted_ += target_tokens;  // the target has the tokens missing from the source
    long_ += static_cast<int64_t>(e.input_ids.size()) >= config_.data.max_seq_length ||
             static_cast<int64_t>(e.labels.size()) >= config_.data.max_seq_length;
    if (model_.is_encoder_decoder())
      unended_ += e.labels.empty() || e.labels.back() != vocabulary_.special.sep ||
                  e.input_ids.back() != vocabulary_.special.sep;
    if (std::holds_alternative<ClmConfig>(objective_)) {
      for (size_t i = 0; i + 1 < e.labels.size(); ++i)
        wrong_ += e.labels[i] != e.input_ids[i + 1 + (e.input_ids.size() - e.labels.size())];
      return;
    }
    if (spans_) {
      const int64_t whole = kept + target_tokens;
      if (spans_->corruption == Corruption::spans && whole > 1) {
        const auto noise =
            std::clamp<int64_t>(std::llrint(static_cast<double>(whole) * spans_->noise_density), 1, whole - 1);
        const auto runs =
            std::min({std::max<int64_t>(1, std::llrint(static_cast<double>(noise) / spans_->mean_noise_span_length)),
                      noise, whole - noise});
        wrong_ += target_tokens != noise || source_sentinels != runs || target_sentinels != runs;
      } else if (spans_->corruption == Corruption::iid || spans_->corruption == Corruption::drop) {
        drawn_ += whole, chosen_ += target_tokens;
      } else if (spans_->corruption == Corruption::mass || spans_->corruption == Corruption::deshuffle ||
                 spans_->corruption == Corruption::bert) {
        drawn_ += target_tokens, chosen_ += masks;
        wrong_ += source_length != e.labels.size();
      } else if (spans_->corruption == Corruption::prefix_lm && whole > 2) {  // uniform on 1 ... n - 1
        const auto n = static_cast<double>(whole);
        chosen_ += kept, mean_ += n / 2, variance_ += ((n - 1) * (n - 1) - 1) / 12;
      }
    }
  }

  void summarize() {
    const auto share = [](int64_t part, int64_t all) {
      return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
    };
    found_.facts = {{"sequences", sequences_},
                    {"tokens", tokens_},
                    {"padding_share", 1 - share(tokens_, positions_)},
                    {"unknown_share", share(unknown_, source_)},
                    {"source_length", share(source_, sequences_)},
                    {"target_length", share(target_, sequences_)},
                    {"masks_in_a_source", share(masks_, sequences_)},
                    {"as_long_as_allowed_share", share(long_, sequences_)}};
    // In an encoder-decoder model, sources and targets are separate rows.
    found_.facts["full_share"] =
        share(source_ + (model_.is_encoder_decoder() ? target_ : 0),
              sequences_ * config_.data.max_seq_length * (model_.is_encoder_decoder() ? 2 : 1));
    found_.facts["read_share"] = share(used_tokens_, example_tokens_);
    if (has_corrupted_share()) found_.facts["hidden_share"] = share(corrupted_, text_);
    auto& checks = found_.checks;
    if (model_.is_encoder_decoder())
      checks.push_back(strict_check("sources and targets without an end token", unended_));
    if (std::holds_alternative<ClmConfig>(objective_))
      checks.push_back(strict_check("labels that are not the next token", wrong_));
    if (const auto* denoising = std::get_if<DenoisingConfig>(&objective_);
        denoising && denoising->mask_length == MaskLength::span_poisson) {
      // Lewis et al. 2020, section 2.2. The number of draws depends on the lengths drawn so far, never on the next one.
      auto& lengths = found_.lengths[0];
      double left = std::accumulate(lengths.drawn.begin(), lengths.drawn.end(), 0.0),
             p = left * std::exp(-denoising->poisson_lambda);
      for (size_t n = 0; n < lengths.drawn.size(); p *= denoising->poisson_lambda / static_cast<double>(++n))
        lengths.expected.push_back(p), left -= p;
      if (!lengths.expected.empty()) lengths.expected.back() += std::max(left, 0.0);  // this length or longer
      checks.push_back(fit_check("drawn span lengths in words (chi-square)", lengths.drawn, lengths.expected));
    }
    if (!spans_) return;
    const auto& kind = spans_->corruption;
    if (kind == Corruption::spans) {
      checks.push_back(strict_check("texts with a wrong number of masked tokens or spans", wrong_));
      for (const auto& lengths : found_.lengths)
        checks.push_back(fit_check(words(lengths.name, " span lengths in tokens, one span per text (chi-square)"),
                                   lengths.drawn, lengths.expected));
    }
    if (kind == Corruption::mass || kind == Corruption::deshuffle || kind == Corruption::bert)
      checks.push_back(strict_check("sources whose length differs from their targets", wrong_));
    if (kind == Corruption::iid || kind == Corruption::drop || kind == Corruption::mass || kind == Corruption::bert) {
      const double p = (kind == Corruption::bert ? 0.9 : 1) * spans_->noise_density,
                   all = static_cast<double>(drawn_);  // 10 % become random tokens
      checks.push_back(sum_check(kind == Corruption::bert ? "masked tokens" : "corrupted tokens",
                                 static_cast<double>(chosen_), p * all, p * (1 - p) * all));
    }
    if (kind == Corruption::prefix_lm && variance_ > 0)
      checks.push_back(sum_check("prefix tokens", static_cast<double>(chosen_), mean_, variance_));
  }

  RunConfig config_;
  BackboneConfig model_;
  TokenStore store_;
  Vocabulary vocabulary_;
  ObjectiveConfig objective_;
  const SpanCorruptionConfig* spans_ = std::get_if<SpanCorruptionConfig>(&objective_);
  Collator collator_;
  Inspection found_;
  int64_t sequences_ = 0, positions_ = 0, tokens_ = 0, source_ = 0, target_ = 0, unknown_ = 0, masks_ = 0, long_ = 0,
          unended_ = 0, wrong_ = 0, drawn_ = 0, chosen_ = 0, text_ = 0, corrupted_ = 0;
  int64_t example_tokens_ = 0, used_tokens_ = 0;  // tokens of the examples, and those used in rows
  double mean_ = 0, variance_ = 0;
};

}  // namespace

Inspection inspect_generative(const RunConfig& config, int64_t examples, int64_t sequences) {
  return GenerativeInspector(config).run(examples, sequences);
}

}  // namespace cloze
