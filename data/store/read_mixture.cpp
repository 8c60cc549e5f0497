#include "data/store/read_mixture.h"

#include <xxhash.h>

#include <cmath>
#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/spelling.h"
#include "data/store/manifest.h"

namespace cloze {

namespace {

/// Manifests of earlier versions have the fingerprint of a tokenizer in another form, which only that knows.
void check_tokenizer(const DataConfig& data, const std::string& expected, const std::string& where,
                     const std::string& folder, const std::string& fingerprint) {
  const auto own = data.tokens + "/tokenizer";
  require<DataError>(fingerprint == expected || Tokenizer::open(own).has_fingerprint(fingerprint), where, ".tokens, ",
                     folder, ", has the tokenizer ", fingerprint, ", and data.tokens, ", data.tokens, ", has ",
                     expected, "; prepare it again with --tokenizer ", own);
}

uint64_t training_tokens(const Manifest& manifest) {
  uint64_t tokens = 0;
  const auto train = manifest.splits.find("train");
  if (train != manifest.splits.end())
    for (const auto& shard : train->second) tokens += shard.tokens;
  return tokens;
}

uint64_t hash_of_document(const TokenStore& store, uint64_t document, std::vector<int64_t>& ids) {
  const auto first = store.document_token(document);
  ids.resize(store.document_token(document + 1) - first);
  store.read(first, ids.size(), ids.data());
  return XXH3_64bits(ids.data(), ids.size() * sizeof ids[0]);
}

}  // namespace

std::vector<MixtureFacts> read_mixture(const DataConfig& data) {
  if (data.mixture.empty()) return {};
  const auto expected = read_manifest(data.tokens).tokenizer_fingerprint;
  std::vector<MixtureFacts> facts;
  std::map<std::string, std::string> seen;  // fingerprint -> folder
  double weights = 0, all = 0;
  for (size_t i = 0; i < data.mixture.size(); ++i) {
    const auto& [folder, weight] = data.mixture[i];
    const auto where = concat("data.mixture.", i);
    const auto manifest = read_manifest(folder);
    check_tokenizer(data, expected, where, folder, manifest.tokenizer_fingerprint);
    const auto tokens = static_cast<double>(training_tokens(manifest));
    require<DataError>(tokens > 0, where, ".tokens, ", folder,
                       ", has no text to train on; leave it out, or prepare it with less held out");
    const auto [first, is_new] = seen.emplace(manifest.fingerprint, folder);
    require<DataError>(is_new, where, ".tokens, ", folder, ", is the text of ", first->second,
                       ", which the mixture has already; keep one of them, with the sum of the weights");
    facts.push_back({.tokens = folder, .fraction = weight, .passes = 1 / tokens});
    weights += weight;
    all += tokens;
  }
  for (auto& part : facts) {
    part.fraction /= weights;
    part.passes *= part.fraction * all;
  }
  return facts;
}

uint64_t shared_documents(const TokenStore& held_out, const TokenStore& train) {
  std::vector<int64_t> ids;
  std::unordered_map<uint64_t, uint64_t> unseen;  // hash -> held-out documents
  for (uint64_t d = 0; d < held_out.num_documents(); ++d) ++unseen[hash_of_document(held_out, d, ids)];
  uint64_t shared = 0;
  for (uint64_t d = 0; d < train.num_documents() && !unseen.empty(); ++d) {
    const auto document = unseen.find(hash_of_document(train, d, ids));
    if (document == unseen.end()) continue;
    shared += document->second;
    unseen.erase(document);
  }
  return shared;
}

std::string repeats_warning(const std::string& tokens, double passes) {
  constexpr double most = 40;
  if (passes <= most) return "";
  return concat(tokens, ": is read about ", shortest(std::round(passes)),
                " times within the budget, and after 40 passes repeated text teaches almost nothing; lower its weight, "
                "add text to it, or train for less");
}

}  // namespace cloze
