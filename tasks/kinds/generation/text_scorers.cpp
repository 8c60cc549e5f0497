// Metrics of texts against their references.
#include <cmath>
#include <numeric>

#include "data/text_metrics.h"
#include "tasks/scores/task_scorer.h"
#include "tasks/scores/squad_score.h"

namespace cloze {

namespace {

constexpr double unknown_loss = std::numeric_limits<double>::quiet_NaN();

/// What a text adds to the metrics.
struct JudgedText {
  TextSums sums{};
  double f1 = 0, loss = 0, tokens = 0;
};

JudgedText judged_text(const TaskItem& item, const TaskPrediction& prediction) {
  const auto& references = item.gold.texts;
  const auto& text = prediction.answer.texts.front();
  const auto tokens = static_cast<double>(prediction.count);
  return {.sums = text_sums(text, references),
          .f1 = score_answer(text, references, SquadVersion::v1_1).f1,
          .loss = tokens > 0 ? tokens * prediction.loss : 0,
          .tokens = tokens};
}

/// The metrics of texts of which each occurs so many times, BLEU and chrF between 0 and 1 as the others.
void score_texts(const std::vector<JudgedText>& texts, std::span<const int64_t> weights, std::span<double> values) {
  TextSums sums;
  double f1 = 0, loss = 0, tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (weights[i] == 0) continue;
    const auto times = static_cast<double>(weights[i]);
    sums.add(texts[i].sums, times);
    f1 += times * texts[i].f1;
    loss += times * texts[i].loss;
    tokens += times * texts[i].tokens;
  }
  const auto means = rouge(sums);
  const double all[] = {means.rouge1,      means.rouge2,           means.rougeL,
                        means.rougeLsum,   bleu(sums).score / 100, chrf(sums) / 100,
                        exact_match(sums), f1 / sums.texts,        tokens > 0 ? loss / tokens : unknown_loss};
  std::ranges::copy(all, values.begin());
}

}  // namespace

TaskScorer text_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto n = static_cast<int64_t>(scored.size());
  std::vector<JudgedText> texts;
  int64_t tokens = 0;
  for (size_t i = 0; i < scored.size(); ++i) {
    texts.push_back(judged_text(*scored.items[i], *scored.predictions[i]));
    tokens += scored.predictions[i]->count;
  }
  scorer.cells = scored.size();
  scorer.cell_of.resize(scored.size());
  std::iota(scorer.cell_of.begin(), scorer.cell_of.end(), 0u);
  for (const auto* name : {"rouge1", "rouge2", "rougeL", "rougeLsum", "bleu", "chrf", "exact_match", "f1"})
    scorer.metrics.push_back({.name = name, .count = n});
  scorer.metrics.push_back({.name = "loss", .undefined = "texts say nothing of it", .count = tokens});
  scorer.values = [texts = std::move(texts)](std::span<const int64_t> weights, std::span<double> values) {
    score_texts(texts, weights, values);
  };
  return scorer;
}

}  // namespace cloze
