// What the objectives of a decoder do to real text.
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
        collator_(store_, config.objectives, config.data, Rng(static_cast<uint64_t>(config.train.seed)), "train",
                  resolved(), {config.train.batch_size, config.train.accumulation}) {}

  Inspection run(int64_t examples, int64_t sequences) {
    const int64_t rows = config_.train.batch_size;  // pairs are padded as in training
    if (spans_ && spans_->corruption == Corruption::spans)
      found_.lengths = {{.name = "hidden", .unit = "tokens"}, {.name = "kept", .unit = "tokens"}};
    else
      found_.lengths.resize(1);
    std::vector<RowDraws> draws;
    for (int64_t first = 0; first < sequences; first += rows) {
      const auto batch = collator_.batch(static_cast<uint64_t>(first), std::min(rows, sequences - first), &draws);
      const auto& asked = model_.is_encoder_decoder() ? batch.decoder_input_ids : batch.input_ids;
      places_ += batch.input_ids.numel() + (model_.is_encoder_decoder() ? asked.numel() : 0), tokens_ += batch.tokens;
      std::vector<std::vector<int64_t>> labels(static_cast<size_t>(asked.size(0)));
      for (int64_t i = 0; i < batch.positions.numel(); ++i)
        labels[static_cast<size_t>(batch.positions.data_ptr<int64_t>()[i] / asked.size(1))].push_back(
            batch.labels.data_ptr<int64_t>()[i]);
      for (int64_t row = 0; row < batch.input_ids.size(0); ++row) {
        const int64_t length =
            batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : batch.input_ids.size(1);
        InspectedExample e;
        const auto* ids = batch.input_ids.data_ptr<int64_t>() + row * batch.input_ids.size(1);
        e.input_ids.assign(ids, ids + length);
        e.labels = labels[static_cast<size_t>(row)];
        if (model_.is_encoder_decoder()) {
          const auto* read = asked.data_ptr<int64_t>() + row * asked.size(1);
          e.decoder_input_ids.assign(read, read + e.labels.size());
        }
        count(e);
        not_read_ += draws[static_cast<size_t>(row)].hidden;
        own_ += draws[static_cast<size_t>(row)].text;
        used_ += draws[static_cast<size_t>(row)].read;
        for (const auto n : draws[static_cast<size_t>(row)].lengths) note(found_.lengths[0].drawn, n);
        if (static_cast<int64_t>(found_.examples.size()) >= examples) continue;
        e.corrupted = pieces(e.input_ids), e.targets = pieces(e.labels), e.text = store_.tokenizer().decode(e.labels);
        found_.examples.push_back(std::move(e));
      }
    }
    conclude();
    return std::move(found_);
  }

 private:
  /// The model with what training takes from the tokenizer.
  const ModelConfig& resolved() {
    take_special_ids(config_.model, vocabulary_.special);
    model_ = backbone_of(config_.model);
    return config_.model;
  }
  bool masks_text(int64_t id) const {
    return id == vocabulary_.special.mask || id == vocabulary_.special.sentence_mask;
  }
  bool sentinel(int64_t id) const { return store_.tokenizer().piece(id).rfind("<extra_id_", 0) == 0; }

  std::string pieces(const std::vector<int64_t>& ids) const {
    std::string text;
    for (const auto id : ids)
      text += (text.empty() ? "" : " ") + (sentinel(id) || masks_text(id) ? "{" + store_.tokenizer().piece(id) + "}"
                                                                          : store_.tokenizer().piece(id));
    return text;
  }

  /// A share of the text is hidden: neither put in another order nor cut in two.
  bool tells_hidden() const {
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
      if (sentinel(ids[i]))
        runs.push_back(0);
      else
        ++runs.back();
    }
    std::erase(runs, 0);
    return runs;
  }

  /// One run of a text, each time the next: the others depend on it.
  void count_part(LengthCounts& lengths, const std::vector<int64_t>& runs) {
    for (const auto n : runs) note(lengths.runs, n);
    if (runs.size() < 2) return;
    note(lengths.drawn, runs[static_cast<size_t>(sequences_) % runs.size()]);
    const auto p =
        part_lengths(std::accumulate(runs.begin(), runs.end(), int64_t{0}), static_cast<int64_t>(runs.size()));
    lengths.expected.resize(std::max(lengths.expected.size(), p.size()));
    for (size_t n = 0; n < p.size(); ++n) lengths.expected[n] += p[n];
  }

  void count(const InspectedExample& e) {
    ++sequences_;
    source_ += static_cast<int64_t>(e.input_ids.size()), target_ += static_cast<int64_t>(e.labels.size());
    int64_t marks = 0, kept = 0, written = 0, marks_written = 0, masks = 0;
    const size_t begin = model_.texts_begin ? 1 : 0;  // what stands between it and the end token is text
    // A decoder alone reads source and target in one line.
    const size_t read = model_.is_encoder_decoder()
                            ? e.input_ids.size()
                            : e.input_ids.size() + 1 - std::min(e.labels.size(), e.input_ids.size() + 1);
    const bool ends =
        model_.is_encoder_decoder() || !spans_ ||
        spans_->corruption != Corruption::prefix_lm;  // a text that goes on in the same line has no end token
    for (size_t i = begin; i + (ends ? 1 : 0) < read; ++i) {
      const auto id = e.input_ids[i];
      marks += sentinel(id), masks += masks_text(id), kept += !sentinel(id);
      unknown_ += id == vocabulary_.special.unk;
    }
    for (size_t i = begin; i + 1 < e.labels.size(); ++i) ++(sentinel(e.labels[i]) ? marks_written : written);
    const auto hidden = marks_written > 0 ? runs_of(e.labels, begin, e.labels.size() - 1) : std::vector<int64_t>();
    if (found_.lengths.size() == 2)
      count_part(found_.lengths[0], hidden), count_part(found_.lengths[1], runs_of(e.input_ids, begin, read - 1));
    else
      for (const auto n : hidden) note(found_.lengths[0].runs, n);
    masks_ += masks;
    if (std::holds_alternative<DenoisingConfig>(objective_))
      text_ += written;
    else if (tells_hidden())
      text_ += kept - masks + written, not_read_ += written;  // the target is what the source lacks
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
      const int64_t whole = kept + written;
      if (spans_->corruption == Corruption::spans && whole > 1) {
        const auto noise =
            std::clamp<int64_t>(std::llrint(static_cast<double>(whole) * spans_->noise_density), 1, whole - 1);
        const auto runs =
            std::min({std::max<int64_t>(1, std::llrint(static_cast<double>(noise) / spans_->mean_noise_span_length)),
                      noise, whole - noise});
        wrong_ += written != noise || marks != runs || marks_written != runs;
      } else if (spans_->corruption == Corruption::iid || spans_->corruption == Corruption::drop) {
        drawn_ += whole, hidden_ += written;
      } else if (spans_->corruption == Corruption::mass || spans_->corruption == Corruption::deshuffle ||
                 spans_->corruption == Corruption::bert) {
        drawn_ += written, hidden_ += masks;
        wrong_ += read != e.labels.size();
      } else if (spans_->corruption == Corruption::prefix_lm && whole > 2) {  // uniform on 1 ... n - 1
        const auto n = static_cast<double>(whole);
        hidden_ += kept, mean_ += n / 2, variance_ += ((n - 1) * (n - 1) - 1) / 12;
      }
    }
  }

  void conclude() {
    const auto share = [](int64_t part, int64_t all) {
      return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
    };
    found_.facts = {{"sequences", sequences_},
                    {"tokens", tokens_},
                    {"padding_share", 1 - share(tokens_, places_)},
                    {"unknown_share", share(unknown_, source_)},
                    {"source_length", share(source_, sequences_)},
                    {"target_length", share(target_, sequences_)},
                    {"masks_in_a_source", share(masks_, sequences_)},
                    {"as_long_as_allowed_share", share(long_, sequences_)}};
    // Of an encoder with a decoder, sources and targets are rows.
    found_.facts["full_share"] =
        share(source_ + (model_.is_encoder_decoder() ? target_ : 0),
              sequences_ * config_.data.max_seq_length * (model_.is_encoder_decoder() ? 2 : 1));
    found_.facts["read_share"] = share(used_, own_);
    if (tells_hidden()) found_.facts["hidden_share"] = share(not_read_, text_);
    auto& checks = found_.checks;
    if (model_.is_encoder_decoder())
      checks.push_back(none_check("sources and targets that do not end with the end of a text", unended_));
    if (std::holds_alternative<ClmConfig>(objective_))
      checks.push_back(none_check("labels that are not the token behind their place", wrong_));
    if (const auto* denoising = std::get_if<DenoisingConfig>(&objective_);
        denoising && denoising->mask_length == MaskLength::span_poisson) {
      // Lewis et al. 2020, section 2.2. How many are drawn depends on what was drawn, but never on what comes next.
      auto& lengths = found_.lengths[0];
      double left = std::accumulate(lengths.drawn.begin(), lengths.drawn.end(), 0.0),
             p = left * std::exp(-denoising->poisson_lambda);
      for (size_t n = 0; n < lengths.drawn.size(); p *= denoising->poisson_lambda / static_cast<double>(++n))
        lengths.expected.push_back(p), left -= p;
      if (!lengths.expected.empty()) lengths.expected.back() += std::max(left, 0.0);  // all that is as long or longer
      checks.push_back(fit_check("words of a span as drawn (chi-square)", lengths.drawn, lengths.expected));
    }
    if (!spans_) return;
    const auto& kind = spans_->corruption;
    if (kind == Corruption::spans) {
      checks.push_back(
          none_check("texts with another number of hidden tokens, or of runs, than the rule gives", wrong_));
      for (const auto& lengths : found_.lengths)
        checks.push_back(fit_check(words("tokens of a run that is ", lengths.name, ", one run of a text (chi-square)"),
                                   lengths.drawn, lengths.expected));
    }
    if (kind == Corruption::mass || kind == Corruption::deshuffle || kind == Corruption::bert)
      checks.push_back(none_check("sources of another length than their targets", wrong_));
    if (kind == Corruption::iid || kind == Corruption::drop || kind == Corruption::mass || kind == Corruption::bert) {
      const double p = (kind == Corruption::bert ? 0.9 : 1) * spans_->noise_density,
                   all = static_cast<double>(drawn_);  // a tenth becomes random tokens
      checks.push_back(sum_check(kind == Corruption::bert ? "hidden tokens that are masked" : "hidden tokens",
                                 static_cast<double>(hidden_), p * all, p * (1 - p) * all));
    }
    if (kind == Corruption::prefix_lm && variance_ > 0)
      checks.push_back(sum_check("tokens of prefixes", static_cast<double>(hidden_), mean_, variance_));
  }

  RunConfig config_;
  BackboneConfig model_;
  TokenStore store_;
  Vocabulary vocabulary_;
  ObjectiveConfig objective_;
  const SpanCorruptionConfig* spans_ = std::get_if<SpanCorruptionConfig>(&objective_);
  Collator collator_;
  Inspection found_;
  int64_t sequences_ = 0, places_ = 0, tokens_ = 0, source_ = 0, target_ = 0, unknown_ = 0, masks_ = 0, long_ = 0,
          unended_ = 0, wrong_ = 0, drawn_ = 0, hidden_ = 0, text_ = 0, not_read_ = 0;
  int64_t own_ = 0, used_ = 0;  // tokens of the pieces that rows were made of, and of those the ones in the rows
  double mean_ = 0, variance_ = 0;
};

}  // namespace

Inspection inspect_generative(const RunConfig& config, int64_t examples, int64_t sequences) {
  return GenerativeInspector(config).run(examples, sequences);
}

}  // namespace cloze
