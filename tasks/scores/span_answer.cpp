#include "tasks/scores/span_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_set>

#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"
#include "tasks/scores/squad_score.h"

namespace cloze {

std::vector<double> mean_of_windows(std::span<const std::vector<double>> logits) {
  std::vector<double> mean(logits.front().size());
  for (const auto& window : logits)
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += window[i];
  for (auto& value : mean) value /= static_cast<double>(logits.size());
  return mean;
}

namespace {

/// A pair of tokens in a window.
struct TokenPair {
  double score = 0;
  size_t window = 0;
  int64_t first = 0, last = 0;
};

bool is_better(const TokenPair& a, const TokenPair& b) {
  if (a.score != b.score) return a.score > b.score;
  return std::tie(a.window, a.first, a.last) < std::tie(b.window, b.first, b.last);
}

/// The best pairs of all windows. The same answer may stand in two windows, and pairs of other bytes may have the same
/// text, so that there are more of them than answers are wanted.
std::vector<TokenPair> best_pairs(std::span<const TaskRow> windows, std::span<const SpanLogits> logits, size_t most,
                                  int64_t max_length) {
  std::vector<TokenPair> best;  // a heap whose first one is the worst
  for (size_t w = 0; w < windows.size(); ++w) {
    const auto& row = windows[w];
    for (auto first = row.second_begin; first < row.second_end; ++first) {
      const auto after = std::min(row.second_end, first + max_length);
      for (auto last = first; last < after; ++last) {
        const TokenPair pair{logits[w].start[static_cast<size_t>(first)] + logits[w].end[static_cast<size_t>(last)], w,
                             first, last};
        if (std::isnan(pair.score) || (best.size() == most && !is_better(pair, best.front()))) continue;
        if (best.size() == most) {
          std::pop_heap(best.begin(), best.end(), is_better);
          best.pop_back();
        }
        best.push_back(pair);
        std::push_heap(best.begin(), best.end(), is_better);
      }
    }
  }
  std::sort(best.begin(), best.end(), is_better);
  return best;
}

/// The end of the marks after `end`, which belong to the character before it.
int64_t after_marks(const std::string& text, int64_t end) {
  for (auto next = static_cast<size_t>(end); next < text.size();) {
    if (!is_nonspacing_mark(next_code_point(text, next))) break;
    end = static_cast<int64_t>(next);
  }
  return end;
}

/// Probabilities of the candidates and of no answer.
void set_probabilities(FoundAnswer& answer) {
  double highest = answer.null_score;
  for (const auto& candidate : answer.n_best) highest = std::max(highest, candidate.score);
  double sum = answer.null_probability = std::exp(answer.null_score - highest);
  for (auto& candidate : answer.n_best) sum += candidate.probability = std::exp(candidate.score - highest);
  answer.null_probability /= sum;
  for (auto& candidate : answer.n_best) candidate.probability /= sum;
}

}  // namespace

FoundAnswer answer_of(const std::string& context, std::span<const TaskRow> windows, std::span<const SpanLogits> logits,
                      const AnswerOptions& options) {
  FoundAnswer answer{.null_score = std::numeric_limits<double>::infinity()};
  for (size_t w = 0; w < windows.size(); ++w) {
    const auto at = static_cast<size_t>(windows[w].class_token);
    answer.null_score = std::min(answer.null_score, logits[w].start[at] + logits[w].end[at]);
  }
  const auto wanted = static_cast<size_t>(options.n_best);
  std::unordered_set<std::string> known;
  for (const auto& pair : best_pairs(windows, logits, wanted * 4 * windows.size(), options.max_answer_length)) {
    if (answer.n_best.size() == wanted) break;
    const auto& bytes = windows[pair.window].bytes;
    const auto begin = bytes[static_cast<size_t>(pair.first)][0];
    const auto end = after_marks(context, bytes[static_cast<size_t>(pair.last)][1]);
    if (begin >= end) continue;  // of a token that stands for nothing in the context
    const auto text = context.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    if (!known.insert(text).second) continue;
    answer.n_best.push_back({.text = text, .begin = begin, .end = end, .score = pair.score});
  }
  if (!answer.n_best.empty()) answer.margin = answer.null_score - answer.n_best.front().score;
  set_probabilities(answer);
  return answer;
}

namespace {

/// What the score of a question gains by its answer, compared with none.
double gain_of_answer(const TaskItem& item, const TaskPrediction& prediction, AnswerMeasure measure) {
  std::vector<std::string> right;
  for (const auto& answer : item.gold.spans) right.push_back(answer.text);
  const auto score = [&](const std::string& answer) {
    const auto of_both = score_answer(answer, right, SquadVersion::v2_0);
    return measure == AnswerMeasure::f1 ? of_both.f1 : of_both.exact;
  };
  return score(prediction.answer.text()) - score("");
}

}  // namespace

double best_answer_threshold(const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions,
                             AnswerMeasure measure) {
  std::map<double, double> gains;  // by margin
  for (size_t i = 0; i < items.size(); ++i)
    if (std::isfinite(predictions[i].no_answer))
      gains[predictions[i].no_answer] += gain_of_answer(items[i], predictions[i], measure);
  if (gains.empty()) return 0;
  constexpr double away = 1;  // from margins that have no neighbour
  double threshold = gains.begin()->first - away;
  double sum = 0, most = 0;
  for (auto at = gains.begin(); at != gains.end(); ++at) {
    sum += at->second;
    if (sum <= most) continue;
    most = sum;
    const auto next = std::next(at);
    threshold = next == gains.end() ? at->first + away : std::midpoint(at->first, next->first);
  }
  return threshold;
}

}  // namespace cloze
