#pragma once
// From a model's numbers for rows to what it predicts for their item.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/item.h"
#include "tasks/rows/task_row.h"

namespace cloze {

/// The mean of the logits of a text's windows. `logits` [W][L], W > 0; returns [L]
std::vector<double> mean_of_windows(std::span<const std::vector<double>> logits);

/// Logits of each position of a row to be the first and the last token of the answer; both [T].
struct SpanLogits {
  std::vector<double> start{}, end{};
};

/// A possible answer.
struct AnswerCandidate {
  std::string text{};          ///< the substring of the context
  int64_t begin = 0, end = 0;  ///< bytes of the context
  double score = 0;            ///< start logit + end logit
  double probability = 0;      ///< among the candidates of the list and no answer
};

struct AnswerOptions {
  int64_t n_best = 20;
  int64_t max_answer_length = 30;  ///< tokens
};

/// What is found in the windows of an item.
struct FoundAnswer {
  std::vector<AnswerCandidate>
      n_best{};           ///< by falling score, each text once; empty: no window has a token of the context
  double null_score = 0;  ///< the lowest of a window's sums at the class token
  double null_probability = 0;
  double margin = 0;  ///< null score less the best score: no answer above a threshold, 0 if it was not chosen
};

/// The answer in the windows of an item: the best pairs of a first and a last token within the context, at most
/// `max_answer_length` tokens, over all windows. Of equal scores the earlier window, then the earlier tokens.
///
/// context  of the item
/// windows  its rows
/// logits   of each row
/// An answer ends with the marks that belong to its last character, and a context without a token is no answer.
/// Source: google-research/bert, run_squad.py, `write_predictions`; transformers, examples, utils_qa.py. Differs: the
/// null score stands at the family's class token, which is the last one of XLNet; every pair of tokens is looked at,
/// not those of the n best firsts and lasts alone.
FoundAnswer answer_of(const std::string& context, std::span<const TaskRow> windows, std::span<const SpanLogits> logits,
                      const AnswerOptions& options = {});

/// What a threshold makes most of.
enum class AnswerMeasure { exact, f1 };

/// The threshold of `no_answer` with the best sum of scores over questions: those with a margin above it get no answer.
/// It is halfway between two margins, so that rounding, as of another precision, does not change who gets an answer. Of
/// equal sums the lowest threshold; below all margins where no answer is best for every question; 0 without questions.
/// Questions of one margin are taken together.
///
/// items        questions with what is right
/// predictions  of them, each with its best answer and its margin
/// Source: rajpurkar/SQuAD-explorer, evaluate-v2.0.py, `find_best_thresh`. Differs: there the threshold is a
/// margin, and 0 where no answer is best for every question, which would give some of them one.
double best_answer_threshold(const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions,
                             AnswerMeasure measure);

}  // namespace cloze
