#pragma once
// One pass over one text: documents become the shards of a token store, in parts after each of which it can resume.
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/prepare/prepare.h"
#include "data/prepare/split.h"
#include "data/tokenizer.h"

namespace cloze {

/// A tokenized document.
struct EncodedDocument {
  uint64_t number = 0;
  size_t file = 0;  ///< index of its file
  std::vector<int32_t> ids{};
  std::vector<uint32_t> lengths{};       ///< of its sentences
  std::vector<std::string> sentences{};  ///< their text
  size_t tail = 0;                       ///< number of its last sentences that are held out
};

/// The progress of a pass over one text; written to progress.json after every part, so that it can be resumed.
struct EncodeProgress {
  uint64_t documents_read = 0;  ///< removed ones included
  std::map<std::string, std::vector<ShardFacts>> splits;
  std::vector<uint64_t> counts;
  PrepareReport report;
};

template <class V>
void describe(V& v, EncodeProgress& p) {
  v("documents_read", p.documents_read);
  v("splits", p.splits);
  v("counts", p.counts);
  v("documents", p.report.documents);
  v("sentences", p.report.sentences);
  v("tokens", p.report.tokens);
  v.or_else("words", p.report.words, 0);
  v("valid_documents", p.report.valid_documents);
  v("valid_tokens", p.report.valid_tokens);
  v("unknown_tokens", p.report.unknown_tokens);
  v("incomplete_pairs", p.report.incomplete_pairs);
}

/// One pass over one text.
class EncodePass {
 public:
  /// key      what `folder` is made from; progress in it of another key is not resumed
  /// split    of the text; `assignments` are those of the documents of this one
  EncodePass(const PrepareOptions& options, const Tokenizer& tokenizer, std::string folder, nlohmann::json key,
             const Split& split, const std::vector<Assignment>& assignments);
  /// Reads the text to its end. Throws Interrupted, DataError for unusable text.
  EncodeProgress run(const std::vector<std::string>& inputs, const std::vector<std::string>& targets);

 private:
  void resume();
  bool wants(RawDocument& document, uint64_t first) const;
  ShardWriter& writer(const std::string& split);
  void write(const std::vector<EncodedDocument>& documents);
  void put(const EncodedDocument& document, size_t first, size_t last, const std::string& split);
  void count(const std::vector<int32_t>& ids, size_t begin, size_t end, bool valid);
  uint64_t open_tokens() const;
  void close_part();
  void show(uint64_t bytes_done, uint64_t total);

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  std::string folder_;
  nlohmann::json key_;  // identifies the progress that this pass can resume
  const Split& split_;
  const std::vector<Assignment>& assignments_;
  std::vector<std::string> sources_{};  // of each file; empty names where all are of one
  uint32_t id_bytes_;
  EncodeProgress progress_;
  std::map<std::string, std::unique_ptr<ShardWriter>> writers_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_ = 0, shown_plain_ = 0;
};

}  // namespace cloze
