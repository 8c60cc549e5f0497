#pragma once
// What the sources and targets of each generative objective are held to.
#include "train/inspection/row_inspector.h"

namespace cloze {

/// A source and its target, counted without begin and end tokens.
struct SourceTargetRow {
  const InspectedExample& row;
  const RowDraws& drawn;
  int64_t source_length = 0;  ///< with begin and end tokens; a decoder without encoder reads the target after it
  int64_t kept = 0;           ///< source tokens other than sentinels
  int64_t masks = 0;          ///< those of them that are masks
  int64_t source_sentinels = 0;
  int64_t target_tokens = 0;  ///< other than sentinels
  int64_t target_sentinels = 0;
  std::vector<int64_t> kept_runs{}, masked_runs{};  ///< lengths of the runs between sentinels, of source and target
};

/// Counts the rows of one objective and tests the counts. The default is to require nothing.
class GenerativeChecks {
 public:
  virtual ~GenerativeChecks() = default;
  /// Sources of a decoder-only model end with an end token.
  virtual bool source_ends() const { return true; }
  virtual void count(const SourceTargetRow&) {}
  /// Adds the tests and the lengths.
  virtual void conclude(Inspection& inspection) { inspection.lengths.resize(1); }
};

/// Those of most kinds: nothing for sources and targets, and for a text of its own that its labels are the next tokens.
std::unique_ptr<GenerativeChecks> make_checks(const ObjectiveKind& kind);
std::unique_ptr<GenerativeChecks> make_checks(const SpanCorruptionConfig& config);
std::unique_ptr<GenerativeChecks> make_checks(const DenoisingConfig& config);
std::unique_ptr<GenerativeChecks> make_checks(const GapSentencesConfig& config);

std::unique_ptr<RowInspector> make_generative_inspector(std::unique_ptr<GenerativeChecks> checks,
                                                        const InspectedRun& run);
template <class Config>
  requires std::derived_from<Config, GenerativeKind<Config>>
std::unique_ptr<RowInspector> make_inspector(const Config& config, const InspectedRun& run) {
  return make_generative_inspector(make_checks(config), run);
}

/// The share of a text's tokens that are missing from the source.
struct HiddenShare {
  int64_t hidden = 0, tokens = 0;
  /// Of a row whose target has the tokens missing from the source.
  void add(const SourceTargetRow& row) {
    hidden += row.target_tokens;
    tokens += row.kept - row.masks + row.target_tokens;
  }
  void add_fact(Inspection& inspection) const { inspection.facts["hidden_share"] = fraction(hidden, tokens); }
};

}  // namespace cloze
