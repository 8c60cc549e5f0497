#include "run/training_rows.h"

#include <algorithm>

#include "core/log.h"
#include "data/store/read_mixture.h"
#include "objectives/special_tokens.h"

namespace cloze {

StepRows training_rows(const TrainConfig& train, const TokenStore& store) {
  StepRows rows{.batch_size = train.batch_size,
                .accumulation = train.accumulation,
                .parts = std::min(train.parts, train.accumulation),
                .steps = train.budget.steps};
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

namespace {

/// A text with so many sentinels.
TokenStore with_sentinels(const TokenStore& store, int64_t sentinels, bool is_told) {
  const auto& tokenizer = store.tokenizer();
  if (sentinels == 0 || !tokenizer.sentinels().empty()) return store;
  if (is_told)
    log_info("data", concat(store.folder(), ": has no sentinels; <extra_id_0> to <extra_id_", sentinels - 1,
                            "> follow its ", thousands(static_cast<uint64_t>(tokenizer.size())), " tokens"));
  return store.with_tokenizer(tokenizer.followed_by_sentinels(sentinels));
}

}  // namespace

TokenStore open_tokens(const RunConfig& config, const std::string& split) {
  const auto& mixture = config.data.mixture;
  const bool trains = split == "train";
  const auto sentinels = std::max(needed_sentinels(config.objectives), needed_sentinels(config.evaluation.objectives));
  if (!trains || mixture.empty()) return with_sentinels(TokenStore(config.data.tokens, split), sentinels, trains);
  read_mixture(config.data);  // refuses what is no mixture
  std::vector<TextPart> parts;
  for (const auto& [tokens, weight] : mixture)
    parts.push_back(
        {.text = with_sentinels(TokenStore(tokens, split), sentinels, /*is_told=*/parts.empty()), .fraction = weight});
  return TokenStore::mixture(std::move(parts));
}

RowContext row_context(const RunConfig& config, const TokenStore& store, const RowsStart& start) {
  auto rows = training_rows(config.train, store);
  rows.start = start;
  return {store, config.objectives, config.data, row_streams(config.train), "train", config.model, rows};
}

Collator text_rows(const RunConfig& config, const TokenStore& store, const RowsStart& start) {
  return Collator(row_context(config, store, start));
}

}  // namespace cloze
