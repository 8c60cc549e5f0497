#pragma once
// How the rows of batches are made: of one kind for masked, generative and permuted objectives.
#include <memory>
#include <optional>

#include "data/config.h"
#include "data/sampler.h"
#include "models/families/model_config.h"
#include "objectives/batch.h"
#include "objectives/config.h"
#include "objectives/masking.h"
#include "objectives/pairs.h"

namespace cloze {

/// What a row drew before it became part of a batch.
struct RowDraws {
  size_t masking = 0;  ///< its number in the mixture
  std::vector<int64_t>
      lengths;  ///< words of n-grams and spans as drawn (Masker::corrupt, text_infilling), tokens of plm's (plm_spans)
  int64_t hidden = 0;  ///< tokens that text_infilling took away or replaced
  int64_t text = 0;  ///< tokens of its piece of the text; every token is in one piece of an epoch, but for text_share()
  int64_t read = 0;  ///< so many of them are in the row
  std::vector<int64_t>
      label_tokens{};  ///< of each label that a decoder writes, its number in the token store; -1 = an end, a sentinel
};

/// How many rows a training step has: along them a memory is carried, and its sequences are cut into batches by their
/// length.
struct StepRows {
  int64_t batch_size = 0;  ///< 0: there are no steps, rows come shuffled
  int64_t accumulation = 1;
};

/// What all rows of a run are made of.
struct RowContext {
  RowContext(TokenStore tokens, const Objectives& wanted, const DataConfig& data_config, const Rng& rng,
             const std::string& stage_name, const ModelConfig& model_config, StepRows rows);
  /// The sampler of the run's stream. Throws DataError when the store has nothing to give.
  Sampler sampler(const SamplerOptions& options) const { return {store, options, stage_rng}; }
  /// The sequence of each row of the batch at `first`.
  std::vector<uint64_t> sequences(const Sampler& sampler, uint64_t first, int64_t count) const;
  /// Throws DataError for ids that the tokenizer does not have.
  void check_ids(const int64_t* ids, uint64_t count) const;

  TokenStore store;
  Objectives objectives;
  DataConfig data;
  ModelConfig model;
  StepRows step;
  std::string stage;
  Vocabulary vocabulary;
  Rng stage_rng;
  uint64_t mask_key, mixture_key, pair_key;
};

/// Makes rows. Const members may be called from many threads.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// Rows [first, first + count) of the endless order. `draws` [count] receives what each drew.
  virtual Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const = 0;
  /// Sequences in an epoch.
  virtual uint64_t size() const = 0;
  /// Share of the text that is in the pieces of an epoch.
  virtual double text_share() const { return 1; }
  /// Share of an epoch's pairs whose B comes from another document.
  virtual double random_next_share() const { return 0; }
};

std::unique_ptr<RowMaker> make_masked_rows(const RowContext& context);
std::unique_ptr<RowMaker> make_generative_row_maker(const RowContext& context, const ObjectiveConfig& objective);
std::unique_ptr<RowMaker> make_permuted_rows(const RowContext& context, const PlmConfig& config);

/// The first objective of a kind, or null.
template <class Kind>
const Kind* first_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (const auto* found = std::get_if<Kind>(&objective)) return found;
  return nullptr;
}

/// The packing of rows that hold one text.
Packing packing_of(RowPacking packing);

/// A line of ids that was written.
struct WrittenRow {
  int64_t length = 0;
  int64_t second = 0;  ///< where segment B starts
  int64_t label = 0;
  bool forced = false;  ///< the label was not drawn
  int64_t read = 0;     ///< tokens of the example's own text
};
/// Writes [CLS] text [SEP], with a [SEP] between documents, to `ids`.
WrittenRow write_text(const RowContext& context, const Example& example, int64_t* ids);
/// Writes [CLS] A [SEP] B [SEP], of `budget` tokens together.
WrittenRow write_pair(const RowContext& context, const PairRule& rule, const Example& example, uint64_t budget,
                      int64_t* ids);
/// Notes the tokens of an example's text, and of those the ones that its row reads.
void note_reading(const Example& example, const WrittenRow& row, RowDraws& draws);

inline Tensor to_tensor(const std::vector<int64_t>& values) {
  auto tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace cloze
