#include "data/store/token_store.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/mapped_file.h"
#include "data/store/manifest.h"
#include "data/store/shard.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

struct OpenFile {
  explicit OpenFile(const std::string& path) : descriptor(open_to_read(path)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor >= 0) close(descriptor);
  }
  uint64_t size() const {
    struct stat info{};
    return descriptor >= 0 && fstat(descriptor, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  }
  int descriptor;
};

/// A mapped file of a store.
struct Shard {
  /// `tokens`: of the tokenizer.
  Shard(const std::string& folder, const ShardFacts& facts, uint64_t tokens)
      : path(folder + "/" + facts.file), expected(facts), vocabulary(tokens), file(path), size(file.size()) {
    require<DataError>(file.descriptor >= 0, path, ": cannot be read (", system_reason(), "); prepare the text again");
    require<DataError>(size == facts.bytes && size >= sizeof(ShardHeader), path, ": is ", size,
                       " bytes long, its manifest says ", facts.bytes, "; the file is cut off: prepare the text again");
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor, 0);
    require<DataError>(mapped != MAP_FAILED, path, ": cannot be mapped (", system_reason(), ")");
    base = static_cast<const char*>(mapped);
    guard.emplace(base, size, path, "prepare the text again");
    std::memcpy(&header, base, sizeof header);
    const bool valid = std::memcmp(header.magic, shard_magic, 8) == 0 &&
                       header.checksum == XXH3_64bits(&header, offsetof(ShardHeader, checksum)) &&
                       shard_bytes(header) == size && header.documents == facts.documents &&
                       header.sentences == facts.sentences && header.tokens == facts.tokens;
    if (!valid) {
      munmap(mapped, size);
      fail<DataError>(path, ": the header at byte 0 is damaged; prepare the text again");
    }
    ids = base + sizeof header;
    sentences = reinterpret_cast<const uint32_t*>(ids + (header.tokens * header.id_bytes + 7) / 8 * 8);
    documents = sentences + header.sentences + 1;
    // The offset tables are read without checks later, so they are checked once here.
    bool ordered = sentences[0] == 0 && sentences[header.sentences] == header.tokens && documents[0] == 0 &&
                   documents[header.documents] == header.sentences;
    for (uint64_t i = 0; i < header.sentences && ordered; ++i) ordered = sentences[i] < sentences[i + 1];
    for (uint64_t i = 0; i < header.documents && ordered; ++i) ordered = documents[i] < documents[i + 1];
    if (!ordered) {
      munmap(mapped, size);
      fail<DataError>(path, ": the offsets after byte ", reinterpret_cast<const char*>(sentences) - base,
                      " are damaged; prepare the text again");
    }
  }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard() { munmap(const_cast<char*>(base), size); }

  template <class Id>
  uint64_t largest_id() const {
    const auto* first = reinterpret_cast<const Id*>(ids);
    Id largest = 0;
    for (uint64_t i = 0; i < header.tokens; ++i) largest = std::max(largest, first[i]);
    return largest;
  }

  /// Compares the whole file with its checksum, and its ids with the tokenizer. Throws DataError.
  void verify() const {
    require<DataError>(XXH3_64bits(base, size) == expected.xxh3, path,
                       ": its content does not match its checksum; prepare the text again");
    const auto largest = header.id_bytes == 2 ? largest_id<uint16_t>() : largest_id<uint32_t>();
    require<DataError>(largest < vocabulary, path, ": has the id ", largest, ", and its tokenizer has ", vocabulary,
                       " tokens; prepare the text again");
    is_verified = true;
  }

  std::string path;
  ShardFacts expected;
  uint64_t vocabulary;
  mutable std::atomic<bool> is_verified{false};
  OpenFile file;  ///< stays open, so that one that becomes shorter is seen
  uint64_t size;
  const char* base = nullptr;
  std::optional<GuardedMapping> guard{};  ///< what was saved stays as it is
  const char* ids = nullptr;
  ShardHeader header{};
  const uint32_t *sentences = nullptr, *documents = nullptr;
  bool is_intact() const { return !guard->has_lost_parts() && file.size() >= size; }
  std::vector<uint32_t> source_bytes;  // [tokens], or empty

  void read_source_bytes(const std::string& folder) {
    if (expected.source_file.empty()) return;
    const auto source = folder + "/" + expected.source_file;
    std::error_code unknown;
    const bool has_size = fs::file_size(source, unknown) == 4 * header.tokens;
    const auto content = has_size ? read_text(source, 4 * header.tokens) : std::string();
    require<DataError>(
        content.size() == 4 * header.tokens && XXH3_64bits(content.data(), content.size()) == expected.source_xxh3,
        source, ": its content does not match its checksum; prepare the text again");
    source_bytes.resize(header.tokens);
    std::memcpy(source_bytes.data(), content.data(), content.size());
  }
};

/// A file where it stands in the text.
struct PlacedShard {
  std::shared_ptr<const Shard> file;
  uint64_t first_document = 0, first_sentence = 0, first_token = 0;
};

}  // namespace

struct TokenStore::Impl {
  std::string folder, split;
  Manifest manifest;
  std::optional<Tokenizer> tokenizer;
  std::vector<PlacedShard> shards;
  uint64_t documents = 0, sentences = 0, tokens = 0;
  std::vector<TextPart> parts;  ///< of a mixture; else empty

  /// The shard of index `value`, by the field `first`.
  const PlacedShard& shard_of(uint64_t value, uint64_t PlacedShard::* first) const {
    size_t at = shards.size() - 1;
    while (at > 0 && shards[at].*first > value) --at;
    return shards[at];
  }

  /// Adds a file to the end of the text.
  void append(std::shared_ptr<const Shard> file) {
    const auto& facts = file->expected;
    shards.push_back({.file = file, .first_document = documents, .first_sentence = sentences, .first_token = tokens});
    documents += facts.documents;
    sentences += facts.sentences;
    tokens += facts.tokens;
  }
};

namespace {

/// The tokenizer of a folder of tokens. Throws DataError for another one than that which made them.
Tokenizer tokenizer_of_tokens(const std::string& tokens, const std::string& fingerprint) try {
  const auto folder = tokens + "/tokenizer";
  auto tokenizer = Tokenizer::open(folder);
  require<DataError>(tokenizer.has_fingerprint(fingerprint), folder,
                     ": is not the tokenizer that made these tokens; restore it, or prepare the text again");
  return tokenizer;
} catch (const ChangedTokenizer& fault) {
  fail<DataError>(fault.change, "; restore it, or prepare the text again");
}

}  // namespace

TokenStore::TokenStore(const std::string& folder, const std::string& split) {
  auto impl = std::make_shared<Impl>();
  impl->folder = folder;
  impl->split = split;
  impl->manifest = read_manifest(folder);
  impl->tokenizer = tokenizer_of_tokens(folder, impl->manifest.tokenizer_fingerprint);
  const auto tokens = static_cast<uint64_t>(impl->tokenizer->size());
  const auto& counts = impl->manifest.counts;  // by id
  require<DataError>(counts.empty() || counts.size() == tokens, folder, "/manifest.json: counts ", counts.size(),
                     " tokens, and the tokenizer has ", tokens, "; prepare the text again");
  const auto shards = impl->manifest.splits.find(split);
  require<DataError>(shards != impl->manifest.splits.end() && !shards->second.empty(), folder, ": has no split '",
                     split, "'; prepare the text again with held-out documents");
  for (const auto& facts : shards->second) {
    auto shard = std::make_shared<Shard>(folder, facts, tokens);
    shard->read_source_bytes(folder);
    impl->append(std::move(shard));
  }
  require<DataError>(impl->documents > 0, folder, ": split '", split, "' has no document; prepare the text again");
  impl_ = std::move(impl);
}

TokenStore::TokenStore(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

TokenStore TokenStore::with_tokenizer(const Tokenizer& tokenizer) const {
  require<DataError>(tokenizer.has_fingerprint(impl_->manifest.tokenizer_fingerprint), impl_->folder,
                     ": was made by another tokenizer; prepare the text with this one");
  auto impl = std::make_shared<Impl>(*impl_);
  impl->tokenizer = tokenizer;
  auto& counts = impl->manifest.counts;
  if (!counts.empty()) counts.resize(static_cast<size_t>(tokenizer.size()));
  return TokenStore(std::shared_ptr<const Impl>(std::move(impl)));
}

void add_counts(const std::vector<uint64_t>& counts, double passes, std::vector<uint64_t>& sum) {
  for (size_t id = 0; id < counts.size(); ++id)
    sum[id] += static_cast<uint64_t>(std::llround(passes * static_cast<double>(counts[id])));
}

TokenStore TokenStore::mixture(std::vector<TextPart> parts) {
  if (parts.size() == 1) return parts.front().text;
  double weights = 0;
  auto impl = std::make_shared<Impl>(*parts.front().text.impl_);
  impl->folder.clear();
  impl->shards.clear();
  impl->documents = impl->sentences = impl->tokens = 0;
  std::string fingerprints;
  for (auto& part : parts) {
    weights += part.fraction;
    part.first_document = impl->documents;
    part.first_token = impl->tokens;
    impl->folder += (impl->folder.empty() ? "" : ", ") + part.text.folder();
    fingerprints += part.text.fingerprint() + " ";
    for (const auto& shard : part.text.impl_->shards) impl->append(shard.file);
  }
  auto& manifest = impl->manifest;
  manifest.fingerprint = hash_hex(fingerprints);
  manifest.counts.assign(static_cast<size_t>(impl->tokenizer->size()), 0);
  std::optional<double> all_words = 0;
  bool are_counted = true;
  for (auto& part : parts) {
    part.fraction /= weights;
    part.passes = part.fraction * static_cast<double>(impl->tokens) / static_cast<double>(part.text.num_tokens());
    are_counted = are_counted && !part.text.train_counts().empty();
    add_counts(part.text.train_counts(), part.passes, manifest.counts);
    const auto own = part.text.train_words();
    all_words = own && all_words ? std::optional(*all_words + part.passes * static_cast<double>(*own)) : std::nullopt;
  }
  if (!are_counted) manifest.counts.clear();
  manifest.report = nlohmann::json::object();
  if (all_words) manifest.report["words"] = static_cast<uint64_t>(std::llround(*all_words));
  impl->parts = std::move(parts);
  return TokenStore(std::shared_ptr<const Impl>(std::move(impl)));
}

std::vector<TextPart> TokenStore::parts() const {
  return impl_->parts.empty() ? std::vector{TextPart{*this}} : impl_->parts;
}
const std::string& TokenStore::folder() const { return impl_->folder; }
uint64_t TokenStore::num_documents() const { return impl_->documents; }
uint64_t TokenStore::num_sentences() const { return impl_->sentences; }
uint64_t TokenStore::num_tokens() const { return impl_->tokens; }

uint64_t TokenStore::first_sentence(uint64_t document) const {
  if (document >= impl_->documents) return impl_->sentences;
  const auto& shard = impl_->shard_of(document, &PlacedShard::first_document);
  return shard.first_sentence + shard.file->documents[document - shard.first_document];
}

uint64_t TokenStore::first_token(uint64_t sentence) const {
  if (sentence >= impl_->sentences) return impl_->tokens;
  const auto& shard = impl_->shard_of(sentence, &PlacedShard::first_sentence);
  return shard.first_token + shard.file->sentences[sentence - shard.first_sentence];
}

uint64_t TokenStore::document_token(uint64_t document) const { return first_token(first_sentence(document)); }

uint64_t TokenStore::sentence_of(uint64_t token) const {
  const auto& shard = impl_->shard_of(token, &PlacedShard::first_token);
  const auto *begin = shard.file->sentences, *end = begin + shard.file->header.sentences + 1;
  return shard.first_sentence + static_cast<uint64_t>(std::upper_bound(begin, end, token - shard.first_token) - begin) -
         1;
}

uint64_t TokenStore::document_of(uint64_t token) const {
  const auto& shard = impl_->shard_of(token, &PlacedShard::first_token);
  const auto *begin = shard.file->documents, *end = begin + shard.file->header.documents + 1;
  const auto sentence = sentence_of(token) - shard.first_sentence;
  return shard.first_document + static_cast<uint64_t>(std::upper_bound(begin, end, sentence) - begin) - 1;
}

void TokenStore::read(uint64_t first, uint64_t count, int64_t* out) const {
  require<DataError>(first <= impl_->tokens && count <= impl_->tokens - first, impl_->folder,
                     ": the offsets of its tokens are damaged; prepare the text again");
  while (count > 0) {
    const auto& placed = impl_->shard_of(first, &PlacedShard::first_token);
    const auto& shard = *placed.file;
    if (!shard.is_verified) shard.verify();
    const uint64_t at = first - placed.first_token, n = std::min(count, shard.header.tokens - at);
    if (shard.header.id_bytes == 2)
      std::copy_n(reinterpret_cast<const uint16_t*>(shard.ids) + at, n, out);
    else
      std::copy_n(reinterpret_cast<const uint32_t*>(shard.ids) + at, n, out);
    first += n;
    out += n;
    count -= n;
  }
}

std::optional<uint64_t> TokenStore::source_bytes(uint64_t token) const {
  const auto& shard = impl_->shard_of(token, &PlacedShard::first_token);
  if (shard.file->source_bytes.empty()) return std::nullopt;
  return shard.file->source_bytes[token - shard.first_token];
}

std::vector<SourceSpan> TokenStore::sources() const {
  std::vector<SourceSpan> all;
  uint64_t documents = 0;
  for (const auto& shard : impl_->shards)
    for (const auto& span : shard.file->expected.sources) {
      append(all, span);
      documents += span.documents;
    }
  if (all.size() < 2 || documents != impl_->documents) all.clear();
  return all;
}

const std::vector<uint64_t>& TokenStore::train_counts() const { return impl_->manifest.counts; }
std::optional<uint64_t> TokenStore::train_words() const {
  const auto& report = impl_->manifest.report;
  if (!report.is_object() || !report.contains("words") || !report["words"].is_number_unsigned()) return std::nullopt;
  return report["words"].get<uint64_t>();
}
const Tokenizer& TokenStore::tokenizer() const { return *impl_->tokenizer; }
const std::string& TokenStore::fingerprint() const { return impl_->manifest.fingerprint; }
std::string TokenStore::split_fingerprint() const {
  if (impl_->parts.empty()) return split_text(impl_->manifest, impl_->split).fingerprint;
  std::string all;
  for (const auto& part : impl_->parts) all += part.text.split_fingerprint() + " ";
  return hash_hex(all);
}

void TokenStore::require_intact() const {
  for (const auto& shard : impl_->shards)
    require<DataError>(shard.file->is_intact(), shard.file->path,
                       ": became shorter while it was read; prepare the text again");
}

void TokenStore::verify() const {
  for (const auto& shard : impl_->shards) shard.file->verify();
}

}  // namespace cloze
