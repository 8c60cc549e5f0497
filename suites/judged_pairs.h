#pragma once
// Pairs of words or sentences with the similarity that people see between them, and what a run's embeddings say of
// them.
#include <map>
#include <string>
#include <vector>

#include "data/line_reader.h"
#include "suites/suite_result.h"

namespace cloze {

/// Two words or sentences, and how similar people find them.
struct JudgedPair {
  std::string a, b;
  double judgement = 0;
  bool operator==(const JudgedPair&) const = default;
};
struct JudgedFile {
  std::string name;
  std::vector<JudgedPair> pairs{};
  std::vector<std::string> notes{};  ///< on pairs that are there twice
};

/// The items of a file that stand in it before. Published sets have such items, and published figures count each.
class Repeats {
 public:
  /// Takes an item of the line that was read last.
  void add(const std::string& item, const LineReader& lines);
  /// `1 of 353 pairs repeat an earlier one ...`, with the place of the first; none where none does.
  std::vector<std::string> notes(const std::string& kind) const;

 private:
  std::map<std::string, uint64_t> lines_;  ///< where each item stands first
  uint64_t all_ = 0, count_ = 0;
  std::string first_;
};

/// The texts of a folder, by name: *.txt and *.tsv (.gz, .xz).
std::vector<std::string> texts_in(const std::string& folder);

/// Their words or sentences.
std::vector<std::string> texts_of(const std::vector<JudgedFile>& files);

/// The suite's figures: `spearman`, the mean of that of the files, and `mean_cosine` of all texts; of several files
/// also `spearman` of each. A file whose similarities or judgements are all equal has none: it is NaN, not in the mean,
/// and named by a note.
SuiteResult answer_pairs(const LoadedRun& run, const std::vector<JudgedFile>& files, const SuiteOptions& options);

}  // namespace cloze
