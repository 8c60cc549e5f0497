#include "inference/generation/search.h"

#include <algorithm>

#include "core/error.h"
#include "core/kernels/kernels.h"
#include "inference/generation/search_rules.h"
#include "inference/generation/search_state.h"

namespace cloze {

int64_t TopCandidates::next(const float* scores, int64_t token, int64_t vocab, float base) const {
  if (token >= vocab) return vocab;
  return kernels::table().scores.next_above(scores, token, vocab, base, list_.back().score);
}

std::vector<int64_t> last_tokens(const Prompts& prompts, int64_t per_prompt) {
  std::vector<int64_t> tokens;
  for (const auto& prompt : prompts) tokens.insert(tokens.end(), static_cast<size_t>(per_prompt), prompt.back());
  return tokens;
}

int64_t rows_of_prompt(const SearchConfig& config) {
  return config.do_sample ? config.num_return_sequences : config.num_beams;
}

std::vector<std::vector<GeneratedIds>> search(NextTokenModel& model, const std::vector<std::vector<int64_t>>& prompts,
                                              const SearchConfig& config, const std::function<void(int64_t)>& emit,
                                              const std::vector<uint64_t>& numbers) {
  check(config);
  check_ids(config, model.vocab());
  if (prompts.empty()) return {};
  for (size_t i = 0; i < prompts.size(); ++i) {
    require<DataError>(!prompts[i].empty(), "prompt ", i, " is empty; begin it with a start token");
    require<ShapeError>(prompts[i].size() == prompts[0].size(), "prompt ", i, " has ", prompts[i].size(),
                        " tokens, the first ", prompts[0].size(), "; search prompts of one length together");
  }
  require<ShapeError>(numbers.empty() || numbers.size() == prompts.size(), numbers.size(), " numbers for ",
                      prompts.size(), " prompts; give one for each");
  if (config.num_beams == 1) return greedy_or_sample(model, prompts, config, emit, numbers);
  require<ConfigError>(model.vocab() > 1, "num_beams is ", config.num_beams,
                       ", but the model has one token; set num_beams to 1");
  return config.num_beam_groups > 1 ? diverse_beam_search(model, prompts, config) : beam_search(model, prompts, config);
}

std::vector<std::pair<int64_t, double>> distribution(const float* logits, int64_t vocab,
                                                     const std::vector<int64_t>& ids, int64_t prompt,
                                                     const SearchConfig& config) {
  check(config);
  check_ids(config, vocab);
  ScoreRules rules(config, vocab, prompt);
  TokenSampler sampler(config, vocab);
  const auto& kept = sampler.keep(rules.logits(logits, ids.data(), static_cast<int64_t>(ids.size())));
  std::vector<std::pair<int64_t, double>> out;
  for (const auto& k : kept) out.emplace_back(k.id, double{k.weight} / sampler.total());
  return out;
}

}  // namespace cloze
