#pragma once
// Held-out losses, beside what an answer without reading would have, with their standard errors.
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "objectives/collator.h"
#include "objectives/network.h"
#include "run/yardstick.h"

namespace cloze {

/// Answers that read nothing.
struct Baseline {
  std::string name;  ///< `unigram`: each token by its frequency in the training text; `majority`: always the likelier
                     ///< of yes and no
  double loss = 0;   ///< of answering by the shares alone
  double accuracy = 0;  ///< of the one most frequent answer
  int64_t count = 0;    ///< predictions
  bool operator==(const Baseline&) const = default;
};

/// The predictions of one sequence: what statistics draw anew, since those of a sequence depend on each other.
struct SequenceLoss {
  double sum = 0;
  int64_t count = 0;
};

/// One held-out loss.
struct HeldOut {
  std::string name;   ///< `mlm`, `mlm:0.4`, `nsp`: the short form of what was scored
  double weight = 1;  ///< in the sum
  double loss = 0;    ///< mean over predictions
  double accuracy = 0;
  int64_t count = 0;
  std::optional<double> standard_error{};  ///< of `loss`, over sequences; none for fewer than two
  std::optional<Baseline> baseline{};      ///< none where the counts of the training text are gone
  std::optional<double> f1{};              ///< of finding replaced tokens (rtd)
  std::vector<SequenceLoss> sequences{};   ///< in the order of the yardstick
};

/// What one objective is scored by: rows and masks that nothing in training changes.
struct Measure {
  std::string name;  ///< short form
  std::string head;  ///< of the network
  double weight = 1;
  Collator collator;
  int64_t sequences = 0;              ///< that are scored: as many as asked for, or all that exist
  std::optional<Baseline> unigram{};  ///< of tokens; none without counts of the training text
};

/// The measures of `config.evaluation` on the text of `store`; `config` as a run wrote it, with its tokenizer's ids.
/// `train_counts` [tokenizer().size()]: of the text that the run was trained on, by which the unigram baseline goes
/// and no mask; empty: there is no baseline. Throws ConfigError, DataError.
std::vector<Measure> yardstick(const RunConfig& config, const TokenStore& store,
                               const std::vector<uint64_t>& train_counts);

/// The same on the store that the run is trained on.
std::vector<Measure> yardstick(const RunConfig& config, const TokenStore& store);

/// `211 of 1,024 sequences exist`, for each measure that has fewer than were asked for; empty where all are there.
std::string shortage(const std::vector<Measure>& measures, int64_t asked);

/// Held-out losses in evaluation mode, without memory. `active_alone`: objectives that do not count at the network's
/// step are passed over.
std::vector<HeldOut> evaluate(Network& network, const std::vector<Measure>& measures, int64_t batch_size,
                              at::Device device, bool active_alone = false);

/// All active losses of the first `sequences` sequences of a collator.
std::vector<HeldOut> evaluate(Network& network, const Collator& collator, int64_t sequences, int64_t batch_size,
                              at::Device device);

/// Loss and accuracy of the unigram baseline on the predictions of the first `sequences` sequences: words by their
/// frequency in the training text, special tokens that it does not hold (sentinels, ends) by theirs among the
/// predictions.
Baseline unigram_baseline(const Collator& collator, const std::vector<uint64_t>& train_counts, int64_t sequences,
                          int64_t batch_size);

/// Loss and accuracy of the answer that is given most often, when `yes` of `count` labels are 1.
Baseline majority_baseline(int64_t yes, int64_t count);

/// Standard error of the mean loss of all predictions when sequences are drawn anew, by linearisation: sqrt(S / (S - 1)
/// sum (L - m n)^2) / sum n over the S sequences with predictions, L the loss of a sequence, n its predictions, m the
/// mean. None for S < 2. Source: Cochran 1977, section 6.3.
std::optional<double> standard_error(const std::vector<SequenceLoss>& sequences);

/// F1 of the answers that are 1; 0 where there are none.
double f1_score(const YesNo& counts);

/// Bytes of the source text that the labels of the first `sequences` sequences stand for: as they stood in the files,
/// whatever the tokenizer made of them. None for tokens that were prepared without them.
std::optional<uint64_t> label_bytes(const Collator& collator, int64_t sequences, int64_t batch_size);

/// {NAME: {loss, standard_error, perplexity, accuracy, count, sequences, baseline, f1}}.
nlohmann::json to_json(const std::vector<HeldOut>& losses);

/// `  mlm loss 6.9060 +- 0.0123 accuracy 0.0741 (unigram 7.0903, 0.0507)`, one behind the other.
std::string to_text(const std::vector<HeldOut>& losses);

}  // namespace cloze
