#include "data/prepare/encode_pass.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "data/prepare/document_pool.h"
#include "data/reading/sentences.h"
#include "data/store/manifest.h"
#include "data/word_starts.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

EncodedDocument encode(const RawDocument& raw, const Tokenizer& tokenizer, bool sentences_given,
                       std::vector<std::string_view>& sentences) {
  EncodedDocument out{.number = raw.number, .file = raw.file};
  std::vector<uint8_t> empty;  // sentences without a token
  for (const auto& line : raw.lines) {
    sentences.clear();
    if (sentences_given)
      sentences.emplace_back(line);
    else
      split_sentences(line, sentences);
    for (const auto sentence : sentences) {
      const auto ids = tokenizer.encode(sentence, sentence.data() != sentences.front().data());
      empty.push_back(ids.empty());
      if (ids.empty()) continue;
      out.ids.insert(out.ids.end(), ids.begin(), ids.end());
      out.lengths.push_back(static_cast<uint32_t>(ids.size()));
      out.sentences.emplace_back(sentence);
    }
  }
  const auto tail = static_cast<int64_t>(tail_sentences(raw, sentences_given));
  out.tail = static_cast<size_t>(std::count(empty.end() - tail, empty.end(), uint8_t{0}));
  return out;
}

/// The number of bytes of a sentence that each of its ids covers, with the white space before it: they add up to the
/// sentence, plus one for the separator if it follows another sentence of its document.
std::vector<uint32_t> covered_bytes(const Tokenizer& tokenizer, const std::string& sentence,
                                    std::span<const int32_t> ids, bool follows) {
  const auto fits = [&](const std::vector<TokenSpan>& tokens) {
    return std::equal(tokens.begin(), tokens.end(), ids.begin(), ids.end(),
                      [](const auto& token, int32_t id) { return token.id == id; });
  };
  size_t before = 0;  // spaces inserted before the sentence
  auto tokens = tokenizer.encode_with_offsets(sentence);
  if (!fits(tokens) && follows) {  // byte-level BPE includes the space before a text in its first token
    before = 1;
    tokens = tokenizer.encode_with_offsets(" " + sentence);
  }
  const bool has_offsets = fits(tokens);
  std::vector<uint32_t> bytes(ids.size());
  size_t done = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    // Without offsets, the bytes are shared equally.
    const size_t wanted =
        has_offsets ? tokens[i].end - std::min(tokens[i].end, before) : sentence.size() * (i + 1) / ids.size();
    const size_t end = i + 1 == ids.size() ? sentence.size() : std::clamp(wanted, done, sentence.size());
    bytes[i] = static_cast<uint32_t>(end - done);
    done = end;
  }
  bytes[0] += follows;
  return bytes;
}

}  // namespace

EncodePass::EncodePass(const PrepareOptions& options, const Tokenizer& tokenizer, std::string folder, json key,
                       const Split& split, const std::vector<Assignment>& assignments)
    : options_(options),
      tokenizer_(tokenizer),
      folder_(std::move(folder)),
      split_(split),
      assignments_(assignments),
      id_bytes_(tokenizer.size() <= 65536 ? 2 : 4) {
  key_ = {{"made_from", std::move(key)},
          {"split", &assignments == &split.documents ? "text" : "valid"},
          {"fates", split.fingerprint()}};
  progress_.counts.resize(static_cast<size_t>(tokenizer.size()));
  resume();
}

EncodeProgress EncodePass::run(const std::vector<std::string>& inputs, const std::vector<std::string>& targets) {
  DocumentReader reader(reader_of(options_, inputs, targets));
  const bool has_sentences = reader.sentences_given();
  for (const auto& file : inputs) {
    const auto source = options_.sources.find(file);
    sources_.push_back(source == options_.sources.end() ? "" : source->second);
  }
  using Encoded = std::vector<EncodedDocument>;
  DocumentPool<Encoded> pool(threads_of(options_), [&](const RawBatch& batch) {
    Encoded encoded;
    std::vector<std::string_view> sentences;
    for (const auto& document : batch.documents)
      encoded.push_back(encode(document, tokenizer_, has_sentences, sentences));
    return encoded;
  });
  const uint64_t skip = progress_.documents_read, total = input_bytes(inputs);
  bool more = true;
  while (more || !pool.idle()) {
    if (interrupted) throw Interrupted("stopped; run the same command to resume");
    if (more && !pool.full()) {
      RawBatch batch = read_batch(reader, more, [&](RawDocument& document) { return wants(document, skip); });
      if (!batch.documents.empty()) pool.send(std::move(batch));
    } else {
      write(pool.receive());
      if (open_tokens() >= options_.file_tokens) close_part();
      show(reader.bytes(), total);
    }
  }
  split_.require_unchanged();
  close_part();
  end_progress();
  progress_.report.bytes = reader.bytes();
  progress_.report.invalid_utf8 = reader.invalid_utf8();
  progress_.report.first_invalid = reader.first_invalid();
  progress_.report.skipped_lines = reader.skipped_lines();
  progress_.report.first_skipped = reader.first_skipped();
  progress_.report.null_rows = reader.null_rows();
  progress_.report.first_null = reader.first_null();
  progress_.report.incomplete_pairs += reader.incomplete_pairs();
  if (reader.split_documents() > 0)
    log_info("data", concat(counted(reader.split_documents(), "document"),
                            reader.split_documents() == 1 ? " was" : " were", " longer than 16 MB and split there"));
  return progress_;
}

/// True for a document that is kept, and not done; sets how much of its end is held out.
bool EncodePass::wants(RawDocument& document, uint64_t first) const {
  if (document.number >= assignments_.size()) return false;  // a file has grown
  if (&assignments_ == &split_.documents && document.number == split_.tail_document)
    document.tail_bytes = split_.tail_bytes;
  return document.number >= first && assignments_[document.number] != Assignment::removed;
}

ShardWriter& EncodePass::writer(const std::string& split) {
  auto writer = writers_.find(split);
  if (writer == writers_.end()) {
    char name[64];
    std::snprintf(name, sizeof name, "%s-%05zu.tokens", split.c_str(), progress_.splits[split].size());
    writer = writers_.emplace(split, std::make_unique<ShardWriter>(folder_, name, id_bytes_)).first;
  }
  return *writer->second;
}

void EncodePass::write(const std::vector<EncodedDocument>& documents) {
  for (const auto& document : documents) {
    progress_.documents_read = document.number + 1;
    if (document.lengths.empty()) continue;
    if (options_.format == TextFormat::pairs && document.lengths.size() != 2) {  // a side without a token
      ++progress_.report.incomplete_pairs;
      continue;
    }
    const size_t sentences = document.lengths.size();
    const size_t kept = sentences - document.tail;
    put(document, 0, kept, assignments_[document.number] == Assignment::valid ? "valid" : "train");
    put(document, kept, sentences, "valid");
  }
}

void EncodePass::put(const EncodedDocument& document, size_t first, size_t last, const std::string& split) {
  if (first == last) return;
  auto& out = writer(split);
  const bool valid = split == "valid", is_scored = valid || options_.for_scoring;
  const bool running = options_.format != TextFormat::pairs;  // the two sides of a pair have no separator
  size_t at = 0;
  for (size_t s = 0; s < first; ++s) at += document.lengths[s];
  for (size_t s = first; s < last; at += document.lengths[s++]) {
    out.add_sentence(document.ids.data() + at, document.lengths[s]);
    if (is_scored)
      out.add_source_bytes(covered_bytes(tokenizer_, document.sentences[s],
                                         {document.ids.data() + at, document.lengths[s]}, running && s > first));
    ++progress_.report.sentences;
    if (!valid) progress_.report.words += static_cast<uint64_t>(count_words(document.sentences[s]));
    count(document.ids, at, at + document.lengths[s], valid);
  }
  out.end_document(is_scored ? sources_[document.file] : "");
  ++(valid ? progress_.report.valid_documents : progress_.report.documents);
}

/// Counts the tokens of a sentence, and how often each occurs in the training text.
void EncodePass::count(const std::vector<int32_t>& ids, size_t begin, size_t end, bool valid) {
  for (size_t i = begin; i < end; ++i) {
    progress_.report.unknown_tokens += ids[i] == tokenizer_.special().unk;
    if (!valid) ++progress_.counts[static_cast<size_t>(ids[i])];
  }
  (valid ? progress_.report.valid_tokens : progress_.report.tokens) += end - begin;
}

uint64_t EncodePass::open_tokens() const {
  uint64_t max = 0;
  for (const auto& [name, out] : writers_) max = std::max(max, out->tokens());
  return max;
}

void EncodePass::close_part() {
  for (auto& [name, out] : writers_) progress_.splits[name].push_back(out->finish());
  writers_.clear();
  write_atomic(folder_ + "/progress.json", json_text(json{{"key", key_}, {"progress", progress_}}));
}

void EncodePass::resume() {
  const auto path = folder_ + "/progress.json";
  if (!fs::exists(path)) return;
  const auto content = parse_json(read_text(path));
  if (!content.is_object() || content.value("key", json()) != key_) return;
  try {
    progress_ = content.at("progress").get<EncodeProgress>();
  } catch (const json::exception&) {
    return;  // progress.json is damaged: start again
  }
  const auto start_again = [&] {
    progress_ = {};
    progress_.counts.resize(static_cast<size_t>(tokenizer_.size()));
  };
  if (progress_.counts.size() != static_cast<size_t>(tokenizer_.size())) return start_again();
  for (const auto& [split, shards] : progress_.splits)
    for (const auto& facts : shards)
      if (const auto file = damaged_file(folder_, facts); !file.empty()) {
        log_warning("data", concat(file, ": its content does not match its checksum; the text is encoded again"));
        return start_again();
      }
  if (progress_.documents_read > 0)
    log_info("data", concat("resuming after ", counted(progress_.documents_read, "document")));
}

void EncodePass::show(uint64_t bytes_done, uint64_t total) {
  const double now = seconds_since(start_);
  if (now - shown_ < 0.5) return;
  const bool plain = now - shown_plain_ > 10;
  if (plain) shown_plain_ = now;
  shown_ = now;
  const auto done = static_cast<double>(bytes_done), all = static_cast<double>(total);
  Progress shown{{concat("[data]    ", bytes(done), total > 0 ? " of " + bytes(all) : "")},
                 total > 0 ? done / all : -1};
  if (total > bytes_done) shown.fields.push_back("eta " + duration(now * (all - done) / done));
  shown.fields.push_back(counted(progress_.report.tokens + progress_.report.valid_tokens, "token"));
  shown.fields.push_back(bytes(done / now) + "/s");
  log_progress(shown, plain);
}

}  // namespace cloze
