#include "evaluation/suites/reading.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/error.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/token_rows.h"
#include "inference/scoring/form_rules.h"

namespace cloze {

namespace {

/// [MASK] tokens that a masked model reads from the predicted token on.
constexpr size_t masks = 3;

/// `f` of each word of the suite and of each previous word, equal ones once.
template <class F>
ReadingSurprisals surprisals_by(const ReadingTimes& times, const F& f) {
  std::map<WordInContext, size_t> index_of;
  std::vector<WordInContext> distinct;
  const auto index = [&](const WordInContext& word) {
    const auto [at, is_new] = index_of.emplace(word, distinct.size());
    if (is_new) distinct.push_back(word);
    return at->second;
  };
  constexpr size_t none = std::numeric_limits<size_t>::max();
  std::vector<size_t> words, previous;
  for (const auto& word : times.words) words.push_back(index(word));
  for (const auto& word : times.previous) previous.push_back(word ? index(*word) : none);
  const std::vector<double> logs = f(distinct);
  ReadingSurprisals surprisals;
  for (const auto at : words) surprisals.words.push_back(-logs[at]);
  for (const auto at : previous)
    surprisals.previous.push_back(at == none ? std::numeric_limits<double>::quiet_NaN() : -logs[at]);
  return surprisals;
}

/// Rows of which each predicts one token of a word; the log-probability of the word is their sum.
struct WordRows {
  std::vector<TokenRow> rows;
  std::vector<size_t> words;  ///< of each row

  void add(size_t word, TokenRow row) {
    words.push_back(word);
    rows.push_back(std::move(row));
  }
  std::vector<double> sums(const LoadedRun& run, size_t count, bool bidirectional) const {
    const auto logs = log_probabilities(run, rows, bidirectional);
    std::vector<double> sums(count, 0);
    for (size_t r = 0; r < rows.size(); ++r) sums[words[r]] += logs[r][0];
    return sums;
  }
};

std::vector<int64_t> joined(const std::vector<int64_t>& a, const std::vector<int32_t>& b) {
  auto ids = a;
  ids.insert(ids.end(), b.begin(), b.end());
  return ids;
}

/// A row of `begin`, the masks and the end of a text, of which the first mask is predicted, by its own state or by the
/// one before it.
TokenRow masked_row(std::vector<int64_t> begin, int64_t mask, const std::vector<int64_t>& end, int64_t target,
                    bool shifted) {
  const auto position = static_cast<int64_t>(begin.size()) - (shifted ? 1 : 0);
  begin.insert(begin.end(), masks, mask);
  begin.insert(begin.end(), end.begin(), end.end());
  return {.read = {.ids = std::move(begin), .decoder = {}}, .predicted = {{position, target}}};
}

/// The objective that predicts masked tokens by a mask token: nothing, `mlm` or `mntp`.
std::optional<BabylmBackend> masked_backend(const RunConfig& config) {
  const auto backend = babylm_backend(config);
  return backend == BabylmBackend::mlm || backend == BabylmBackend::mntp ? backend : std::nullopt;
}

/// The rows of words before masks, tokenized with their contexts.
WordRows masked_rows(const LoadedRun& run, const std::vector<WordInContext>& words, BabylmBackend backend) {
  const auto& special = run.tokenizer.special();
  require<ConfigError>(special.mask >= 0, run.folder,
                       ": its tokenizer has no [MASK] or <mask>, before which words are predicted");
  const auto frame = babylm_frame(run);
  WordRows all;
  for (size_t w = 0; w < words.size(); ++w) {
    const auto text = words[w].context + " " + words[w].word;
    const size_t start = words[w].context.size();  // the space belongs to the word, also as a token of its own
    auto begin = frame.before;
    for (const auto& token : run.tokenizer.encode_with_offsets(text)) {
      if (token.end > start) {
        require<DataError>(!begin.empty() || backend == BabylmBackend::mlm, run.folder, ": '", text,
                           "' begins with the predicted word, which has no state before it");
        all.add(w, masked_row(begin, special.mask, frame.after, token.id, backend == BabylmBackend::mntp));
      }
      begin.push_back(token.id);
    }
  }
  return all;
}

/// The text of one token as transformers decodes it alone: WordPiece keeps the mark of a continuation.
std::string decoded_token(const Tokenizer& tokenizer, int64_t id) {
  if (tokenizer.is_special(id) || tokenizer.kind() == "wordpiece") return tokenizer.piece(id);
  return tokenizer.decode(std::vector<int64_t>{id});
}

/// The first token of a text on its own.
int64_t first_token(const LoadedRun& run, const std::string& text) {
  const auto ids = run.tokenizer.encode(text);
  require<DataError>(!ids.empty(), run.folder, ": its tokenizer has no token for '", text,
                     "', at which the published program stops");
  return ids[0];
}

/// The row of `text` that predicts the token after it, by a backend.
TokenRow next_token_row(const LoadedRun& run, const Tokenizer::Frame& frame, BabylmBackend backend,
                        const std::string& text, int64_t target) {
  const auto& special = run.tokenizer.special();
  const auto ids = run.tokenizer.encode(text);
  switch (backend) {
    case BabylmBackend::causal: {
      auto row = joined(frame.before, ids);
      row.insert(row.end(), frame.after.begin(), frame.after.end());
      const auto last = static_cast<int64_t>(row.size()) - 1;
      require<DataError>(last >= 0, run.folder, ": '", text, "' has no tokens, after which a word could be predicted");
      return {.read = {.ids = std::move(row), .decoder = {}}, .predicted = {{last, target}}};
    }
    case BabylmBackend::mlm:
      return masked_row(joined(frame.before, ids), special.mask, frame.after, target, false);
    case BabylmBackend::mntp:
      return masked_row(joined(frame.before, ids), special.mask, frame.after, target, true);
    case BabylmBackend::enc_dec_mask:
    case BabylmBackend::enc_dec_prefix:
      break;
  }
  std::vector<int64_t> begin;
  if (special.cls >= 0) begin.push_back(special.cls);
  auto row = joined(begin, ids);
  row.push_back(special.mask);
  if (special.eos >= 0) row.push_back(special.eos);
  return {.read = {.ids = std::move(row), .decoder = {special.bos}}, .predicted = {{0, target}}};
}

/// The rows of words as the published program has them.
WordRows official_rows(const LoadedRun& run, const std::vector<WordInContext>& words, BabylmBackend backend) {
  const auto frame = babylm_frame(run);
  WordRows all;
  for (size_t w = 0; w < words.size(); ++w) {
    const auto& [context, word] = words[w];
    auto text = context;
    auto target = first_token(run, word);
    const auto ids = run.tokenizer.encode(word);
    for (size_t t = 0; t < ids.size(); ++t) {
      const auto piece = decoded_token(run.tokenizer, ids[t]);
      if (t > 0) target = first_token(run, piece);
      all.add(w, next_token_row(run, frame, backend, text, target));
      text += piece;
    }
  }
  return all;
}

bool has_tokens_for(const SpecialIds& special, BabylmBackend backend) {
  switch (backend) {
    case BabylmBackend::causal:
      return true;
    case BabylmBackend::mlm:
    case BabylmBackend::mntp:
      return special.mask >= 0;
    case BabylmBackend::enc_dec_mask:
    case BabylmBackend::enc_dec_prefix:
      return special.mask >= 0 && special.bos >= 0;
  }
  return false;
}

std::vector<Passage> passages_of(const std::vector<WordInContext>& words) {
  std::vector<Passage> passages;
  for (const auto& [context, word] : words) passages.push_back({.left = context + " ", .scored = word});
  return passages;
}

/// Words are predicted before masks unless a form of the Scorer is requested.
bool predicts_before_masks(const RunConfig& config, const ScoringOptions& options) {
  return !options.form && masked_backend(config);
}

/// There is an option that only the rows of the Scorer have.
bool asks_of_scorer(const ScoringOptions& options) {
  return !options.cache.empty() || options.stride > 0 || options.precision != Precision::fp32;
}

/// One of the scores of a measure.
using GainScore = WordScore (ReadingGain::*)() const;

WordScore eye_tracking_of(const ReadingGains& gains, GainScore score) {
  std::vector<WordScore> all;
  for (const auto& gain : gains.eye_tracking) all.push_back((gain.*score)());
  return mean_of(all);
}

std::vector<Score> reading_scores(const ReadingGains& gains, const std::optional<ReadingGains>& official) {
  std::vector<Score> scores;
  const auto add = [&](SuiteLevel level, const std::string& group, int64_t count, const auto& score_of) {
    for (const auto& [metric, kind] :
         {std::pair{"partial_r2", &ReadingGain::partial_r2}, {"delta_r2", &ReadingGain::delta_r2}}) {
      const WordScore word_score = score_of(gains, kind);
      Score score{.level = level,
                  .group = group,
                  .metric = metric,
                  .value = word_score.value,
                  .interval = Bounds{word_score.value - word_score.reach(), word_score.value + word_score.reach()},
                  .count = count};
      if (official) score.official = score_of(*official, kind).value;
      scores.push_back(score);
    }
  };
  const auto self_paced = [](const ReadingGains& g, GainScore kind) { return (g.self_paced.*kind)(); };
  const int64_t most = gains.eye_tracking[0].count;
  add(SuiteLevel::suite, "", most, [&](const ReadingGains& g, GainScore kind) {
    return mean_of(std::vector<WordScore>{eye_tracking_of(g, kind), self_paced(g, kind)});
  });
  add(SuiteLevel::phenomenon, "eye tracking", most, eye_tracking_of);
  add(SuiteLevel::phenomenon, "self-paced reading", gains.self_paced.count, self_paced);
  for (size_t m = 0; m < gains.eye_tracking.size(); ++m)
    add(SuiteLevel::paradigm, gains.eye_tracking[m].measure, gains.eye_tracking[m].count,
        [m](const ReadingGains& g, GainScore kind) { return (g.eye_tracking[m].*kind)(); });
  return scores;
}

/// A surprisal as JSON; null where it is missing.
nlohmann::json json_of(double value) { return std::isnan(value) ? nlohmann::json() : nlohmann::json(value); }

}  // namespace

std::optional<ReadingSuite> read_reading(const SuiteFiles& files) {
  const auto file = files.named("reading_data.csv");
  if (file.empty()) return {};
  const auto table = read_csv(file);
  if (!is_reading_table(table)) return {};
  return ReadingSuite{.times = reading_times_of(table)};
}

std::string reason_unsupported(const RunConfig& config, const ReadingSuite&, const SuiteOptions& options) {
  if (predicts_before_masks(config, options.scoring)) return {};
  const auto& form = options.scoring.form;
  if ((form ? form : usual_form(config)) == ScoringForm::detection)
    return "reading times are explained by the probabilities of words, and a discriminator of rtd gives none; evaluate "
           "a run of mlm or clm";
  return scoring_fault(config, form);
}

ReadingSurprisals reading_surprisals(const LoadedRun& run, const ReadingSuite& suite, const ScoringOptions& options) {
  return surprisals_by(suite.times, [&](const std::vector<WordInContext>& words) {
    if (predicts_before_masks(run.config, options)) {
      const auto backend = *masked_backend(run.config);
      return masked_rows(run, words, backend).sums(run, words.size(), backend == BabylmBackend::mntp);
    }
    std::vector<double> logs;
    for (const auto& score : Scorer(run, options).score(passages_of(words))) logs.push_back(score.sum);
    return logs;
  });
}

void check_fit(const LoadedRun& run, const ReadingSuite& suite, const SuiteOptions& options) {
  const auto official = babylm_backend(run.config);
  surprisals_by(suite.times, [&](const std::vector<WordInContext>& words) {
    if (official && has_tokens_for(run.tokenizer.special(), *official))
      check_fit(run, official_rows(run, words, *official).rows);
    if (predicts_before_masks(run.config, options.scoring))
      check_fit(run, masked_rows(run, words, *masked_backend(run.config)).rows);
    else
      Scorer(run, options.scoring).check_fit(passages_of(words));
    return std::vector<double>(words.size());
  });
}

std::optional<ReadingSurprisals> babylm_reading_surprisals(const LoadedRun& run, const ReadingSuite& suite,
                                                           BabylmBackend backend) {
  if (!has_tokens_for(run.tokenizer.special(), backend)) return {};
  return surprisals_by(suite.times, [&](const std::vector<WordInContext>& words) {
    return official_rows(run, words, backend).sums(run, words.size(), backend == BabylmBackend::mntp);
  });
}

SuiteResult reading_result(const ReadingSuite& suite, const ReadingSurprisals& surprisals,
                           const std::optional<ReadingSurprisals>& official) {
  const auto gains = reading_gains(suite.times, surprisals.words, surprisals.previous);
  std::optional<ReadingGains> official_gains;
  if (official) official_gains = reading_gains(suite.times, official->words, official->previous);
  SuiteResult result;
  result.scores = reading_scores(gains, official_gains);
  for (size_t i = 0; i < suite.times.words.size(); ++i) {
    nlohmann::json item{{"item", i},
                        {"context", suite.times.words[i].context},
                        {"word", suite.times.words[i].word},
                        {"surprisal", surprisals.words[i]},
                        {"previous_surprisal", json_of(surprisals.previous[i])}};
    if (official) item["official_surprisal"] = official->words[i];
    result.items.push_back(item);
  }
  return result;
}

SuiteResult run_suite(const LoadedRun& run, const ReadingSuite& suite, const SuiteOptions& options) {
  const auto fault = reason_unsupported(run.config, suite, options);
  require<ConfigError>(fault.empty(), run.folder, ": ", fault);
  std::optional<ReadingSurprisals> official;
  if (const auto backend = babylm_backend(run.config)) official = babylm_reading_surprisals(run, suite, *backend);
  auto result = reading_result(suite, reading_surprisals(run, suite, options.scoring), official);
  result.scored_by = predicts_before_masks(run.config, options.scoring)
                         ? "surprisal of a word before three masks, its tokens from left to right"
                         : Scorer(run, options.scoring).description();
  if (predicts_before_masks(run.config, options.scoring) && asks_of_scorer(options.scoring))
    result.notes.emplace_back(
        "reading times of masked models are computed in rows of their own, without --cache, --stride and --precision; "
        "--as pll scores them with these");
  return result;
}

}  // namespace cloze
