#include "run/open_tokens.h"

#include <algorithm>

#include "core/log.h"
#include "data/read_mixture.h"
#include "objectives/special_tokens.h"

namespace cloze {

namespace {

/// A text with the sentinels that the objectives need.
TokenStore with_sentinels(const TokenStore& store, const RunConfig& config, bool is_told) {
  const auto& tokenizer = store.tokenizer();
  const auto sentinels = std::max(needed_sentinels(config.objectives), needed_sentinels(config.evaluation.objectives));
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
  if (!trains || mixture.empty()) return with_sentinels(TokenStore(config.data.tokens, split), config, trains);
  read_mixture(config.data);  // refuses what is no mixture
  std::vector<TextPart> parts;
  for (const auto& [tokens, weight] : mixture)
    parts.push_back(
        {.text = with_sentinels(TokenStore(tokens, split), config, /*is_told=*/parts.empty()), .share = weight});
  return TokenStore::mixture(std::move(parts));
}

}  // namespace cloze
