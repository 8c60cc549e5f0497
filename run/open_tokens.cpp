#include "run/open_tokens.h"

#include <algorithm>

#include "core/log.h"
#include "objectives/special_tokens.h"

namespace cloze {

TokenStore open_tokens(const RunConfig& config, const std::string& split) {
  const TokenStore store(config.data.tokens, split);
  const auto& tokenizer = store.tokenizer();
  const auto sentinels = std::max(needed_sentinels(config.objectives), needed_sentinels(config.evaluation.objectives));
  if (sentinels == 0 || !tokenizer.sentinels().empty()) return store;
  if (split == "train")
    log_info("data", words(config.data.tokens, ": has no sentinels; <extra_id_0> to <extra_id_", sentinels - 1,
                           "> follow its ", thousands(static_cast<uint64_t>(tokenizer.size())), " tokens"));
  return store.with_tokenizer(tokenizer.followed_by_sentinels(sentinels));
}

}  // namespace cloze
