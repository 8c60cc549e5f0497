#pragma once
// One file of a token store: a header, ids, and the offsets of sentences and documents.
//
//   offset 0   "CLZTOK01", u32 bytes an id (2 or 4), u32 zero, u64 documents, u64 sentences, u64 tokens, u64 XXH3
//              of the above
//   offset 48  ids, padded with zeros to 8 bytes
//              u32 [sentences + 1] first token of each sentence
//              u32 [documents + 1] first sentence of each document
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace cloze {

struct ShardHeader {
  char magic[8];
  uint32_t id_bytes, zero;
  uint64_t documents, sentences, tokens, checksum;
};
static_assert(sizeof(ShardHeader) == 48);

inline constexpr char shard_magic[9] = "CLZTOK01";
/// Maximum number of tokens in a file: offsets have 32 bits, and an interrupted run repeats at most one file.
inline constexpr uint64_t shard_tokens = uint64_t{1} << 26;

/// Size of a file with this header; 0 for implausible counts.
uint64_t shard_bytes(const ShardHeader& header);

/// Documents that follow each other and are of one source.
struct SourceSpan {
  std::string source;
  uint64_t documents = 0;
  bool operator==(const SourceSpan&) const = default;
};
template <class V>
void describe(V& v, SourceSpan& s) {
  v("source", s.source);
  v("documents", s.documents);
}

/// Adds documents to the end; those of the source of the last ones to these.
void append(std::vector<SourceSpan>& spans, const SourceSpan& more);

struct ShardFacts {
  std::string file;
  uint64_t bytes = 0, documents = 0, sentences = 0, tokens = 0, xxh3 = 0;
  std::string source_file{};  ///< u32 [tokens]: number of bytes of the source text that each token covers; empty: not
                              ///< counted
  uint64_t source_xxh3 = 0;
  std::vector<SourceSpan> sources{};  ///< of all its documents; empty: not known
};

template <class V>
void describe(V& v, ShardFacts& s) {
  v("file", s.file);
  v("bytes", s.bytes);
  v("documents", s.documents);
  v("sentences", s.sentences);
  v("tokens", s.tokens);
  v("xxh3", s.xxh3);
  v.section_if("source_bytes", !s.source_file.empty(), [&](auto& inner) {
    inner("file", s.source_file);
    inner("xxh3", s.source_xxh3);
  });
  v.unless("sources", s.sources, {});
}

/// The file of a shard, its ids or its source bytes, whose size or checksum is not that of its facts; empty: none.
/// Throws Interrupted.
std::string damaged_file(const std::string& folder, const ShardFacts& facts);

/// Writes one file; ids are written as they come, offsets at the end.
class ShardWriter {
 public:
  ShardWriter(const std::string& folder, const std::string& file, uint32_t id_bytes);
  void add_sentence(const std::vector<int32_t>& ids) { add_sentence(ids.data(), ids.size()); }
  /// Source bytes of the last added sentence, one number for each of its ids; for every sentence of a file, or for
  /// none.
  void add_source_bytes(const std::vector<uint32_t>& bytes);
  void add_sentence(const int32_t* ids, size_t count);
  /// `source`: empty where none is noted.
  void end_document(const std::string& source = "");
  uint64_t tokens() const { return tokens_; }
  uint64_t documents() const { return documents_.size() - 1; }
  /// Finishes the file and syncs it. Throws DataError with the system's reason.
  ShardFacts finish();

 private:
  void put(const void* data, size_t bytes);
  std::string path_, file_;
  std::FILE* out_ = nullptr;
  uint32_t id_bytes_;
  uint64_t tokens_ = 0;
  std::vector<uint32_t> sentences_{0}, documents_{0};
  std::vector<uint16_t> narrow_;
  std::vector<uint32_t> source_bytes_;
  std::vector<SourceSpan> sources_;
  std::string folder_;
};

}  // namespace cloze
