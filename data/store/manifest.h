#pragma once
// manifest.json of a prepared folder, and what it keeps of the files that the tokens were made from.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/reading/spool.h"
#include "data/store/shard.h"

namespace cloze {

struct Manifest {
  std::string tokenizer_kind, tokenizer_fingerprint;
  int64_t vocab_size = 0;
  std::map<std::string, std::vector<ShardFacts>> splits;
  std::vector<uint64_t> counts;                         ///< occurrences of each id in the training split
  nlohmann::json made_from = nlohmann::json::object();  ///< options and inputs, for reuse
  nlohmann::json report = nlohmann::json::object();
  nlohmann::json contents = nlohmann::json::object();  ///< hashes of the input files by path; empty for none
  std::string fingerprint;                             ///< over everything else
};

/// All but the hashes of its inputs and the fingerprints.
template <class V>
void describe(V& v, Manifest& m) {
  v.section("tokenizer", [&](auto& tokenizer) {
    tokenizer("kind", m.tokenizer_kind);
    tokenizer("size", m.vocab_size);
    tokenizer("fingerprint", m.tokenizer_fingerprint);
  });
  v("splits", m.splits);
  v("counts", m.counts);
  v("made_from", m.made_from);
  v("report", m.report);
}

/// What a split is: equal ones have the same tokens, cut into the same documents by the same tokenizer.
struct SplitText {
  std::string fingerprint;
  uint64_t documents = 0;
};
/// Throws std::out_of_range for a split that the folder lacks.
SplitText split_text(const Manifest& manifest, const std::string& split);

/// Writes `folder`/manifest.json, with its fingerprint.
void write_manifest(const std::string& folder, const Manifest& manifest);

/// Throws DataError for a missing, damaged or foreign manifest.
Manifest read_manifest(const std::string& folder);

/// Path and size of each input, with the modification time of a file or the hash of a copied stream.
nlohmann::json file_facts(const std::vector<std::string>& inputs, const std::map<std::string, Spooled>& spooled);

/// Hashes of the content of files, by their paths. Throws DataError for one that cannot be read, Interrupted.
nlohmann::json contents_of(const std::vector<std::string>& files);

/// Facts in which a file has the time of `was` if that alone differs and its content is the one that `contents` has of
/// it. Throws as contents_of.
nlohmann::json with_known_times(nlohmann::json facts, const nlohmann::json& was, const nlohmann::json& contents);

/// How facts that are not equal differ, a file each: `a.txt: modified since`.
std::vector<std::string> changed_files(const nlohmann::json& was, const nlohmann::json& is);

}  // namespace cloze
