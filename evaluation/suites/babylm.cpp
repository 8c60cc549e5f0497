#include "evaluation/suites/babylm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "evaluation/suites/statistics.h"
#include "evaluation/suites/token_rows.h"
#include "inference/scoring/encoded_passage.h"

namespace cloze {

namespace {

/// The objective is trained as the runs that a backend scores.
bool trains_for(const ObjectiveConfig& objective, BabylmBackend backend) {
  const auto& kind = as_kind(objective);
  switch (backend) {
    case BabylmBackend::mlm:
      return kind.fills_masks() && !kind.next_token();
    case BabylmBackend::mntp:
      return kind.predicts_shifted();
    case BabylmBackend::causal:
      return kind.is_generative() && !kind.layout();
    case BabylmBackend::enc_dec_mask:
    case BabylmBackend::enc_dec_prefix:
      return kind.is_generative() && kind.layout();
  }
  return false;
}

std::optional<BabylmBackend> backend_of(const ObjectiveConfig& objective, bool encoder_decoder) {
  if (encoder_decoder && as_kind(objective).is_generative()) return BabylmBackend::enc_dec_prefix;
  for (const auto backend : {BabylmBackend::mlm, BabylmBackend::mntp, BabylmBackend::causal})
    if (trains_for(objective, backend)) return backend;
  return {};
}

}  // namespace

std::optional<BabylmBackend> babylm_backend(const RunConfig& config) {
  const bool encoder_decoder = backbone_of(config.model).is_encoder_decoder();
  for (const auto& objective : config.objectives)
    if (const auto backend = backend_of(objective, encoder_decoder)) return backend;
  return {};
}

Tokenizer::Frame babylm_frame(const LoadedRun& run) {
  const auto& model = backbone_of(run.config.model);
  return run.tokenizer.frame(
      TextReader{.kind = kind_of(run.config.model), .end = model.is_generative() ? model.eos_token_id : -1});
}

float babylm_sum(std::span<const float> logs) {
  return at::tensor(std::vector<float>(logs.begin(), logs.end()), at::kFloat).sum().item<float>();
}

float babylm_sum(const Passage& passage, const PassageScore& score) {
  std::vector<float> logs;
  for (const auto& token : score.tokens)
    if (counts_from(passage.left.size(), token.begin, token.end))
      logs.push_back(static_cast<float>(token.log_probability));
  return babylm_sum(logs);
}

size_t babylm_choice(std::span<const float> sums) {
  size_t best = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    if (std::isnan(sums[i])) return i;
    if (sums[i] > sums[best]) best = i;
  }
  return best;
}

float babylm_first_probability(std::span<const float> sums) {
  const auto row = at::tensor(std::vector<float>(sums.begin(), sums.end()), at::kFloat);
  return at::softmax(row, 0)[0].item<float>();
}

double babylm_spearman(const std::vector<double>& a, const std::vector<double>& b) {
  require<DataError>(a.size() == b.size(), "a correlation of ", a.size(), " values with ", b.size());
  const auto is_nan = [](double x) { return std::isnan(x); };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (a.size() < 2 || std::any_of(a.begin(), a.end(), is_nan) || std::any_of(b.begin(), b.end(), is_nan)) return nan;
  // Ranks are multiples of a half, so that these sums are exact in any order; the last steps are those of numpy's
  // corrcoef.
  const auto x = ranks(a), y = ranks(b);
  const auto n = static_cast<double>(a.size());
  const double mean = 0.5 * (n + 1);
  double xx = 0, xy = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return nan;
  const double fact = 1 / (n - 1);
  return std::clamp(xy * fact / std::sqrt(yy * fact) / std::sqrt(xx * fact), -1.0, 1.0);
}

namespace {

/// The rows of all candidates, `counts` of them for each.
struct Rows {
  std::vector<TokenRow> rows;
  std::vector<size_t> counts;
};

size_t start_of(const BabylmCandidate& candidate) { return candidate.sentence.size() - candidate.completion.size(); }

void append(std::vector<int64_t>& ids, const std::vector<int64_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

/// The tokens of a text with those of its frame, and which of them count from `start` on.
struct FramedText {
  std::vector<int64_t> ids;
  std::vector<size_t> scored;
};
FramedText framed(const LoadedRun& run, const Tokenizer::Frame& frame, const std::string& text, size_t start) {
  FramedText framed_text{.ids = frame.before, .scored = {}};
  for (const auto& token : run.tokenizer.encode_with_offsets(text)) {
    if (counts_from(start, token.begin, token.end)) framed_text.scored.push_back(framed_text.ids.size());
    framed_text.ids.push_back(token.id);
  }
  append(framed_text.ids, frame.after);
  return framed_text;
}

void add_causal(const LoadedRun& run, const BabylmCandidate& candidate, const Tokenizer::Frame& frame, Rows& rows) {
  auto text = framed(run, frame, candidate.sentence, start_of(candidate));
  TokenRow row;
  for (const auto at : text.scored)
    if (at > 0) row.predicted.push_back({.position = static_cast<int64_t>(at) - 1, .target = text.ids[at]});
  if (!text.ids.empty()) text.ids.pop_back();
  row.read.ids = std::move(text.ids);
  rows.counts.push_back(1);
  rows.rows.push_back(std::move(row));
}

void add_masked_encoder(const LoadedRun& run, const BabylmCandidate& candidate, const Tokenizer::Frame& frame,
                        Rows& rows) {
  const auto& special = run.tokenizer.special();
  const auto text = framed(run, frame, candidate.sentence, start_of(candidate));
  for (const auto at : text.scored) {
    auto& row = rows.rows.emplace_back();
    row.read = {.ids = text.ids, .decoder = {special.bos, special.mask}};
    row.read.ids[at] = special.mask;
    row.predicted = {{.position = 1, .target = text.ids[at]}};
  }
  rows.counts.push_back(text.scored.size());
}

void add_prefix(const LoadedRun& run, const BabylmCandidate& candidate, Rows& rows) {
  const auto& special = run.tokenizer.special();
  auto& row = rows.rows.emplace_back();
  auto& [ids, decoder] = row.read;
  if (special.cls >= 0) ids.push_back(special.cls);
  if (candidate.prefix)
    for (const auto id : run.tokenizer.encode(*candidate.prefix)) ids.push_back(id);
  ids.push_back(special.mask);
  if (special.eos >= 0) ids.push_back(special.eos);
  decoder = {special.bos, special.mask};
  for (const auto target : run.tokenizer.encode(candidate.completion)) {
    row.predicted.push_back({.position = static_cast<int64_t>(row.predicted.size()) + 1, .target = target});
    decoder.push_back(target);
  }
  decoder.pop_back();  // the last one is a label only
  rows.counts.push_back(1);
}

/// The rows of a backend that is not read by the Scorer.
Rows rows_of(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates, BabylmBackend backend) {
  const auto frame = babylm_frame(run);
  Rows rows;
  for (const auto& candidate : candidates) {
    if (backend == BabylmBackend::causal) add_causal(run, candidate, frame, rows);
    if (backend == BabylmBackend::enc_dec_mask) add_masked_encoder(run, candidate, frame, rows);
    if (backend == BabylmBackend::enc_dec_prefix) add_prefix(run, candidate, rows);
  }
  return rows;
}

std::vector<float> sums_of_rows(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates,
                                BabylmBackend backend) {
  const auto rows = rows_of(run, candidates, backend);
  const auto logs = log_probabilities(run, rows.rows);
  std::vector<float> sums;
  size_t at = 0;
  for (const auto count : rows.counts) {
    std::vector<float> joined;
    for (const size_t end = at + count; at < end; ++at) joined.insert(joined.end(), logs[at].begin(), logs[at].end());
    sums.push_back(babylm_sum(joined));
  }
  return sums;
}

std::vector<float> sums_of_scorer(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates,
                                  ScoringOptions options) {
  options.form = ScoringForm::pll;
  std::vector<Passage> passages;
  for (const auto& candidate : candidates)
    passages.push_back({.left = candidate.sentence.substr(0, start_of(candidate)), .scored = candidate.completion});
  std::vector<float> sums;
  const auto scores = Scorer(run, options).score(passages);
  for (size_t i = 0; i < scores.size(); ++i) sums.push_back(babylm_sum(passages[i], scores[i]));
  return sums;
}

/// The objectives of a run in words.
std::string kinds_of(const RunConfig& config) {
  std::vector<std::string> kinds;
  for (const auto& objective : config.objectives) kinds.push_back(kind_of(objective));
  return listed(kinds, "and");
}

bool is_trained_for(const RunConfig& config, BabylmBackend backend) {
  return std::any_of(config.objectives.begin(), config.objectives.end(),
                     [&](const auto& objective) { return trains_for(objective, backend); });
}

/// A backend that scores other runs than this one.
std::string other_run(const RunConfig& config, BabylmBackend backend, const std::string& scored) {
  const auto own = babylm_backend(config);
  return concat("backend ", name_of(backend), " scores ", scored, ", and the run is one of ", kinds_of(config),
                own ? concat("; choose ", name_of(*own)) : "; the published program has no backend for it");
}

}  // namespace

std::string babylm_fault(const LoadedRun& run, BabylmBackend backend) {
  const bool two = backbone_of(run.config.model).is_encoder_decoder();
  const auto& special = run.tokenizer.special();
  const auto name = name_of(backend);
  switch (backend) {
    case BabylmBackend::causal:
      if (two) return concat("backend ", name, " scores decoders; use enc_dec_prefix or enc_dec_mask");
      if (!is_trained_for(run.config, backend) && !is_trained_for(run.config, BabylmBackend::mntp))
        return other_run(run.config, backend, "runs of clm");
      return "";
    case BabylmBackend::mlm:
    case BabylmBackend::mntp:
      return is_trained_for(run.config, backend) ? "" : other_run(run.config, backend, concat("runs of ", name));
    case BabylmBackend::enc_dec_mask:
    case BabylmBackend::enc_dec_prefix:
      if (!two) return other_run(run.config, backend, "encoder-decoders");
      if (special.mask < 0 || special.bos < 0)
        return concat("backend ", name,
                      " of the published program needs a tokenizer with a mask token and a bos token, such as BART's");
      return "";
  }
  return "";
}

std::optional<BabylmBackend> official_backend(const LoadedRun& run) {
  const auto own = babylm_backend(run.config);
  return own && babylm_fault(run, *own).empty() ? own : std::nullopt;
}

std::string no_official_backend(const LoadedRun& run) {
  const auto own = babylm_backend(run.config);
  return own ? babylm_fault(run, *own)
             : concat("the published program has no backend for runs of ", kinds_of(run.config));
}

bool adds_up_scores(BabylmBackend backend, ScoringForm form) {
  return (backend == BabylmBackend::mlm || backend == BabylmBackend::mntp) && form == ScoringForm::pll;
}

std::vector<float> babylm_sums(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates,
                               BabylmBackend backend, const ScoringOptions& options) {
  const auto fault = babylm_fault(run, backend);
  require<ConfigError>(fault.empty(), run.folder, ": ", fault);
  for (const auto& candidate : candidates)
    require<DataError>(candidate.sentence.ends_with(candidate.completion), "the completion '", candidate.completion,
                       "' is not the end of '", candidate.sentence, "'");
  if (backend == BabylmBackend::mlm || backend == BabylmBackend::mntp) return sums_of_scorer(run, candidates, options);
  return sums_of_rows(run, candidates, backend);
}

void check_babylm_fit(const LoadedRun& run, const std::vector<BabylmCandidate>& candidates, BabylmBackend backend) {
  check_fit(run, rows_of(run, candidates, backend).rows);
}

}  // namespace cloze
