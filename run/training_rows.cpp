#include "run/training_rows.h"

#include <algorithm>

namespace cloze {

StepRows training_rows(const TrainConfig& train, const TokenStore& store) {
  StepRows rows{.batch_size = train.batch_size, .accumulation = train.accumulation, .steps = train.budget.steps};
  if (rows.steps > 0) return rows;
  rows.epochs = train.budget.epochs;
  const auto words = static_cast<double>(store.train_words().value_or(0));
  if (train.budget.words > 0 && words > 0) {
    const double epochs = static_cast<double>(train.budget.words) / words;
    rows.epochs = rows.epochs > 0 ? std::min(rows.epochs, epochs) : epochs;
  }
  if (rows.epochs == 0)
    rows.epochs = static_cast<double>(train.budget.tokens) / static_cast<double>(store.num_tokens());
  return rows;
}

}  // namespace cloze
