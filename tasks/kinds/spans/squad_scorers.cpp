// Metrics of answers in a context, as SQuAD's programs print them.
#include <cmath>
#include <limits>
#include <numeric>

#include "tasks/scores/squad_score.h"
#include "tasks/scores/task_scorer.h"

namespace cloze {

namespace {

/// A question as it is scored.
struct ScoredQuestion {
  AnswerScore score{};
  bool has_answer = false;  ///< the context has one
  bool is_answered = false;
  bool is_missing = false;
};

ScoredQuestion score_question(const TaskItem& item, const TaskPrediction& prediction, SquadVersion version) {
  std::vector<std::string> right;
  for (const auto& answer : item.gold.spans) right.push_back(answer.text);
  ScoredQuestion question{.has_answer = !right.empty(), .is_answered = !prediction.answer.spans.empty()};
  question.is_missing = prediction.id.empty();
  if (!question.is_missing) question.score = score_answer(prediction.answer.text(), right, version);
  return question;
}

std::vector<ScoredQuestion> score_questions(const ScoredItems& scored) {
  std::vector<ScoredQuestion> questions;
  questions.reserve(scored.size());
  for (size_t i = 0; i < scored.size(); ++i)
    questions.push_back(score_question(*scored.items[i], *scored.predictions[i], scored.squad));
  return questions;
}

/// The score of a question that gets no answer where that is likelier than the threshold.
AnswerScore above_threshold(const ScoredQuestion& question, double no_answer, const std::optional<double>& threshold) {
  if (!threshold || !(no_answer > *threshold)) return question.score;
  const double right = question.has_answer ? 0 : 1;
  return {right, right};
}

/// Sums of an article, or of a single question: all, those with an answer, those without.
struct AnswerSums {
  std::array<double, 3> exact{}, f1{};
  std::array<int64_t, 3> count{};
  auto operator<=>(const AnswerSums&) const = default;
  void add(const AnswerScore& score, bool has_answer) {
    for (const size_t part : {size_t{0}, has_answer ? size_t{1} : size_t{2}}) {
      exact[part] += score.exact;
      f1[part] += score.f1;
      ++count[part];
    }
  }
};

/// Groups where every question is of a named one, else a unit for each question.
ItemGroups units_of(const ScoredItems& scored) {
  const bool are_named = std::ranges::none_of(scored.items, [](const auto* item) { return item->group.empty(); });
  auto groups = are_named ? groups_of(scored) : ItemGroups{};
  if (groups.count > 1) return groups;
  groups.group_of.resize(scored.size());
  std::iota(groups.group_of.begin(), groups.group_of.end(), 0u);
  groups.count = scored.size();
  return groups;
}

/// The metrics of all questions and, of SQuAD 2.0, of those with an answer and those without.
std::vector<ScoredMetric> answer_metrics(const AnswerSums& all, size_t parts, bool are_single) {
  constexpr std::array prefixes{"", "HasAns_", "NoAns_"};
  constexpr std::array missing{"there is no question", "no question has an answer", "every question has an answer"};
  std::vector<ScoredMetric> metrics;
  for (size_t part = 0; part < parts; ++part) {
    const std::string prefix = prefixes[part];
    metrics.push_back({.name = parts == 1 ? "exact_match" : prefix + "exact",
                       .undefined = missing[part],
                       .is_proportion = are_single,
                       .count = all.count[part]});
    metrics.push_back({.name = prefix + "f1", .undefined = missing[part], .count = all.count[part]});
  }
  return metrics;
}

}  // namespace

TaskScorer answer_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto questions = score_questions(scored);
  auto groups = units_of(scored);
  std::vector<AnswerSums> units(groups.count);
  AnswerSums all;
  for (size_t i = 0; i < questions.size(); ++i) {
    if (questions[i].is_missing && scored.squad == SquadVersion::v2_0) continue;
    const auto score =
        above_threshold(questions[i], scored.predictions[i]->no_answer, scored.options->no_answer_threshold);
    units[groups.group_of[i]].add(score, questions[i].has_answer);
    all.add(score, questions[i].has_answer);
  }
  const bool are_single = groups.count == scored.size();
  scorer.unit_of = std::move(groups.group_of);
  const auto cells = number_cells(units, scorer);
  const size_t parts = scored.squad == SquadVersion::v2_0 ? 3 : 1;
  scorer.metrics = answer_metrics(all, parts, are_single);
  scorer.values = [cells, parts](std::span<const int64_t> weights, std::span<double> values) {
    for (size_t part = 0; part < parts; ++part) {
      double exact = 0, f1 = 0, count = 0;
      for (size_t c = 0; c < cells.size(); ++c) {
        const auto weight = static_cast<double>(weights[c]);
        exact += weight * cells[c].exact[part];
        f1 += weight * cells[c].f1[part];
        count += weight * static_cast<double>(cells[c].count[part]);
      }
      values[2 * part] = exact / count;  // NaN for none
      values[2 * part + 1] = f1 / count;
    }
  };
  return scorer;
}

bool is_exact_answer(const TaskItem& item, const TaskPrediction& prediction, const ScoredItems& scored) {
  const auto question = score_question(item, prediction, scored.squad);
  return above_threshold(question, prediction.no_answer, scored.options->no_answer_threshold).exact == 1;
}

TaskScorer threshold_scorer(const ScoredItems& scored) {
  TaskScorer scorer;
  const auto questions = score_questions(scored);
  const auto margin = [&](size_t i) { return scored.predictions[i]->no_answer; };
  auto order = scored.options->no_answer_order;
  if (order.empty()) {
    order.resize(scored.size());
    std::iota(order.begin(), order.end(), size_t{0});
  }
  std::ranges::stable_sort(order, {}, margin);
  // From the threshold at which no question has an answer upwards.
  const auto best = [&](const auto& score_of) {
    double without = 0, count = 0;
    for (const auto& question : questions) {
      without += question.has_answer ? 0 : 1;
      count += question.is_missing ? 0 : 1;
    }
    double now = without, most = without, threshold = 0;
    for (const auto i : order) {
      const auto& question = questions[i];
      if (question.is_missing) continue;
      now += question.has_answer ? score_of(question) : question.is_answered ? -1 : 0;
      if (now > most) {
        most = now;
        threshold = margin(i);
      }
    }
    return std::array{most / count, threshold};
  };
  const auto exact = best([](const ScoredQuestion& question) { return question.score.exact; });
  const auto f1 = best([](const ScoredQuestion& question) { return question.score.f1; });
  const auto n = std::ranges::count(questions, false, &ScoredQuestion::is_missing);
  for (const auto* name : {"best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"})
    scorer.metrics.push_back({.name = name, .undefined = "there is no question", .has_interval = false, .count = n});
  scorer.values = [exact, f1](std::span<const int64_t>, std::span<double> values) {
    std::ranges::copy(std::array{exact[0], exact[1], f1[0], f1[1]}, values.begin());
  };
  return scorer;
}

}  // namespace cloze
