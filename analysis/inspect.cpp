#include "analysis/inspect.h"

#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/file.h"
#include "core/log.h"
#include "objectives/collator.h"
#include "objectives/masking.h"
#include "objectives/generative_rows.h"
#include "run/process.h"

namespace cloze {

namespace {

using nlohmann::json;

/// Counts over the rows of one masking.
struct Counts {
  int64_t sequences = 0, tokens = 0, candidates = 0, predicted = 0, special_predicted = 0, empty = 0;
  int64_t masked = 0, random = 0, kept = 0;                        // draws
  int64_t wrong_counts = 0, split_words = 0, more_than_drawn = 0;  // violations of strict rules
  double expected = 0, variance = 0;  // of the predicted tokens, if they are drawn at random
};

Counts& operator+=(Counts& all, const Counts& c) {
  all.sequences += c.sequences, all.tokens += c.tokens, all.candidates += c.candidates, all.predicted += c.predicted,
      all.special_predicted += c.special_predicted, all.empty += c.empty;
  all.masked += c.masked, all.random += c.random, all.kept += c.kept;
  return all;
}

double share(int64_t part, int64_t all) { return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0; }

json facts_of(const Counts& c) {
  return {{"sequences", c.sequences},
          {"tokens", c.tokens},
          {"special_tokens_predicted", c.special_predicted},
          {"sequences_without_prediction", c.empty},
          {"predicted_share", share(c.predicted, c.tokens)},
          {"predicted_share_of_candidates", share(c.predicted, c.candidates)}};
}

json mask_split_of(const Counts& c) {
  const int64_t draws = c.masked + c.random + c.kept;
  return {{"mask", share(c.masked, draws)}, {"random", share(c.random, draws)}, {"keep", share(c.kept, draws)}};
}

/// Probabilities P(n) [n] proportional to weight(n), n = 1 ... max.
template <class Weight>
std::vector<double> proportional_to(int64_t max, const Weight& weight) {
  std::vector<double> p{0};
  double sum = 0;
  for (int64_t n = 1; n <= max; ++n) sum += p.emplace_back(weight(static_cast<double>(n)));
  for (auto& x : p) x /= sum;
  return p;
}
/// Length distribution of n-grams: Lan et al. 2020, section 4.1; Yang et al. 2019, section 2.3.
std::vector<double> ngram_lengths(int64_t max) {
  return proportional_to(max, [](double n) { return 1 / n; });
}
/// Length distribution in words of n-grams or spans (Joshi et al. 2020, section 3.1).
std::vector<double> word_lengths(const Masking& m) {
  if (m.unit == MaskingUnit::ngram) return ngram_lengths(m.max_ngram);
  return proportional_to(m.max_span_length, [&](double n) { return std::pow(1 - m.span_p, n - 1); });
}

class Inspector {
 public:
  explicit Inspector(const RunConfig& config)
      : config_(config),
        store_(config.data.tokens, "train"),
        vocabulary_(store_.tokenizer()),
        maskings_(maskings_of(config.objectives)),
        collator_(store_, config.objectives, config.data, Rng(static_cast<uint64_t>(config.train.seed)), "train",
                  config.model, {config.train.batch_size, config.train.accumulation, config.train.budget.steps}) {}

  Inspection run(int64_t examples, int64_t sequences) {
    const int64_t rows = config_.train.batch_size;
    for (const auto& objective : config_.objectives)
      if (const auto* plm = std::get_if<PlmConfig>(&objective)) plm_ = plm;
    counts_.resize(std::max<size_t>(1, maskings_.size())), found_.lengths.resize(counts_.size());
    for (size_t m = 0; mixes() && m < maskings_.size(); ++m) found_.lengths[m].name = words("mixture.", m);
    std::vector<RowDraws> draws;
    for (int64_t first = 0; first < sequences; first += rows) {
      const auto batch = collator_.batch(static_cast<uint64_t>(first), std::min(rows, sequences - first), &draws);
      const int64_t width = batch.input_ids.size(1);
      positions_ += batch.input_ids.numel(), forced_ += batch.forced_pairs;
      std::vector<int64_t> labels(static_cast<size_t>(batch.input_ids.numel()), -100);
      const bool permuted =
          batch.target_positions.defined();  // targets are listed by row, and rows are padded on the left
      for (int64_t i = 0; batch.positions.defined() && i < batch.positions.numel(); ++i) {
        auto position = batch.positions.data_ptr<int64_t>()[i];
        if (permuted)
          position =
              position / batch.target_positions.size(1) * width + batch.target_positions.data_ptr<int64_t>()[position];
        labels[static_cast<size_t>(position)] = batch.labels.data_ptr<int64_t>()[i];
      }
      for (int64_t row = 0; row < batch.input_ids.size(0); ++row) {
        const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width;
        InspectedExample e;
        const int64_t begin = row * width + (permuted ? width - length : 0);
        const auto *ids = batch.input_ids.data_ptr<int64_t>() + begin,
                   *types = batch.token_type_ids.data_ptr<int64_t>() + begin;
        e.input_ids.assign(ids, ids + length), e.token_type_ids.assign(types, types + length);
        e.labels.assign(labels.begin() + begin, labels.begin() + begin + length);
        if (batch.pair_label.defined()) e.pair_label = batch.pair_label.data_ptr<int64_t>()[row];
        const auto& drawn = draws[static_cast<size_t>(row)];
        text_ += drawn.example_tokens;
        read_ += drawn.used_tokens;
        if (mixes()) e.masking = static_cast<int64_t>(drawn.masking);
        count(e, drawn);
        if (static_cast<int64_t>(found_.examples.size()) >= examples) continue;
        add_text(e);
        found_.examples.push_back(std::move(e));
      }
    }
    summarize();
    return std::move(found_);
  }

 private:
  bool mixes() const { return maskings_.size() > 1; }
  int64_t original(const InspectedExample& e, size_t i) const {
    return e.labels[i] == -100 ? e.input_ids[i] : e.labels[i];
  }
  bool special(int64_t id) const { return vocabulary_.is_special[static_cast<size_t>(id)] != 0; }

  void count(const InspectedExample& e, const RowDraws& drawn) {
    auto& c = counts_[drawn.masking];
    auto& lengths = found_.lengths[drawn.masking];
    const auto* m = maskings_.empty() ? nullptr : &maskings_[drawn.masking];
    ++c.sequences;
    const auto length = static_cast<int64_t>(e.input_ids.size());
    c.tokens += length;
    int64_t candidates = 0, predicted = 0, run = 0, run_words = 0;
    const auto end_run = [&] {
      if (run == 0) return;
      add_to_bin(lengths.runs, run), add_to_bin(lengths.words, std::max<int64_t>(run_words, 1));
      run = run_words = 0;
    };
    int64_t word_length = 0, chosen = 0, chosen_words = 0, split_words = 0;  // tokens of the current word; words
    double squares = 0;                                                      // tokens of each word, squared
    const auto end_word = [&] {
      chosen_words += chosen > 0, split_words += chosen > 0 && chosen < word_length;
      squares += static_cast<double>(word_length * word_length);
      word_length = chosen = 0;
    };
    for (size_t i = 0; i < e.input_ids.size(); ++i) {
      const int64_t text = original(e, i);
      const bool candidate = !special(text) || (m && m->mask_special) || (plm_ && text == vocabulary_.special.unk),
                 starts = vocabulary_.starts_word[static_cast<size_t>(text)] != 0;
      if (starts || special(text)) end_word();
      candidates += candidate, word_length += candidate;
      unknown_ += text == vocabulary_.special.unk;
      if (e.labels[i] == -100) {
        end_run();
        continue;
      }
      ++predicted, ++chosen;
      c.special_predicted += special(text);
      // One draw per token, word or run, by draw_per.
      const bool draw = !m || m->draw_per == DrawPer::token || run == 0 || (m->draw_per == DrawPer::word && starts);
      if (draw) ++(e.input_ids[i] == vocabulary_.special.mask ? c.masked : e.input_ids[i] == text ? c.kept : c.random);
      ++run, run_words += starts;
    }
    end_run(), end_word();
    c.candidates += candidates, c.predicted += predicted, c.empty += predicted == 0;
    if (e.pair_label >= 0) ++pairs_, second_ += e.pair_label;
    if (plm_) {  // [SEP] and [CLS] may be chosen, but are not predicted
      const auto separators = std::count_if(e.input_ids.begin(), e.input_ids.end(), [&](int64_t id) {
        return id == vocabulary_.special.sep || id == vocabulary_.special.cls;
      });
      const int64_t wanted =
          std::min(length, plm_->num_predict > 0 ? plm_->num_predict : std::max<int64_t>(1, length / 6));
      c.wrong_counts += predicted > wanted || predicted < wanted - separators;
    }
    for (const auto n : drawn.lengths) add_to_bin(lengths.drawn, n);
    if (!m) return;
    check_count(c, *m, length, candidates, predicted, squares);
    const bool spans = m->unit == MaskingUnit::span;
    if (m->unit != MaskingUnit::token)
      c.split_words += std::max<int64_t>(0, split_words - spans);  // the budget may cut the last span
    if (spans || m->unit == MaskingUnit::ngram)
      c.more_than_drawn += chosen_words > std::accumulate(drawn.lengths.begin(), drawn.lengths.end(), int64_t{0});
  }

  /// Checks the number of predictions of one sequence against the rule.
  static void check_count(Counts& c, const Masking& m, int64_t length, int64_t candidates, int64_t predicted,
                          double squares) {
    const double p = m.mlm_probability, share = p * static_cast<double>(m.count_special ? length : candidates);
    if (m.count == CountRule::bernoulli) {
      c.expected += p * static_cast<double>(candidates),
          c.variance += p * (1 - p) * (m.unit == MaskingUnit::word ? squares : static_cast<double>(candidates));
      return;
    }
    if (m.count == CountRule::stochastic) {
      const bool all = share >= static_cast<double>(candidates);
      const double over = share - std::floor(share);
      c.expected += all ? static_cast<double>(candidates) : share, c.variance += all ? 0 : over * (1 - over);
    }
    int64_t min = m.count == CountRule::ceil      ? std::llround(std::ceil(share - 1e-9))
                  : m.count == CountRule::rounded ? std::max<int64_t>(1, std::llrint(share))
                                                  : static_cast<int64_t>(share),
            max = min;
    if (m.count == CountRule::stochastic) max = min + 1;
    if (m.mlm_probability == 0) min = max = 0;
    if (m.max_predictions_per_seq > 0)
      min = std::min(min, m.max_predictions_per_seq), max = std::min(max, m.max_predictions_per_seq);
    min = std::min(min, candidates), max = std::min(max, candidates);
    if (m.unit == MaskingUnit::word || m.unit == MaskingUnit::ngram)
      min = 0;  // a unit that would exceed the budget is skipped
    c.wrong_counts += predicted < min || predicted > max;
  }

  void add_text(InspectedExample& e) const {
    const auto& tokenizer = store_.tokenizer();
    std::vector<int64_t> whole;
    for (size_t i = 0; i < e.input_ids.size(); ++i) {
      const int64_t text = original(e, i);
      whole.push_back(text);
      auto piece = tokenizer.piece(e.input_ids[i]);
      if (e.labels[i] != -100) {
        piece = e.input_ids[i] == vocabulary_.special.mask ? "{" + piece + "}"
                : e.input_ids[i] == text                   ? "(" + piece + ")"
                                                           : "<" + piece + ">";
        e.targets += (e.targets.empty() ? "" : " ") + tokenizer.piece(text);
      }
      e.corrupted += (e.corrupted.empty() ? "" : " ") + piece;
    }
    e.text = tokenizer.decode(whole);
  }

  void summarize() {
    Counts all;
    for (const auto& c : counts_) all += c;
    found_.facts = facts_of(all);
    found_.facts["padding_share"] = 1 - share(all.tokens, positions_),
    found_.facts["unknown_share"] = share(unknown_, all.tokens);
    found_.facts["full_share"] = share(all.tokens, all.sequences * config_.data.max_seq_length);
    found_.facts["read_share"] = collator_.text_share() * (text_ > 0 ? share(read_, text_) : 1);
    if (pairs_ > 0) {
      found_.facts["pair_label_1_share"] = share(second_, pairs_);
      double swapped = 0;
      for (const auto& o : config_.objectives)
        if (const auto* sop = std::get_if<SopConfig>(&o)) swapped = sop->swap_prob;
      // `share` of the pairs of an epoch has B from another document; swapped pairs are drawn among the others.
      const auto rows = static_cast<double>(pairs_), drawn = static_cast<double>(pairs_ - forced_),
                 share = collator_.random_next_share();
      found_.checks.push_back(sum_check("pairs with text of another document", static_cast<double>(forced_),
                                        rows * share, rows * share * (1 - share)));
      if (swapped > 0)
        found_.checks.push_back(sum_check("pairs with label 1", static_cast<double>(second_),
                                          static_cast<double>(forced_) + drawn * swapped,
                                          drawn * swapped * (1 - swapped)));
    }
    if (plm_) {
      found_.checks.push_back(strict_check(wrong_number, counts_[0].wrong_counts));
      found_.lengths[0].unit = "tokens";
      fit_lengths(found_.lengths[0], ngram_lengths(plm_->max_ngram), "drawn n-gram lengths in tokens (chi-square)");
    }
    if (!maskings_.empty()) found_.facts["split"] = mask_split_of(all);
    std::vector<double> rows, shares;
    for (size_t i = 0; i < maskings_.size(); ++i) {
      rows.push_back(static_cast<double>(counts_[i].sequences)),
          shares.push_back(maskings_[i].share * static_cast<double>(all.sequences));
      test_masking(maskings_[i], counts_[i], found_.lengths[i]);
      if (!mixes()) continue;
      auto facts = facts_of(counts_[i]);
      facts["share"] = share(counts_[i].sequences, all.sequences), facts["split"] = mask_split_of(counts_[i]);
      found_.facts["mixture"].push_back(facts);
    }
    if (mixes()) found_.checks.push_back(fit_check("rows per masking (chi-square)", rows, shares));
  }

  /// Tests the counts of one masking against its rules.
  void test_masking(const Masking& m, const Counts& c, LengthCounts& lengths) {
    const auto name = [&](const char* rule) { return lengths.name.empty() ? rule : lengths.name + ": " + rule; };
    const bool drawn_tokens =
        m.count == CountRule::bernoulli || (m.count == CountRule::stochastic && m.max_predictions_per_seq == 0 &&
                                            (m.unit == MaskingUnit::token || m.unit == MaskingUnit::span));
    if (drawn_tokens)
      found_.checks.push_back(
          sum_check(name("predicted tokens"), static_cast<double>(c.predicted), c.expected, c.variance));
    if (m.count != CountRule::bernoulli) found_.checks.push_back(strict_check(name(wrong_number), c.wrong_counts));
    const double draws = static_cast<double>(c.masked + c.random + c.kept),
                 vocabulary = static_cast<double>(vocabulary_.size);
    // A random token may equal the original one, or [MASK]. Drawn by unigram frequency, it equals the original one with
    // unknown probability.
    const double random_is_mask = m.random_from == RandomFrom::vocabulary ? m.random_prob / vocabulary : 0,
                 random_is_original = m.random_prob / vocabulary;
    if (draws > 0 && m.random_from == RandomFrom::unigram)
      found_.checks.push_back(sum_check(name("draws of [MASK]"), static_cast<double>(c.masked), m.mask_prob * draws,
                                        m.mask_prob * (1 - m.mask_prob) * draws));
    else if (draws > 0)
      found_.checks.push_back(fit_check(
          name("split into mask, random, keep (chi-square)"),
          {static_cast<double>(c.masked), static_cast<double>(c.random), static_cast<double>(c.kept)},
          {(m.mask_prob + random_is_mask) * draws, (m.random_prob - random_is_mask - random_is_original) * draws,
           (1 - m.mask_prob - m.random_prob + random_is_original) * draws}));
    if (!m.mask_special) found_.checks.push_back(strict_check(name("predicted special tokens"), c.special_predicted));
    if (m.unit != MaskingUnit::token)
      found_.checks.push_back(strict_check(name("partly predicted words"), c.split_words));
    if (m.unit != MaskingUnit::ngram && m.unit != MaskingUnit::span) return;
    fit_lengths(lengths, word_lengths(m),
                name(m.unit == MaskingUnit::span ? "drawn span lengths in words (chi-square)"
                                                 : "drawn n-gram lengths in words (chi-square)"));
    found_.checks.push_back(strict_check(name("sequences with more words chosen than drawn"), c.more_than_drawn));
  }

  /// Tests drawn lengths against their probabilities. The number of draws depends on the lengths drawn so far, but
  /// never on the next one: counts minus expectations are a martingale with the variance of as many independent draws.
  void fit_lengths(LengthCounts& lengths, std::vector<double> probabilities, const std::string& name) {
    const double all = std::accumulate(lengths.drawn.begin(), lengths.drawn.end(), 0.0);
    for (auto& n : probabilities) n *= all;
    lengths.expected = std::move(probabilities);
    found_.checks.push_back(fit_check(name, lengths.drawn, lengths.expected));
  }

  static constexpr const char* wrong_number = "sequences with a wrong number of predictions";

  RunConfig config_;
  TokenStore store_;
  Vocabulary vocabulary_;
  std::vector<MaskingPart> maskings_;
  const PlmConfig* plm_ = nullptr;
  Collator collator_;
  std::vector<Counts> counts_;  // per masking, or over all rows
  int64_t positions_ = 0, unknown_ = 0, pairs_ = 0, second_ = 0, forced_ = 0;
  int64_t text_ = 0, read_ = 0;  // tokens of the examples, and those used in rows
  Inspection found_;
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

/// Colours the marks of predicted tokens.
std::string coloured(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = i == 0 || text[i - 1] == ' ', ends = i + 1 == text.size() || text[i + 1] == ' ';
    if (starts && (text[i] == '{' || text[i] == '<' || text[i] == '('))
      out += text[i] == '{' ? "\033[31m" : text[i] == '<' ? "\033[33m" : "\033[36m";
    out += text[i];
    if (ends && (text[i] == '}' || text[i] == '>' || text[i] == ')')) out += "\033[0m";
  }
  return out;
}

}  // namespace

Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences) {
  require<ConfigError>(
      !config.data.tokens.empty(),
      "data.tokens is not set; run `cloze prepare`, and name its folder with --set data.tokens=FOLDER");
  require<ConfigError>(examples >= 0 && sequences >= 1, "--examples must be at least 0, --sequences at least 1");
  if (generative_of(config.objectives)) return inspect_generative(config, examples, std::max(examples, sequences));
  return Inspector(config).run(examples, std::max(examples, sequences));
}

std::string to_text(const Inspection& found, bool colour) {
  std::string out;
  for (const auto& e : found.examples) {
    const auto marked = [&](const std::string& tokens) { return colour ? coloured(tokens) : tokens; };
    if (e.token_type_ids.empty())
      out += "input      " + marked(e.corrupted) + "\ntarget     " + marked(e.targets) + "\n";  // of a decoder
    else
      out += "text       " + e.text + "\ninput      " + marked(e.corrupted) + "\npredicted  " + e.targets + "\n";
    if (e.pair_label >= 0)
      out += words("pair       ", e.pair_label == 0 ? "0: B follows A" : "1: B does not follow A", "\n");
    if (e.masking >= 0) out += words("masking    mixture.", e.masking, "\n");
    out += "\n";
  }
  const auto& f = found.facts;
  const auto predicted = [](const json& facts) {
    return words("predicted  ", percent(facts["predicted_share"]), " of all tokens, ",
                 percent(facts["predicted_share_of_candidates"]), " of the candidates; ",
                 facts["sequences_without_prediction"].get<int64_t>(), " sequences without predictions\n");
  };
  const auto split = [](const json& facts) {
    return facts.contains("split")
               ? words("split      mask ", percent(facts["split"]["mask"]), ", random ",
                       percent(facts["split"]["random"]), ", keep ", percent(facts["split"]["keep"]), "\n")
               : "";
  };
  if (f.contains("source_length")) {
    char lengths[160];
    std::snprintf(
        lengths, sizeof lengths, "lengths    %.1f source and %.1f target tokens on average; %.2f masks per source\n",
        f["source_length"].get<double>(), f["target_length"].get<double>(), f["masks_in_a_source"].get<double>());
    out += words("{mask token}\n\nsequences  ", thousands(f["sequences"].get<uint64_t>()), ", ",
                 thousands(f["tokens"].get<uint64_t>()), " tokens; padding ", percent(f["padding_share"]), ", unknown ",
                 percent(f["unknown_share"]), "; ", percent(f["as_long_as_allowed_share"]), " of maximum length\n",
                 lengths);
    if (f.contains("hidden_share"))
      out += words("corrupted  ", percent(f["hidden_share"]), " of the tokens are missing from the source\n");
  } else {
    out += words("{masked} <random> (kept)\n\nsequences  ", thousands(f["sequences"].get<uint64_t>()), ", ",
                 thousands(f["tokens"].get<uint64_t>()), " tokens; padding ", percent(f["padding_share"]), ", unknown ",
                 percent(f["unknown_share"]), "\n", predicted(f));
  }
  out += words("coverage   ", percent(f["read_share"]), " of the text is used per epoch; rows are ",
               percent(f["full_share"]), " full\n");
  out += split(f);
  if (f.contains("pair_label_1_share"))
    out += words("pairs      ", percent(f["pair_label_1_share"]), " with label 1\n");
  const auto histogram = [&](const char* name, const char* unit, const auto& counts) {
    double all = 0, sum = 0;
    for (size_t n = 0; n < counts.size(); ++n)
      all += static_cast<double>(counts[n]), sum += static_cast<double>(n) * static_cast<double>(counts[n]);
    if (all == 0) return;
    char text[64];
    std::snprintf(text, sizeof text, "%-10s %-7s ", name, unit);
    out += text;
    for (size_t n = counts[0] > 0 ? 0 : 1; n < counts.size() && n <= 10; ++n)
      out += words(n, ": ", percent(static_cast<double>(counts[n]) / all), "  ");
    std::snprintf(text, sizeof text, "mean %.2f\n", sum / all);
    out += text;
  };
  for (size_t i = 0; i < found.lengths.size(); ++i) {
    const auto& lengths = found.lengths[i];
    if (f.contains("mixture")) {
      const auto& facts = f["mixture"][i];
      out += words("\n", lengths.name, "  ", thousands(facts["sequences"].get<uint64_t>()), " sequences, ",
                   percent(facts["share"]), " of all\n", predicted(facts), split(facts));
    } else if (!lengths.name.empty()) {
      out += words("\n", lengths.name, "\n");
    }
    histogram("runs", "tokens", lengths.runs), histogram(lengths.runs.empty() ? "runs" : "", "words", lengths.words);
    histogram("drawn", lengths.unit, lengths.drawn), histogram("expected", lengths.unit, lengths.expected);
  }
  out += "\n";
  for (const auto& check : found.checks) {
    char line[200];
    std::snprintf(line, sizeof line, "%-4s %-66s %12s  expected %s  p %.3g\n", check.passed ? "ok" : "FAIL",
                  check.name.c_str(), significant(check.observed, 6).c_str(), significant(check.expected, 6).c_str(),
                  check.p_value);
    out += line;
  }
  return out;
}

json to_json(const Inspection& found) {
  json examples = json::array(), checks = json::array(), lengths = json::array();
  for (const auto& e : found.examples) {
    examples.push_back({{"input_ids", e.input_ids},
                        {"labels", e.labels},
                        {"token_type_ids", e.token_type_ids},
                        {"text", e.text},
                        {"corrupted", e.corrupted},
                        {"targets", e.targets}});
    if (e.pair_label >= 0) examples.back()["pair_label"] = e.pair_label;
    if (e.masking >= 0) examples.back()["masking"] = e.masking;
    if (!e.decoder_input_ids.empty()) examples.back()["decoder_input_ids"] = e.decoder_input_ids;
  }
  for (const auto& c : found.checks)
    checks.push_back({{"name", c.name},
                      {"observed", c.observed},
                      {"expected", c.expected},
                      {"p_value", c.p_value},
                      {"passed", c.passed}});
  for (const auto& l : found.lengths)
    lengths.push_back({{"name", l.name},
                       {"runs", l.runs},
                       {"words", l.words},
                       {"drawn", l.drawn},
                       {"expected", l.expected},
                       {"unit", l.unit}});
  return {{"examples", examples}, {"facts", found.facts}, {"checks", checks}, {"lengths", lengths}};
}

void draw_lengths(const Inspection& found, const std::string& file) {
  const auto path = std::filesystem::absolute(file);
  const bool svg = path.extension() == ".svg";
  require<ConfigError>(svg || path.extension() == ".png", file, ": must end in .svg or .png");
  std::string data, plots;
  const size_t panels = std::max<size_t>(1, found.lengths.size());
  for (const auto& l : found.lengths) {
    // Each series as shares of its own sum, so that all fit one axis; lengths up to 30.
    struct Series {
      std::string title;
      const char* colour;
      std::vector<double> counts;
    };
    std::vector<Series> series;
    const auto add = [&](std::string title, const char* colour, const auto& counts) {
      std::vector<double> shares(counts.begin(), counts.end());
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (auto& x : shares) x *= 100 / sum;
      if (sum > 0) series.push_back({std::move(title), colour, std::move(shares)});
    };
    add("runs found, tokens", "#1f5fa8", l.runs), add("runs found, words", "#c0392b", l.words),
        add(words("drawn, ", l.unit), "#8a8f98", l.drawn);
    const size_t bars = series.size();
    add(words("expected of the draws, ", l.unit), "#000000", l.expected);
    size_t longest = 1;
    for (const auto& s : series) longest = std::max(longest, std::min<size_t>(s.counts.size(), 31));
    const bool from_0 = !l.drawn.empty() && l.drawn[0] > 0;
    std::string plot;
    for (size_t k = 0; k < series.size(); ++k) {
      const std::string block = words("$p", data.size());
      data += block + " << EOD\n";
      for (size_t n = from_0 ? 0 : 1; n < std::min(longest, series[k].counts.size()); ++n)
        data += words(n, " ", series[k].counts[n], "\n");
      data += "EOD\n";
      const double width = 0.8 / static_cast<double>(bars), shift = k < bars
                                                                        ? (static_cast<double>(k) + 0.5) * width - 0.4
                                                                    : bars > 0 ? 0.4 - width / 2
                                                                               : 0;
      plot += words(k ? ", " : "plot ", block, " using ($1+", shift, "):2 ",
                    k < bars ? words("with boxes lc rgb '", series[k].colour, "'")
                             : "with linespoints lc rgb '#000000' pt 7 ps 0.6 lw 1.2",
                    " title '", series[k].title, "'");
      if (k == 0)
        plots += words("set boxwidth ", width, "\nset title '", l.name, "'\nset xrange [", from_0 ? -0.6 : 0.4, ":",
                       static_cast<double>(longest) - 0.4, "]\nset xtics nomirror ", longest > 20 ? 5 : 1, "\n");
    }
    if (!series.empty()) plots += plot + "\n";
  }
  require<ConfigError>(!plots.empty(), file,
                       ": this objective has no spans, so there are no lengths to plot; leave --picture out");
  const std::string script = words("set terminal ", svg ? "svg" : "pngcairo", " size 760,", 340 * panels + 40,
                                   " background 'white'\nset output '", path.filename().string(),
                                   "'\nset style fill solid 0.8 noborder\nset grid y lc rgb '#dddddd'\n",
                                   "set xlabel 'length'\nset ylabel 'share [%]'\nset yrange [0:*]\n", data,
                                   "set multiplot layout ", panels, ",1\n", plots, "unset multiplot\n");
  const auto name = path.string() + ".gnuplot";
  write_atomic(name, script);
  const bool drawn = run_gnuplot(path.parent_path().string(), path.filename().string() + ".gnuplot");
  std::filesystem::remove(name);
  require(drawn && std::filesystem::exists(path), file,
          ": not plotted; gnuplot is missing or failed (Debian: apt-get install gnuplot-nox)");
}

}  // namespace cloze
