#include "inference/scoring/scorer.h"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.h"
#include "core/fingerprint.h"
#include "core/log.h"
#include "core/spelling.h"
#include "data/word_starts.h"
#include "inference/scoring/form_rules.h"
#include "inference/scoring/forward.h"
#include "inference/scoring/rows.h"
#include "inference/scoring/score_cache.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

/// The tokens in rows of a part of the windows: rows of a part are merged and sorted together.
constexpr size_t tokens_at_once = 2 << 20;

/// The run whose network gives the scores: of rtd that is the generator where masked tokens are predicted.
LoadedRun scored_run(const LoadedRun& run, ScoringForm form) {
  auto scored = run;
  const auto* objective = scored_objective(run.config.objectives, backbone_of(run.config.model), form);
  if (objective && as_kind(*objective).replaces_tokens() && form != ScoringForm::detection) take_generator(scored);
  return scored;
}

ScoringForm checked_form(const LoadedRun& run, const ScoringOptions& options) {
  require_tokenizer(run);
  const auto fault = scoring_fault(run.config, options.form);
  require<ConfigError>(fault.empty(), run.folder, ": ", fault);
  return options.form ? *options.form : default_form(run.config);
}

/// Raised when the rows or the head of a score change.
constexpr int score_rules = 3;

uint64_t hash_of_weights(const Network& network) {
  uint64_t hash = 0;
  for (const auto& [name, param] : collect_params(network)) {
    const auto values = param.value().detach().to(at::kCPU).contiguous();
    hash = XXH3_64bits_withSeed(name.data(), name.size(), hash);
    hash = XXH3_64bits_withSeed(values.data_ptr(), values.nbytes(), hash);
  }
  return hash;
}

/// What tells the scores of one network from those of another: sixteen hex digits of the weights in memory, the model,
/// its objectives, the tokenizer, and how texts are scored.
std::string scores_name(const LoadedRun& run, ScoringForm form, int64_t stride, Precision precision) {
  RunConfig described;
  described.model = run.config.model;
  described.objectives = run.config.objectives;
  return hash_hex(concat("rules ", score_rules, "\nweights ", hash_of_weights(*run.network), "\ntokenizer ",
                         run.tokenizer.fingerprint(), "\nform ", name_of(form), "\nstride ", stride, "\nrow ",
                         row_length(run, static_cast<size_t>(stride)),
                         computes_in_bf16(*run.network, precision) ? "\nbf16\n" : "\n", to_yaml(described)));
}

/// Passages that are equal, and what is known of them.
struct Distinct {
  std::vector<size_t> first;   ///< index of the first passage of each kind
  std::vector<size_t> kind;    ///< of each passage
  std::vector<int64_t> count;  ///< passages of each kind
};
Distinct distinct_passages(std::span<const Passage> passages) {
  const auto less = [&](size_t a, size_t b) {
    const auto &x = passages[a], &y = passages[b];
    return std::tie(x.scored, x.left, x.right) < std::tie(y.scored, y.left, y.right);
  };
  std::map<size_t, size_t, decltype(less)> kinds(less);
  Distinct distinct;
  for (size_t i = 0; i < passages.size(); ++i) {
    const auto [entry, fresh] = kinds.try_emplace(i, distinct.first.size());
    if (fresh) {
      distinct.first.push_back(i);
      distinct.count.push_back(0);
    }
    distinct.kind.push_back(entry->second);
    ++distinct.count[entry->second];
  }
  return distinct;
}

/// The score of a passage before its tokens have log-probabilities.
PassageScore unscored(const Passage& passage, const EncodedPassage& encoded) {
  PassageScore score{.words = count_words(passage.scored), .bytes = static_cast<int64_t>(passage.scored.size())};
  for (size_t at = encoded.begin; at < encoded.end; ++at) {
    const auto& token = encoded.tokens[at];
    score.tokens.push_back({.id = token.id, .begin = token.begin, .end = token.end});
  }
  return score;
}

/// The numbers of a score that are kept: log-probabilities, then with `ranks` ranks, then the best log-probabilities.
std::vector<double> values_of(const PassageScore& score, bool ranks) {
  std::vector<double> values;
  for (const auto& token : score.tokens) values.push_back(token.log_probability);
  if (!ranks) return values;
  for (const auto& token : score.tokens) values.push_back(static_cast<double>(token.rank));
  for (const auto& token : score.tokens) values.push_back(token.best);
  return values;
}

/// Takes kept numbers; false for those of another number of tokens.
bool take_values(std::span<const double> values, bool ranks, PassageScore& score) {
  const size_t count = score.tokens.size();
  if (values.size() != (ranks ? 3 : 1) * count) return false;
  for (size_t i = 0; i < count; ++i) {
    auto& token = score.tokens[i];
    token.log_probability = values[i];
    if (!ranks) continue;
    token.rank = static_cast<int64_t>(values[count + i]);
    token.best = values[2 * count + i];
  }
  return true;
}

void add_up(PassageScore& score) {
  score.sum = 0;
  for (const auto& token : score.tokens) score.sum += token.log_probability;
}

/// Counts passages that are done, and reports them.
class Done {
 public:
  Done(const std::function<void(int64_t, int64_t)>& report, size_t all)
      : report_(report), all_(static_cast<int64_t>(all)) {}
  void add(int64_t passages) {
    done_ += passages;
    if (report_) report_(done_, all_);
  }

 private:
  const std::function<void(int64_t, int64_t)>& report_;
  int64_t done_ = 0, all_;
};

/// The work on some passages: what is known of each kind, and what is left.
struct Work {
  std::span<const Passage> passages;
  Distinct all;
  std::vector<EncodedPassage> encoded;  ///< of each kind, those without a score
  std::vector<PassageScore> scores;
  std::vector<size_t> left;  ///< of each kind, the tokens without a score

  const Passage& passage(size_t kind) const { return passages[all.first[kind]]; }
};

}  // namespace

struct Scorer::Impl {
  Impl(const LoadedRun& of, const ScoringOptions& wanted)
      : options(wanted),
        form(checked_form(of, wanted)),
        opened(of.network),
        run(scored_run(of, form)),
        rows(make_scoring_rows(run, form)),
        forward(*run.network, head_of(*scored_objective(run.config.objectives, backbone_of(run.config.model), form)),
                form == ScoringForm::detection, wanted.precision, wanted.batch_tokens) {
    const auto room = rows->room(stride());
    require<ConfigError>(room > 0, run.folder, ": the model reads at most ",
                         backbone_of(run.config.model).max_input_length(),
                         " tokens, which leaves none for a text between special ones; score a longer model");
    require<ConfigError>(options.stride >= 0 && static_cast<size_t>(options.stride) <= room, run.folder, ": reads ",
                         room, " tokens of a text at once, and the stride is ", options.stride,
                         "; choose one from 1 to ", room);
  }

  /// Opens the cache, when something is scored: whether texts fit is known without it.
  void open_cache() const {
    if (options.cache.empty() || cache || gave_up) return;
    const auto name = scores_name(run, form, options.stride, options.precision);
    cache.emplace(options.cache, options.ranks ? name + "-ranks" : name);
  }

  void check_fits(std::span<const Passage> passages, size_t index, const EncodedPassage& encoded) const {
    if (encoded.begin == encoded.end || !rows->windows(encoded, stride()).empty()) return;
    const bool takes_stride = options.takes_stride && form != ScoringForm::pll_span;
    throw PassageError(
        index,
        concat("the text '", shortened(passages[index].text()), "' has ", encoded.tokens.size(), " tokens, and ",
               run.folder, " reads at most ", rows->room(stride()), " of a text",
               is_unlimited(run.config) ? " in a gigabyte of attention scores" : "", "; shorten it, or ",
               takes_stride ? "score it in windows with a stride (--stride N)" : "take a model that reads more"));
  }

  void check_finite(double value, std::span<const Passage> passages, size_t index) const {
    if (std::isfinite(value)) return;
    throw PassageError(index, concat(run.folder, ": its logits for the text '", shortened(passages[index].text()),
                                     "' are not finite; the training diverged or the weights are damaged: take an "
                                     "earlier checkpoint, or import it again"));
  }

  bool by_generator() const { return run.network != opened; }
  size_t stride() const { return static_cast<size_t>(options.stride); }

  /// The windows of a model that has no length of its own.
  std::string windows() const {
    if (stride() == 0 || !is_unlimited(run.config)) return "";
    return concat(", in windows of ", row_length(run, stride()), " tokens (data.max_seq_length)");
  }

  /// Tokenizes the passages of a kind, and takes their score from the cache. Throws DataError if they do not fit.
  void read(Work& work, size_t kind) const {
    const auto& passage = work.passage(kind);
    auto encoded = encode(run.tokenizer, passage, rows->text());
    auto& score = work.scores[kind] = unscored(passage, encoded);
    const auto known = cache ? cache->find(passage) : std::nullopt;
    if (known && take_values(*known, options.ranks, score)) return;
    check_fits(work.passages, work.all.first[kind], encoded);
    work.left[kind] = score.tokens.size();
    work.encoded[kind] = std::move(encoded);
  }

  /// Scores the rows of windows from `next` on, as many as are merged and sorted together.
  void score_part(Work& work, WindowPlace& next, Done& done) const {
    auto made = next_rows(*rows, work.encoded, stride(), tokens_at_once, next);
    forward.score(
        distinct(std::move(made)),
        [&](const Prediction& prediction, const Answer& answer) {
          const size_t kind = prediction.passage;
          check_finite(answer.log_probability, work.passages, work.all.first[kind]);
          auto& token = work.scores[kind].tokens[prediction.token];
          token.log_probability = answer.log_probability;
          token.rank = answer.rank;
          token.best = answer.best;
          if (--work.left[kind] > 0) return;
          done.add(work.all.count[kind]);
          if (cache) cache->add(work.passage(kind), values_of(work.scores[kind], options.ranks));
        },
        options.ranks);
    save();
  }

  /// A cache that cannot be written is opened up: the scores are worth more.
  void save() const {
    if (!cache) return;
    try {
      cache->flush();
    } catch (const Error& error) {
      log_warning("score", concat(error.what(), "; scores are no longer kept"));
      cache.reset();
      gave_up = true;
    }
  }

  ScoringOptions options;
  ScoringForm form;
  std::shared_ptr<Network> opened;
  LoadedRun run;  ///< whose network gives the scores
  std::unique_ptr<RowsOfPassages> rows;
  RowScorer forward;
  mutable std::optional<ScoreCache> cache;
  mutable bool gave_up = false;  ///< the cache cannot be written
};

Scorer::Scorer(const LoadedRun& run, const ScoringOptions& options) : impl_(std::make_unique<Impl>(run, options)) {}
Scorer::~Scorer() = default;
ScoringForm Scorer::form() const { return impl_->form; }
std::string Scorer::description() const {
  return impl_->rows->description() + (impl_->by_generator() ? ", by the generator" : "") + impl_->windows();
}

void Scorer::check_fit(std::span<const Passage> passages) const {
  for (size_t i = 0; i < passages.size(); ++i)
    impl_->check_fits(passages, i, encode(impl_->run.tokenizer, passages[i], impl_->rows->text()));
}

std::vector<PassageScore> Scorer::score(std::span<const Passage> passages) const {
  const auto& impl = *impl_;
  impl.open_cache();
  Work work{.passages = passages, .all = distinct_passages(passages), .encoded = {}, .scores = {}, .left = {}};
  Done done(impl.options.progress, passages.size());
  const size_t kinds = work.all.first.size();
  work.encoded.resize(kinds);
  work.scores.resize(kinds);
  work.left.resize(kinds);
  // All texts are read before any is scored, so that one that is too long is refused at once.
  for (size_t k = 0; k < kinds; ++k) {
    impl.read(work, k);
    if (work.left[k] == 0) done.add(work.all.count[k]);
  }
  for (WindowPlace next; next.passage < kinds;) impl.score_part(work, next, done);
  for (auto& score : work.scores) add_up(score);
  std::vector<PassageScore> scores;
  scores.reserve(passages.size());
  for (const auto kind : work.all.kind) scores.push_back(work.scores[kind]);
  return scores;
}

}  // namespace cloze
