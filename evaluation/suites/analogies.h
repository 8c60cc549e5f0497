#pragma once
// Suites of word analogies: a is to b as c is to which word? (Mikolov et al. 2013, arXiv 1301.3781, section 4.)
//
// Figures: `accuracy` by section, over the questions of all sections, and of the semantic and the syntactic ones
// (sections `gram...`). The answer is the word of the file whose embedding is nearest to b - a + c by cosine, of unit
// vectors and without the three words of the question (3CosAdd).
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// Questions of one kind: capitals, plurals, ...; each is {a, b, c, answer}.
struct AnalogySection {
  std::string name;
  std::vector<std::array<std::string, 4>> questions{};
};
/// The sections of one file, whose words are the possible answers.
struct AnalogyFile {
  std::string name;
  std::vector<AnalogySection> sections{};
  std::vector<std::string> notes{};  ///< on questions that are there twice
};
struct AnalogySuite {
  std::vector<AnalogyFile> files{};
};

/// The suite in a text file of `: SECTION` lines, each followed by lines of four words, or in a folder whose texts
/// are such files; none for a file of another kind. Throws DataError with the place.
std::optional<AnalogySuite> read_analogies(const SuiteFiles& files);

/// Why a run cannot answer it; empty if it can.
std::string reason_unsupported(const RunConfig& config, const AnalogySuite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions& options);

/// For each question, given as indices of its first three words, the index of the nearest of all vectors to b - a + c.
/// vectors: fp64 [N, D].
std::vector<int64_t> nearest_analogies(const Tensor& vectors, const std::vector<std::array<int64_t, 3>>& questions);

}  // namespace cloze
