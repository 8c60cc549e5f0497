#pragma once
// Suites of reading times.
#include <optional>
#include <string>

#include "evaluation/suites/request.h"
#include "evaluation/suites/reading_times.h"
#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

struct ReadingSuite {
  ReadingTimes times;
};

/// The suite, a CSV file or a folder with a reading_data.csv; none for a file of another kind. Throws
/// DataError.
std::optional<ReadingSuite> read_reading(const SuiteFiles& files);

/// Why a run cannot answer it; empty if it can.
std::string reason_unsupported(const RunConfig& config, const ReadingSuite& suite, const SuiteOptions& options);

/// Surprisals of words in nats.
struct ReadingSurprisals {
  std::vector<double> words;     ///< [N]
  std::vector<double> previous;  ///< [N], of the previous words; NaN for the first word of a sentence
};

/// Each word given the words before it, tokenized as one text. A masked model reads three [MASK] from the word on, the
/// first of which it predicts (Samuel 2024, arXiv 2406.04823, section 2), token by token; others by the Scorer.
ReadingSurprisals reading_surprisals(const LoadedRun& run, const ReadingSuite& suite, const ScoringOptions& options);

/// The same as the published BabyLM program has it: the word is tokenized alone, without the space before it; of its
/// later tokens the text of each is tokenized again, and the first token of that is predicted. None: the tokenizer
/// lacks a token that this needs (mask; bos of an encoder-decoder). Source: BabyLM 2026,
/// strict/evaluation_pipeline/reading/evaluation_functions.py.
std::optional<ReadingSurprisals> babylm_reading_surprisals(const LoadedRun& run, const ReadingSuite& suite,
                                                           BabylmBackend backend);

/// `delta_r2` of the whole suite (the mean of the next two), of eye tracking (mean of its measures) and of self-paced
/// reading, and of each measure. `official`, if given, is what the published program prints, by 100.
SuiteResult reading_result(const ReadingSuite& suite, const ReadingSurprisals& surprisals,
                           const std::optional<ReadingSurprisals>& official);

/// Throws DataError for a word whose text is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const ReadingSuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const ReadingSuite& suite, const SuiteOptions& options);

}  // namespace cloze
