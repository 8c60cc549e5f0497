#pragma once
// Suites of minimal pairs and completions: of an item's candidates, the model's best should be the right one.
//
// Figures: `accuracy`, the mean over paradigms of the fraction of right items, for the suite and its phenomena with an
// interval clustered by paradigm; `micro_accuracy`, the fraction of all items; for pairs with the judgements of people
// also `spearman`, which then stands for the suite.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// A question with its possible answers.
struct RankingItem {
  std::string name;                 ///< `PARADIGM/ID`, by the ID of its line or else its number in the paradigm, from 0
  std::string paradigm;             ///< narrowest group: `UID` of BLiMP, `Domain` of EWoK, the name of a file
  std::string phenomenon{};         ///< group of paradigms: `linguistics_term` of BLiMP; may be empty
  std::string metric = "accuracy";  ///< the score that it counts for
  std::vector<Passage> candidates{};   ///< two or more
  std::optional<size_t> answer = 0;    ///< none: people are divided evenly
  std::optional<double> preference{};  ///< of pairs: fraction of people who prefer the first
  bool operator==(const RankingItem&) const = default;
};

struct RankingSuite {
  std::vector<RankingItem> items{};
  std::string name{};                ///< that its declaration gives it; empty: that of its file
  std::string form{};                ///< of its lines, in words: `minimal pairs`
  bool is_official = true;           ///< whether the program of BabyLM has such items, and so an official score
  std::vector<std::string> notes{};  ///< on files that are left out
  std::map<std::string, std::string> equal_candidates{};  ///< FILE:LINE of items that have them, by name
};

/// The notes of a suite, and one on those of its items that have equal candidates.
std::vector<std::string> notes_of(const RankingSuite& suite);

/// The suite: a file of JSON lines, or a folder whose *.jsonl (.gz, .xz) are of one form; none for a file of
/// another kind. Files of a folder are paradigms, but splits of multiple choice are phenomena of one. The forms are
/// listed in evaluation/suites/ranking_forms.h. Files of a folder whose lines are of no form, or whose items have no
/// answers as those of test splits, are left out with a note. Throws DataError with the place of what is damaged,
/// empty, of another form or named twice.
std::optional<RankingSuite> read_ranking(const SuiteFiles& files);

struct RankingForm;
/// The items of a file whose lines all have one form; `name`: the paradigm of lines that name none.
RankingSuite read_lines_of(const RankingForm& form, const std::string& file, const std::string& name);

/// Keeps the first `items` of each paradigm, counted for each metric.
void keep_first(RankingSuite& suite, int64_t items);

/// Keeps the items that a table with the columns `UID` and `pairID` names. Throws DataError for one that the suite
/// lacks.
void keep_named(RankingSuite& suite, const std::string& table);

/// Why a run cannot answer it; empty if it can.
std::string reason_unsupported(const RunConfig& config, const RankingSuite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options);

/// Throws DataError with the name of an item that is longer than the model, or has a candidate without tokens.
SuiteResult run_suite(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options);

}  // namespace cloze
