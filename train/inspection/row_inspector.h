#pragma once
// What the rows of an objective are held to: an inspector for each kind of rows.
#include <memory>

#include "objectives/collator.h"
#include "train/inspection/inspect.h"

namespace cloze {

/// The run whose rows are inspected.
struct InspectedRun {
  explicit InspectedRun(const RunConfig& run_config);
  InspectedRun(const InspectedRun&) = delete;  // inspectors refer to it

  const BackboneConfig& model() const { return backbone_of(config.model); }
  const Tokenizer& tokenizer() const { return store.tokenizer(); }
  /// The rows that these objectives would have in this run.
  Collator rows_of(const Objectives& objectives) const;

  TokenStore store;
  TokenProperties vocabulary;
  RunConfig config;  ///< the model has the special ids of the tokenizer, as in training
  StepRows steps;
  Collator collator;
};

/// Counts the rows of a run, and tests the counts against the rules of their objective.
class RowInspector {
 public:
  virtual ~RowInspector() = default;
  /// Counts the rows of a batch that starts at sequence number `first`, and returns them without texts.
  virtual std::vector<InspectedExample> count(const Batch& batch, const std::vector<RowDraws>& draws,
                                              uint64_t first) = 0;
  /// Adds the texts of row `row` of the batch that was counted last.
  virtual void add_text(InspectedExample& example, size_t row) const = 0;
  /// The tokens of a row with their roles, for a page.
  virtual std::vector<ShownTokens> shown(const InspectedExample& example) const = 0;
  /// Adds facts, tests and lengths.
  virtual void conclude(Inspection& inspection) = 0;
};

/// The inspector of the run's rows.
std::unique_ptr<RowInspector> make_row_inspector(const InspectedRun& run);
/// Of kinds that make no rows of their own.
std::unique_ptr<RowInspector> make_masked_inspector(const InspectedRun& run);
inline std::unique_ptr<RowInspector> make_inspector(const ObjectiveKind&, const InspectedRun& run) {
  return make_masked_inspector(run);
}
// Of kinds that do; those of generative kinds are in train/inspection/generative_checks.h.
std::unique_ptr<RowInspector> make_inspector(const MntpConfig& config, const InspectedRun& run);
std::unique_ptr<RowInspector> make_inspector(const PlmConfig& config, const InspectedRun& run);

/// part / all; 0 if all is 0.
double fraction(int64_t part, int64_t all);

/// The predicted positions of a row of plm, in the order in which they are predicted.
std::vector<size_t> prediction_order(const InspectedExample& example);

/// The rows of a batch whose labels stand at positions of the input, -100 = not predicted.
std::vector<InspectedExample> labelled_rows(const Batch& batch);
/// A predicted token, marked as {masked}, <random> or (kept).
std::string marked_token(const InspectedRun& run, int64_t id, int64_t label);
/// Adds the texts of a row whose labels stand at the positions of their tokens.
void add_masked_text(const InspectedRun& run, InspectedExample& example);
/// A token of a row that is not predicted.
ShownToken shown_token(const InspectedRun& run, int64_t id);
/// One that was chosen, and `label` before that.
ShownToken shown_chosen(const InspectedRun& run, int64_t id, int64_t label);

}  // namespace cloze
