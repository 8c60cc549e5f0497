#pragma once
// Held-out losses with their standard errors and baselines.
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "distributed/communicator.h"
#include "objectives/collator.h"
#include "objectives/network.h"
#include "run/config/evaluation_protocol.h"

namespace cloze {

/// The score of predictions that ignore the input.
struct Baseline {
  std::string name;     ///< `unigram`: token frequencies of the training text; `majority`: the more frequent label
  double loss = 0;      ///< of predicting the frequencies
  double accuracy = 0;  ///< of always predicting the most frequent token or label
  int64_t count = 0;    ///< predictions
  bool operator==(const Baseline&) const = default;
};

/// The summed loss of one sequence.
struct SequenceLoss {
  double sum = 0;         ///< each prediction times its weight
  double count = 0;       ///< predictions, each counted by its weight
  uint64_t document = 0;  ///< that of its first token, or what else makes sequences alike: the text of task items
  int64_t predictions = 0;
  std::optional<uint64_t> bytes{};  ///< of the source text of the tokens that a generative objective predicts; none:
                                    ///< the tokens were prepared without them
};

/// One held-out loss.
struct HeldOut {
  std::string name;         ///< short form of the objective: `mlm`, `mlm:0.4`, `nsp`
  bool of_rewrite = false;  ///< of the network that changes the rows, a generator, with a name and a weight of its own
  double weight = 1;        ///< in the sum of losses
  double loss = 0;          ///< mean over predictions, by their weights
  std::optional<double> accuracy{};  ///< none where predictions are neither right nor wrong
  int64_t count = 0;
  std::optional<double> standard_error{};  ///< of `loss`, over documents; none for fewer than two
  std::optional<Baseline> baseline{};      ///< none without token counts of the training text
  std::optional<double> f1{};              ///< of detecting replaced tokens (rtd)
  std::vector<SequenceLoss> sequences{};   ///< in the order of the held-out rows
  std::vector<HeldOut> sources{};          ///< losses_by_source
};

/// The held-out evaluation of one objective: rows and masks that are independent of training.
struct Measure {
  std::string name;  ///< short form
  std::string head;  ///< head of the network
  double weight = 1;
  Collator collator;
  int64_t sequences = 0;              ///< number of scored sequences: as configured, or all that exist
  std::optional<Baseline> unigram{};  ///< of token predictions; none without counts of the training text
};

/// The measures of `config.evaluation` on the text of `store`; `config` is that of a run directory, with the ids of its
/// tokenizer. `train_counts` [tokenizer().size()]: token counts of the run's training text, used for the unigram
/// baseline and not for masks; empty: no baseline. Throws ConfigError, DataError.
std::vector<Measure> held_out_measures(const RunConfig& config, const TokenStore& store,
                                       const std::vector<uint64_t>& train_counts);

/// The same with the training counts that `store` itself has.
std::vector<Measure> held_out_measures(const RunConfig& config, const TokenStore& store);

/// `211 of 1,024 sequences exist`, for each measure that has fewer sequences than `requested`; empty if none has.
std::string missing_sequences(const std::vector<Measure>& measures, int64_t requested);

/// Held-out losses in evaluation mode, without mems. `active_only`: objectives that are not active at the network's
/// step are skipped. Each of `processes` computes its share of the batches, and all have the same losses. Throws
/// Interrupted after a signal to one of them.
std::vector<HeldOut> evaluate(Network& network, const std::vector<Measure>& measures, int64_t batch_size,
                              at::Device device, bool active_only = false, Communicator& processes = alone());

/// All active losses of the first `sequences` sequences of a collator.
std::vector<HeldOut> evaluate(Network& network, const Collator& collator, int64_t sequences, int64_t batch_size,
                              at::Device device);

/// Loss and accuracy of the unigram baseline on the predictions of the first `sequences` sequences: words have
/// their frequency in the training text, special tokens that do not occur in it (sentinels, ends) that among the
/// predictions.
Baseline unigram_baseline(const Collator& collator, const std::vector<uint64_t>& train_counts, int64_t sequences,
                          int64_t batch_size);

/// Loss and accuracy of predicting the more frequent label, if `positives` of `count` labels are 1.
Baseline majority_baseline(int64_t positives, int64_t count);

/// Standard error of the mean loss of all predictions, with documents as sampling units, since the predictions in a
/// document are correlated; with sequences where all are of one document. None for a single sequence with predictions.
/// clustered_mean (core/report/clusters.h) has the source.
std::optional<double> standard_error(const std::vector<SequenceLoss>& sequences);

/// F1 of label 1; 0 without such labels and predictions.
double f1_score(const BinaryCounts& counts);

/// Bytes of source text that the labels of a row of a generative objective cover, counted in the files before
/// tokenization. None if the tokens were prepared without byte counts.
std::optional<uint64_t> label_bytes(const TokenStore& store, const RowDraws& row);

/// A loss in bits, for each byte of the source text of its predictions; none where no bytes are counted.
std::optional<double> bits_per_byte(const HeldOut& loss);

/// {NAME: {loss, standard_error, perplexity, accuracy, count, sequences, baseline, f1, bits_per_byte, sources}}, with
/// the same of each source and its documents.
nlohmann::json to_json(const std::vector<HeldOut>& losses);

/// `  mlm loss 6.9060 +- 0.0123 accuracy 0.0741 (unigram 7.0903, 0.0507)`, all in one line.
std::string to_text(const std::vector<HeldOut>& losses);

/// A description of the held-out evaluation of a resolved config: losses are compared only if their descriptions are
/// equal.
std::string evaluation_protocol(const RunConfig& config, const TokenStore& store);

/// The content of held_out.json; `sources` of the held-out documents.
std::string held_out_file(int64_t step, const std::string& measured, const std::vector<HeldOut>& losses,
                          const std::vector<SourceSpan>& sources);

}  // namespace cloze
