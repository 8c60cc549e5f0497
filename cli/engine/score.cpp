// The verb `score`.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/engine/parts.h"
#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "inference/scoring/passage_lines.h"
#include "inference/scoring/scorer.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string json_line(const LoadedRun& run, const Passage& passage, const PassageScore& score, Normalisation by,
                      bool tokens) {
  json line{{"text", passage.text()},
            {"sum", score.sum},
            {"tokens", score.tokens.size()},
            {"words", score.words},
            {"bytes", score.bytes}};
  if (by != Normalisation::sum) line["normalised"] = normalised(score, by);
  if (tokens) {
    json list = json::array();
    for (const auto& token : score.tokens)
      list.push_back({{"token", run.tokenizer.piece(token.id)},
                      {"begin", token.begin},
                      {"end", token.end},
                      {"log_probability", token.log_probability}});
    line["log_probabilities"] = list;
  }
  return json_text(line) + "\n";
}

/// Sums over all texts.
struct Totals {
  double sum = 0;
  int64_t tokens = 0, words = 0, bytes = 0, without_tokens = 0, unknown = 0;
  void add(const PassageScore& score, int64_t unknown_id) {
    sum += score.sum;
    tokens += static_cast<int64_t>(score.tokens.size());
    words += score.words;
    bytes += score.bytes;
    without_tokens += score.tokens.empty();
    for (const auto& token : score.tokens) unknown += token.id == unknown_id;
  }
};

/// A perplexity with three decimals, or where it has more digits than anyone reads, with four of them.
std::string perplexity(double value) {
  if (value < 1e6) return fixed(value, 3);
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", value);
  return text;
}

/// `perplexity 12.3 by token, 45.6 by word; 1.234 bits per byte`
std::string summary(const Totals& all, bool is_likelihood) {
  const auto by = [&](int64_t parts) { return -all.sum / static_cast<double>(std::max<int64_t>(parts, 1)); };
  const std::string pseudo = is_likelihood ? "perplexity " : "pseudo-perplexity ";
  return concat(pseudo, perplexity(std::exp(by(all.tokens))), " by token, ", perplexity(std::exp(by(all.words))),
                " by word; ", fixed(by(all.bytes) / std::log(2), 4), " bits per byte");
}

}  // namespace

int run_score(const ScoreCommand& c) {
  const auto run = open_chosen(c.run, c.checkpoint);
  ScoringOptions options{.form = c.form, .stride = c.stride, .cache = c.cache, .precision = c.precision};
  options.progress = [shown = Clock::time_point()](int64_t done, int64_t all) mutable {
    const auto now = Clock::now();
    if (done < all && now - shown < std::chrono::milliseconds(200)) return;
    shown = now;
    const auto texts = concat(thousands(static_cast<uint64_t>(done)), " of ", thousands(static_cast<uint64_t>(all)));
    log_progress({{"scoring  " + texts + " texts"}, static_cast<double>(done) / static_cast<double>(all)}, false);
  };
  const Scorer scorer(run, options);
  const auto file = read_passages(c.file);
  const auto& passages = file.passages;
  const auto scores = with_lines(file, [&] { return scorer.score(passages); });
  end_progress();
  Totals all;
  for (size_t i = 0; i < passages.size(); ++i) {
    all.add(scores[i], run.tokenizer.special().unk);
    if (c.json)
      print_data(json_line(run, passages[i], scores[i], c.normalise, c.tokens));
    else
      print_text(
          concat(fixed(normalised(scores[i], c.normalise), 4), "\t", shortened(in_one_line(passages[i].text())), "\n"));
  }
  log_info("score", scorer.description());
  if (all.without_tokens > 0)
    log_warning("score",
                concat("texts without tokens, which score 0 and make the bits per byte too low: ", all.without_tokens));
  if (all.unknown > 0)
    log_warning("score",
                concat(all.unknown, " of ", all.tokens, " tokens are unknown to the tokenizer, and were scored as ",
                       run.tokenizer.piece(run.tokenizer.special().unk), ", so that the bits per byte are too low"));
  if (all.tokens > 0 && scorer.form() != ScoringForm::detection)  // whose scores are no probabilities of texts
    log_info("score", summary(all, scorer.form() == ScoringForm::likelihood));
  return 0;
}

}  // namespace cloze
