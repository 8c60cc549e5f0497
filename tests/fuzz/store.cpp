// Token stores from elsewhere. Checksums are made to hold, so that the checks behind them are reached.
#include <xxhash.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/fingerprint.h"
#include "core/json.h"
#include "data/store/manifest.h"
#include "data/store/shard.h"
#include "data/store/token_store.h"
#include "tests/fuzz/targets.h"

namespace cloze {

namespace {

/// Reads everything that a sampler can ask for.
void read_all(const TokenStore& store) {
  std::vector<int64_t> ids(store.num_tokens());
  store.read(0, ids.size(), ids.data());
  for (uint64_t document = 0; document < store.num_documents(); ++document)
    if (store.document_of(store.document_token(document)) != document)
      throw std::logic_error("a document that is not its own");
  for (uint64_t token = 0; token < store.num_tokens(); ++token) store.source_bytes(token);
  store.verify();
}

}  // namespace

bool fuzz_manifest(std::string_view bytes) {
  auto content = parse_json(bytes);
  std::string text(bytes);
  if (content.is_object()) {
    content.erase("fingerprint");
    const auto hashed = content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    content["fingerprint"] = hex_of(XXH3_64bits(hashed.data(), hashed.size()));
    text = content.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  scratch().write("manifest/manifest.json", text);
  return accepts([] { read_manifest(scratch() / "manifest"); });
}

bool fuzz_shard(std::string_view bytes) {
  std::string shard(bytes);
  ShardHeader header{};
  if (shard.size() >= sizeof header) {
    std::memcpy(&header, shard.data(), sizeof header);
    header.checksum = XXH3_64bits(&header, offsetof(ShardHeader, checksum));
    std::memcpy(shard.data(), &header, sizeof header);
  }
  scratch().write("shard/train-00000.tokens", shard);
  scratch().write("shard/tokenizer/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n");
  const auto tokenizer = Tokenizer::open(scratch() / "shard/tokenizer");
  const ShardFacts facts{.file = "train-00000.tokens",
                         .bytes = shard.size(),
                         .documents = header.documents,
                         .sentences = header.sentences,
                         .tokens = header.tokens,
                         .xxh3 = XXH3_64bits(shard.data(), shard.size())};
  Manifest manifest;
  manifest.tokenizer_kind = tokenizer.kind();
  manifest.tokenizer_fingerprint = tokenizer.fingerprint();
  manifest.vocab_size = tokenizer.size();
  manifest.splits["train"] = {facts};
  manifest.counts.resize(static_cast<size_t>(tokenizer.size()), 1);
  write_manifest(scratch() / "shard", manifest);
  return accepts([] { read_all(TokenStore(scratch() / "shard", "train")); });
}

}  // namespace cloze
