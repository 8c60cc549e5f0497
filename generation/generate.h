#pragma once
// Text that a model writes: searches of search.h over a network with a cache of keys and values.
#include "run/run.h"
#include "generation/search.h"

namespace cloze {

/// What a network goes on from: an encoder's text, or the beginning of a decoder's own.
struct Prompt {
  std::vector<int64_t> source{};   ///< what an encoder reads, special tokens included; empty for a decoder alone
  std::vector<int64_t> beginning;  ///< what stands before the first new token; at least one
  uint64_t number = 0;             ///< in the user's list, which draws depend on
};

/// The texts of each prompt, best first; ids as in `search`. Prompts of any lengths. Throws ConfigError for settings
/// that make no sense and for texts that are longer than the model's places.
std::vector<std::vector<Generated>> generate_ids(Network& network, const std::vector<Prompt>& prompts,
                                                 const SearchConfig& config,
                                                 const std::function<void(int64_t)>& emit = {});

struct GenerateOptions {
  SearchConfig search{};
  int64_t batch_size = 8;
  bool cut = false;  ///< texts that are too long are cut, as in training, instead of refused
  std::function<void(const std::string&)> emit{};  ///< receives text as it comes: one prompt, one sequence, no beams
};
/// One text that was written.
struct Written {
  std::string text;                 ///< of a causal language model with what it went on from
  std::string continuation;         ///< what was written alone
  std::vector<int64_t> prompt_ids;  ///< what stood before it: of a decoder next to an encoder its start alone
  std::vector<int64_t> ids;         ///< what was written, with the end of the text, where it came, and nothing after it
  double score = 0;
};
/// The texts written for each of `texts`, best first. Throws CheckpointError for a run without a tokenizer, ConfigError
/// as above.
std::vector<std::vector<Written>> generate(const LoadedRun& run, const std::vector<std::string>& texts,
                                           const GenerateOptions& options);

}  // namespace cloze
