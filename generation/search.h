#pragma once
// Text from a model that scores the next token: greedy, beam and diverse beam search, and sampling. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

/// Settings of a search; names and meanings are those of transformers' GenerationConfig. Lengths count tokens, ids of
/// -1 mean "none".
struct SearchConfig {
  int64_t max_new_tokens = 64;
  int64_t min_new_tokens = 0;  ///< no eos before these
  int64_t min_length = 0;      ///< the same with the prompt counted; not read where min_new_tokens is given
  int64_t num_beams = 1, num_beam_groups = 1, num_return_sequences = 1;
  double length_penalty = 1;  ///< a finished beam has score sum / length^penalty, length without the prompt, with eos
  double diversity_penalty = 0;  ///< for each earlier group's beam with the same token
  bool do_sample = false;        ///< without it, temperature, top_k, top_p and typical_p are not read
  double temperature = 1, top_p = 1, typical_p = 1;
  int64_t top_k = 0;  ///< 0: all
  double repetition_penalty = 1;
  int64_t no_repeat_ngram_size = 0;      ///< 0: none
  std::string early_stopping = "false";  ///< true: stop at num_beams finished ones | false: when better ones are
                                         ///< unlikely | never: when there can be none
  int64_t eos_token_id = -1, pad_token_id = 0;
  int64_t forced_bos_token_id = -1;  ///< after a prompt of one token
  int64_t forced_eos_token_id = -1;  ///< as the last of max_new_tokens
  uint64_t seed = 1;
};

/// Nothing for settings that make sense alone and together. Throws ConfigError.
void check(const SearchConfig& config);

/// Rows of the model that each prompt owns: prompt i has [i * rows, (i + 1) * rows).
int64_t rows_of_prompt(const SearchConfig& config);

/// The scores of the next token for the rows of a batch, and what each row has read so far.
class NextToken {
 public:
  virtual ~NextToken() = default;
  /// Logits [rows, vocab], valid until the next call.
  ///
  /// tokens   [rows] the newest token of each row; at the first call the last one of the prompt, all before it being
  /// read. Ended rows get pad_token_id. origins  [rows] the row of the previous call that each row goes on from, always
  /// one of the same prompt; empty: each from itself
  virtual const float* step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) = 0;
  virtual int64_t vocab() const = 0;
};

/// A text as ids: the prompt, what was generated with its eos, padding up to the longest of the batch.
struct Generated {
  std::vector<int64_t> ids;
  double score = 0;  ///< beams: as in `length_penalty`; else the sum of the log-probabilities of the tokens in what
                     ///< they were chosen from
};

/// The texts of each prompt, best first (drawn ones in the order of their draws); num_return_sequences of them.
///
/// prompts  all of one length, at least 1; the model has read all but the last token, in rows_of_prompt() rows each
/// emit     receives each new token of a greedy or sampled search with one row as it is chosen; not called otherwise
/// numbers  [prompts] the number of each prompt in the user's list, which its draws depend on; empty: 0, 1, ... A draw
/// is a function of
///          (seed, number of the prompt, sequence, position), whatever the batch.
/// Throws ConfigError for settings that check() refuses or ids outside the vocabulary, ShapeError for prompts of
/// different lengths, DataError for empty ones, Error for scores that are not numbers. Source: transformers 5.23,
/// generation/utils.py, `_sample` and `_beam_search`, whose ids come out. Groups: Vijayakumar et al. 2018, "Diverse
/// beam search", algorithm 1 with Hamming diversity, as transformers 4.49 has it (5 moved it out of the library).
/// Differs: of equal scores the beam and then the token of lower number goes first, where torch leaves it open.
std::vector<std::vector<Generated>> search(NextToken& model, const std::vector<std::vector<int64_t>>& prompts,
                                           const SearchConfig& config, const std::function<void(int64_t)>& emit = {},
                                           const std::vector<uint64_t>& numbers = {});

/// What sampling draws from after `ids`, of which `prompt` are the prompt's: the tokens kept and their probabilities,
/// by id. logits [vocab]; order of the steps: repetition penalty, n-grams, lengths, forced ids, temperature, top-k,
/// top-p (Holtzman et al. 2020, section 3.1), typical (Meister et al. 2022, section 4). Throws like search(). Differs:
/// masses are added in double, in transformers in float.
std::vector<std::pair<int64_t, double>> distribution(const float* logits, int64_t vocab,
                                                     const std::vector<int64_t>& ids, int64_t prompt,
                                                     const SearchConfig& config);

}  // namespace cloze
