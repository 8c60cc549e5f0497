#pragma once
// Text generation with a model that scores the next token: greedy, beam and diverse beam search, and sampling. No
// LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

/// When a beam search ends.
enum class EarlyStopping { no, yes, never };
constexpr auto choices(EarlyStopping) {
  return std::array{Choice{EarlyStopping::no, "false", "when better texts are unlikely"},
                    Choice{EarlyStopping::yes, "true", "at num_beams finished texts"},
                    Choice{EarlyStopping::never, "never", "when better texts are impossible"}};
}

/// Settings of a search; names and meanings are those of transformers' GenerationConfig. Lengths count tokens, ids of
/// -1 mean "none".
struct SearchConfig {
  int64_t max_new_tokens = 64;
  int64_t min_new_tokens = 0;  ///< no eos before this many new tokens
  int64_t min_length = 0;      ///< the same including the prompt; ignored if min_new_tokens is given
  int64_t num_beams = 1, num_beam_groups = 1, num_return_sequences = 1;
  double length_penalty = 1;  ///< score of a finished beam: sum / length^penalty, length without the prompt, with eos
  double diversity_penalty = 0;  ///< per beam of an earlier group with the same token
  bool do_sample = false;        ///< else temperature, top_k, top_p and typical_p are ignored
  double temperature = 1, top_p = 1, typical_p = 1;
  int64_t top_k = 0;  ///< 0: all
  double repetition_penalty = 1;
  int64_t no_repeat_ngram_size = 0;  ///< 0: none
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t eos_token_id = -1, pad_token_id = 0;
  int64_t forced_bos_token_id = -1;  ///< after a prompt of one token
  int64_t forced_eos_token_id = -1;  ///< as the last of max_new_tokens
  int64_t prompt_ignore_length = 0;  ///< ids at the start of every prompt, padding, that repetition_penalty leaves out
  uint64_t seed = 1;
};

/// Checks the settings and their combination. Throws ConfigError.
void check(const SearchConfig& config);

/// The number of rows per prompt: prompt i has rows [i * rows, (i + 1) * rows).
int64_t rows_of_prompt(const SearchConfig& config);

/// A model that scores the next token for the rows of a batch and keeps the state of each row.
class NextTokenModel {
 public:
  virtual ~NextTokenModel() = default;
  /// Logits [rows, vocab], valid until the next call.
  ///
  /// tokens   [rows] the newest token of each row: at the first call the last token of the prompt, all others having
  ///          been fed before. Finished rows get pad_token_id.
  /// origins  [rows] the row of the previous call that each row continues, always one of the same prompt; empty: each
  ///          continues itself
  virtual const float* step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) = 0;
  virtual int64_t vocab() const = 0;
};

/// A generated sequence as ids: the prompt, the generated tokens with eos, padding to the longest of the batch.
struct GeneratedIds {
  std::vector<int64_t> ids;
  double score = 0;  ///< beams: as in `length_penalty`; else the sum of the log-probabilities of the tokens in the
                     ///< distributions that they were chosen from
};

/// num_return_sequences sequences for each prompt, best first (sampled ones in the order of their draws).
///
/// prompts  all of one length, at least 1; the model has been fed all but the last token, in rows_of_prompt() rows each
/// emit     receives each new token of a greedy or sampled search with one row as it is chosen; not called otherwise
/// numbers  [prompts] the index of each prompt in the user's list, on which its draws depend; empty: 0, 1, ...
/// A draw is a function of (seed, number of the prompt, sequence, position), independent of the batch.
/// Throws ConfigError for settings that check() rejects or ids outside the vocabulary, ShapeError for prompts of
/// different lengths, DataError for empty ones, Error for scores that are not finite. Source: transformers 5.23,
/// generation/utils.py, `_sample` and `_beam_search`, with identical ids. Groups: Vijayakumar et al. 2018, "Diverse
/// beam search", algorithm 1 with Hamming diversity, as in transformers 4.49 (5 moved it out of the library).
/// Differs: ties are broken by the lower beam and then the lower token id, where torch does not define an order.
std::vector<std::vector<GeneratedIds>> search(NextTokenModel& model, const std::vector<std::vector<int64_t>>& prompts,
                                              const SearchConfig& config, const std::function<void(int64_t)>& emit = {},
                                              const std::vector<uint64_t>& numbers = {});

/// The distribution that sampling draws from after `ids`, the first `prompt` of which are the prompt: the tokens kept
/// and their probabilities, by id. logits [vocab]; order of the steps: repetition penalty, n-grams, lengths, forced
/// ids, temperature, top-k, top-p (Holtzman et al. 2020, section 3.1), typical (Meister et al. 2022, section 4). Throws
/// like search(). Differs: probabilities are summed in double, in transformers in float.
std::vector<std::pair<int64_t, double>> distribution(const float* logits, int64_t vocab,
                                                     const std::vector<int64_t>& ids, int64_t prompt,
                                                     const SearchConfig& config);

}  // namespace cloze
