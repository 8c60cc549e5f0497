#pragma once
// Suites of facts to fill in (LAMA; Petroni et al. 2019, arXiv 1909.01066): "Dante was born in [Y]."
//
// Figures, each as the mean over relations with an interval clustered by them, and by relation: `p@1`, `p@10` and `mrr`
// of objects that are one token, among the whole vocabulary, for masked models; `restricted_p@1` and `restricted_mrr`
// of all objects, of one and of several tokens, among the objects of their relation, of which n that are best together
// count 1 / n each. Masked models score the object alone, by the mean log-probability of its tokens, all of
// which are masked together; models that read from left to right the whole sentence.
// Source: of restricted scores Kassner et al. 2021 (arXiv 2102.00894), with the mean of log-probabilities of their
// program (norakassner/mlama, mlama/evaluation_metrics_ranked.py). Differs: Petroni et al. (section 4.4) take other
// valid objects of a subject and relation out of the candidates; here all of them stay, as in the programs of LAMA
// (facebookresearch/LAMA, lama/evaluation_metrics.py) and mLAMA.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// A sentence with a gap, and the object that fills it.
struct Fact {
  std::string name;  ///< `RELATION/ID`
  std::string left, object, right;
};
struct FactRelation {
  std::string name;
  std::vector<Fact> facts{};
  std::vector<std::string> objects{};  ///< distinct, sorted
};
struct FactSuite {
  std::vector<FactRelation> relations{};
  std::vector<std::string> notes{};  ///< on facts that are left out, for want of a template
};

/// The suite: JSON lines with `predicate_id`, `sub_label` and `obj_label`, perhaps `uuid`, and next to it a
/// file of templates, *.jsonl with `predicate_id` (or `relation`) and `pattern` (or `template`) that hold [X] and [Y],
/// of which the first of a relation counts; or a folder of the two. None for a file of another kind. Throws DataError
/// with the place.
std::optional<FactSuite> read_facts(const SuiteFiles& files);

/// Why a run cannot answer it; empty if it can.
std::string reason_unsupported(const RunConfig& config, const FactSuite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options);

/// Throws DataError with the name of a fact that has an object without tokens among its candidates.
SuiteResult run_suite(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options);

}  // namespace cloze
