#pragma once
// Text generation: the searches of search.h over a network that keeps a state of each row.
#include "run/run.h"
#include "inference/generation/search.h"

namespace cloze {

/// The input of a generation: the source text of an encoder, and the prefix that the decoder continues.
struct Prompt {
  std::vector<int64_t> source{};    ///< encoder input with special tokens; empty for a decoder-only model
  std::vector<bool> source_mask{};  ///< true = a real token; padding keeps its position; empty: all are real
  std::vector<int64_t> prefix;      ///< decoder input before the first new token; at least one id
  /// Decoder-only models, true = a real token, as the last one is. Rules of the search see padding, but for that before
  /// the first token repetition_penalty; the model does not, and positions count real tokens. Empty: all are real.
  std::vector<bool> prefix_mask{};
  uint64_t number = 0;  ///< index in the user's list, on which random draws depend
};

/// The generated sequences of each prompt, best first; ids as in `search`. Prompts may differ in length. Throws
/// ConfigError for invalid settings and for texts that exceed the model's positions.
std::vector<std::vector<GeneratedIds>> generate_ids(Network& network, const std::vector<Prompt>& prompts,
                                                    const SearchConfig& config,
                                                    const std::function<void(int64_t)>& emit = {});

/// The same of many prompts, those of like length together, `batch_size` at a time; on the CPU several batches at once.
std::vector<std::vector<GeneratedIds>> generate_in_batches(Network& network, const std::vector<Prompt>& prompts,
                                                           const SearchConfig& config, int64_t batch_size);

struct GenerateOptions {
  SearchConfig search{};
  int64_t batch_size = 8;
  bool truncate = false;  ///< truncate texts that are too long, as in training, instead of rejecting them
  std::function<void(const std::string&)>
      emit{};  ///< receives text as it is generated: one prompt, one sequence, no beams
};
/// One generated text.
struct Generated {
  std::string text;                 ///< the generated text; of a causal language model including the prompt
  std::string continuation;         ///< the generated text without the prompt
  std::vector<int64_t> prompt_ids;  ///< ids before the generated ones; of an encoder-decoder only the start token
  std::vector<int64_t> ids;         ///< the generated ids, up to and including eos if it was generated
  double score = 0;
};
/// The settings of a search, those that are left to the model filled in.
SearchConfig search_of(const ModelConfig& config, const GenerateOptions& options);
/// The text of a sequence, whose ids begin with those of the prompt. `continues`: the text includes the prompt.
Generated decoded(const Tokenizer& tokenizer, const GeneratedIds& one, const std::vector<int64_t>& prompt,
                  bool continues, int64_t eos);
/// The texts generated for each of `texts`, best first. Throws CheckpointError for a run without a tokenizer,
/// ConfigError as above.
std::vector<std::vector<Generated>> generate(const LoadedRun& run, const std::vector<std::string>& texts,
                                             const GenerateOptions& options);

}  // namespace cloze
