#pragma once
// The margin above which a question gets no answer.
#include <vector>

#include "tasks/item.h"

namespace cloze {

/// What a threshold makes most of.
enum class AnswerMeasure { exact, f1 };

/// The threshold of `no_answer` with the best sum of scores over questions: those with a margin above it get no answer.
/// Of equal sums the lowest threshold; below all margins where no answer is best for every question; 0 without
/// questions. Questions of one margin are taken together.
///
/// items        questions with what is right
/// predictions  of them, each with its best answer and its margin
/// Source: rajpurkar/SQuAD-explorer, evaluate-v2.0.py, `find_best_thresh`. Differs: there the threshold is 0 where no
/// answer is best for every question, which would give some of them one.
double best_answer_threshold(const std::vector<TaskItem>& items, const std::vector<TaskPrediction>& predictions,
                             AnswerMeasure measure);

}  // namespace cloze
