#include "data/store/shard.h"

#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/interrupt.h"

namespace cloze {

namespace {

/// Whether a file has this checksum.
bool has_checksum(const std::string& path, uint64_t xxh3) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  std::ifstream in(path, std::ios::binary);
  StreamHash hash;
  std::vector<char> block(size_t{1} << 20);
  while (in) {
    if (interrupted) throw Interrupted(concat("stopped while ", path, " was checked; run the same command again"));
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    hash.add(block.data(), static_cast<size_t>(in.gcount()));
  }
  return in.eof() && hash.value() == xxh3;
}

}  // namespace

std::string damaged_file(const std::string& folder, const ShardFacts& facts) {
  const auto ids = folder + "/" + facts.file, source = folder + "/" + facts.source_file;
  std::error_code unknown;
  if (std::filesystem::file_size(ids, unknown) != facts.bytes || !has_checksum(ids, facts.xxh3)) return ids;
  return facts.source_file.empty() || has_checksum(source, facts.source_xxh3) ? "" : source;
}

uint64_t shard_bytes(const ShardHeader& h) {
  const uint64_t limit = uint64_t{1} << 40;
  if (h.tokens > limit || h.sentences > h.tokens || h.documents > h.sentences || (h.id_bytes != 2 && h.id_bytes != 4))
    return 0;
  return sizeof h + (h.tokens * h.id_bytes + 7) / 8 * 8 + 4 * (h.sentences + 1 + h.documents + 1);
}

ShardWriter::ShardWriter(const std::string& folder, const std::string& file, uint32_t id_bytes)
    : path_(folder + "/" + file), file_(file), out_(open_own(path_, "wb")), id_bytes_(id_bytes), folder_(folder) {
  require<DataError>(out_ != nullptr, path_, ": cannot be written (", system_reason(), ")");
  const ShardHeader blank{};
  put(&blank, sizeof blank);
}

void ShardWriter::put(const void* data, size_t bytes) {
  if (std::fwrite(data, 1, bytes, out_) == bytes) return;
  const auto reason = system_reason();
  std::fclose(out_);
  out_ = nullptr;
  fail<DataError>(path_, ": cannot be written (", reason, ")");
}

void ShardWriter::add_sentence(const int32_t* ids, size_t count) {
  if (id_bytes_ == 2) {
    narrow_.assign(ids, ids + count);
    put(narrow_.data(), 2 * count);
  } else {
    put(ids, 4 * count);
  }
  tokens_ += count;
  sentences_.push_back(static_cast<uint32_t>(tokens_));
}

void ShardWriter::add_source_bytes(const std::vector<uint32_t>& bytes) {
  source_bytes_.insert(source_bytes_.end(), bytes.begin(), bytes.end());
}

void append(std::vector<SourceSpan>& spans, const SourceSpan& more) {
  if (spans.empty() || spans.back().source != more.source)
    spans.push_back(more);
  else
    spans.back().documents += more.documents;
}

void ShardWriter::end_document(const std::string& source) {
  if (documents_.back() == sentences_.size() - 1) return;
  documents_.push_back(static_cast<uint32_t>(sentences_.size() - 1));
  if (!source.empty()) append(sources_, {.source = source, .documents = 1});
}

ShardFacts ShardWriter::finish() {
  const uint64_t zeros = 0;
  put(&zeros, (8 - tokens_ * id_bytes_ % 8) % 8);
  put(sentences_.data(), 4 * sentences_.size());
  put(documents_.data(), 4 * documents_.size());
  ShardHeader header{};
  std::memcpy(header.magic, shard_magic, 8);
  header.id_bytes = id_bytes_;
  header.documents = documents_.size() - 1;
  header.sentences = sentences_.size() - 1;
  header.tokens = tokens_;
  header.checksum = XXH3_64bits(&header, offsetof(ShardHeader, checksum));
  std::fseek(out_, 0, SEEK_SET);
  put(&header, sizeof header);
  const bool written = std::fflush(out_) == 0 && fsync(fileno(out_)) == 0;
  const auto reason = system_reason();
  std::fclose(out_);
  out_ = nullptr;
  require<DataError>(written, path_, ": cannot be written (", reason, ")");
  const auto content = read_text(path_, uint64_t{1} << 40);
  ShardFacts facts{.file = file_,
                   .bytes = content.size(),
                   .documents = header.documents,
                   .sentences = header.sentences,
                   .tokens = header.tokens,
                   .xxh3 = XXH3_64bits(content.data(), content.size()),
                   .sources = std::move(sources_)};
  if (source_bytes_.size() != tokens_) return facts;
  const std::string source(reinterpret_cast<const char*>(source_bytes_.data()), 4 * source_bytes_.size());
  facts.source_file = file_.substr(0, file_.rfind('.')) + ".bytes";
  facts.source_xxh3 = XXH3_64bits(source.data(), source.size());
  write_atomic(folder_ + "/" + facts.source_file, source);
  return facts;
}

}  // namespace cloze
