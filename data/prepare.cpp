#include "data/prepare.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <span>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"
#include "data/document_pool.h"
#include "data/manifest.h"
#include "data/reader.h"
#include "data/sentences.h"
#include "data/split.h"
#include "data/spool.h"
#include "data/tokenizer.h"
#include "data/train_tokenizer.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

/// A tokenized document.
struct EncodedDocument {
  uint64_t number = 0;
  std::vector<int32_t> ids{};
  std::vector<uint32_t> lengths{};       // of its sentences
  std::vector<std::string> sentences{};  // their text
  size_t tail = 0;                       // number of its last sentences that are held out
};

/// Words between white space.
uint64_t words_of(const std::string& text) {
  uint64_t count = 0;
  bool inside = false;
  for (const char c : text) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    count += !space && !inside;
    inside = !space;
  }
  return count;
}

EncodedDocument encode(const RawDocument& raw, const Tokenizer& tokenizer, bool sentences_given,
                       std::vector<std::string_view>& found) {
  EncodedDocument out{.number = raw.number};
  std::vector<uint8_t> empty;  // sentences without a token
  for (const auto& line : raw.lines) {
    found.clear();
    if (sentences_given)
      found.emplace_back(line);
    else
      split_sentences(line, found);
    for (const auto sentence : found) {
      const auto ids = tokenizer.encode(sentence, sentence.data() != found.front().data());
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

/// The progress of a pass over one text; written to progress.json after every part, so that it can be resumed.
struct Progress {
  uint64_t documents_read = 0;  // removed ones included
  std::map<std::string, std::vector<ShardFacts>> splits;
  std::vector<uint64_t> counts;
  PrepareReport report;
};

json save(const Progress& p) {
  json splits = json::object();
  for (const auto& [name, shards] : p.splits) splits[name] = to_json(shards);
  return {{"documents_read", p.documents_read},
          {"splits", splits},
          {"counts", p.counts},
          {"documents", p.report.documents},
          {"sentences", p.report.sentences},
          {"tokens", p.report.tokens},
          {"words", p.report.words},
          {"valid_documents", p.report.valid_documents},
          {"valid_tokens", p.report.valid_tokens},
          {"unknown_tokens", p.report.unknown_tokens},
          {"incomplete_pairs", p.report.incomplete_pairs}};
}

Progress load_progress(const json& j) {
  Progress p;
  p.documents_read = j.at("documents_read");
  for (const auto& [name, list] : j.at("splits").items()) p.splits[name] = shards_from(list);
  p.counts = j.at("counts").get<std::vector<uint64_t>>();
  p.report.documents = j.at("documents"), p.report.sentences = j.at("sentences"), p.report.tokens = j.at("tokens");
  p.report.valid_documents = j.at("valid_documents"), p.report.valid_tokens = j.at("valid_tokens"),
  p.report.unknown_tokens = j.at("unknown_tokens");
  p.report.words = j.value("words", uint64_t{0});
  p.report.incomplete_pairs = j.at("incomplete_pairs");
  return p;
}

/// The number of bytes of a sentence that each of its ids covers, with the white space before it: they add up to the
/// sentence, plus one for the separator if it follows another sentence.
std::vector<uint32_t> source_bytes(const Tokenizer& tokenizer, const std::string& sentence,
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

/// One pass over one text.
class Pass {
 public:
  /// `split`: of the text; `fates`: of the documents of this one.
  Pass(const PrepareOptions& options, const Tokenizer& tokenizer, std::string folder, json key, const Split& split,
       const std::vector<Fate>& fates)
      : options_(options),
        tokenizer_(tokenizer),
        folder_(std::move(folder)),
        split_(split),
        fates_(fates),
        id_bytes_(tokenizer.size() <= 65536 ? 2 : 4) {
    key_ = {{"made_from", std::move(key)},
            {"split", &fates == &split.documents ? "text" : "valid"},
            {"fates", split.fingerprint()}};
    progress_.counts.resize(static_cast<size_t>(tokenizer.size()));
    resume();
  }

  Progress run(const std::vector<std::string>& inputs, const std::vector<std::string>& targets) {
    DocumentReader reader(reader_of(options_, inputs, targets));
    const bool given = reader.sentences_given();
    using Encoded = std::vector<EncodedDocument>;
    DocumentPool<Encoded> pool(threads_of(options_), [&](const RawBatch& batch) {
      Encoded encoded;
      std::vector<std::string_view> found;
      for (const auto& document : batch.documents) encoded.push_back(encode(document, tokenizer_, given, found));
      return encoded;
    });
    const uint64_t skip = progress_.documents_read, total = input_bytes(inputs);
    const auto wanted = [&](RawDocument& document) {
      if (document.number >= fates_.size()) return false;  // a file has grown
      if (&fates_ == &split_.documents && document.number == split_.tail_document)
        document.tail_bytes = split_.tail_bytes;
      return document.number >= skip && fates_[document.number] != Fate::removed;
    };
    bool more = true;
    while (more || !pool.idle()) {
      if (interrupted) throw Interrupted("stopped; run the same command to resume");
      if (more && !pool.full()) {
        RawBatch batch = read_batch(reader, more, wanted);
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
    progress_.report.incomplete_pairs += reader.incomplete_pairs();
    if (reader.split_documents() > 0)
      log_info("data",
               words(thousands(reader.split_documents()), " documents were longer than 16 MB and were split there"));
    return progress_;
  }

 private:
  static uint64_t input_bytes(const std::vector<std::string>& inputs) {
    uint64_t total = 0;
    for (const auto& file : expand_inputs(inputs)) {
      std::error_code ignored;
      const bool packed =
          file.size() > 3 && (file.substr(file.size() - 3) == ".gz" || file.substr(file.size() - 3) == ".xz");
      if (packed || !fs::is_regular_file(file, ignored)) return 0;
      total += fs::file_size(file, ignored);
    }
    return total;
  }

  ShardWriter& writer(const std::string& split) {
    auto found = writers_.find(split);
    if (found == writers_.end()) {
      char name[64];
      std::snprintf(name, sizeof name, "%s-%05zu.tokens", split.c_str(), progress_.splits[split].size());
      found = writers_.emplace(split, std::make_unique<ShardWriter>(folder_, name, id_bytes_)).first;
    }
    return *found->second;
  }

  void write(const std::vector<EncodedDocument>& documents) {
    for (const auto& document : documents) {
      progress_.documents_read = document.number + 1;
      if (document.lengths.empty()) continue;
      if (options_.format == "pairs" && document.lengths.size() != 2) {  // a side without a token
        ++progress_.report.incomplete_pairs;
        continue;
      }
      const size_t sentences = document.lengths.size();
      const size_t kept = sentences - document.tail;
      put(document, 0, kept, fates_[document.number] == Fate::valid ? "valid" : "train");
      put(document, kept, sentences, "valid");
    }
  }

  void put(const EncodedDocument& document, size_t first, size_t last, const std::string& split) {
    if (first == last) return;
    auto& out = writer(split);
    const bool valid = split == "valid",
               running = options_.format != "pairs";  // the two sides of a pair have no separator
    size_t at = 0;
    for (size_t s = 0; s < first; ++s) at += document.lengths[s];
    for (size_t s = first; s < last; at += document.lengths[s++]) {
      out.add_sentence(document.ids.data() + at, document.lengths[s]);
      if (valid || options_.for_scoring)
        out.add_source_bytes(source_bytes(tokenizer_, document.sentences[s],
                                          {document.ids.data() + at, document.lengths[s]}, running && s > first));
      ++progress_.report.sentences;
      if (!valid) progress_.report.words += words_of(document.sentences[s]);
      for (size_t i = at; i < at + document.lengths[s]; ++i) {
        const auto id = static_cast<size_t>(document.ids[i]);
        progress_.report.unknown_tokens += document.ids[i] == tokenizer_.special().unk;
        if (!valid) ++progress_.counts[id];
      }
      (valid ? progress_.report.valid_tokens : progress_.report.tokens) += document.lengths[s];
    }
    out.end_document();
    ++(valid ? progress_.report.valid_documents : progress_.report.documents);
  }

  uint64_t open_tokens() const {
    uint64_t max = 0;
    for (const auto& [name, out] : writers_) max = std::max(max, out->tokens());
    return max;
  }

  void close_part() {
    for (auto& [name, out] : writers_) progress_.splits[name].push_back(out->finish());
    writers_.clear();
    write_atomic(folder_ + "/progress.json", json{{"key", key_}, {"progress", save(progress_)}}.dump());
  }

  void resume() {
    const auto path = folder_ + "/progress.json";
    if (!fs::exists(path)) return;
    const auto content = parse_json(read_text(path));
    if (!content.is_object() || content.value("key", json()) != key_) return;
    try {
      progress_ = load_progress(content.at("progress"));
    } catch (const json::exception&) {
      return;  // progress.json is damaged: start again
    }
    if (progress_.documents_read > 0)
      log_info("data", words("resuming after ", thousands(progress_.documents_read), " documents"));
  }

  void show(uint64_t bytes_done, uint64_t total) {
    const double now = std::chrono::duration<double>(Clock::now() - start_).count();
    if (now - shown_ < 0.5) return;
    const bool plain = now - shown_plain_ > 10;
    if (plain) shown_plain_ = now;
    shown_ = now;
    std::string text = words("[data]    ", bytes(static_cast<double>(bytes_done)),
                             total ? " of " + bytes(static_cast<double>(total)) : "", "  ",
                             thousands(progress_.report.tokens + progress_.report.valid_tokens), " tokens  ",
                             bytes(static_cast<double>(bytes_done) / now), "/s");
    if (total > bytes_done)
      text += "  eta " + duration(now * static_cast<double>(total - bytes_done) / static_cast<double>(bytes_done));
    log_progress(text, plain);
  }

  const PrepareOptions& options_;
  const Tokenizer& tokenizer_;
  std::string folder_;
  json key_;  // identifies the progress that this pass can resume
  const Split& split_;
  const std::vector<Fate>& fates_;
  uint32_t id_bytes_;
  Progress progress_;
  std::map<std::string, std::unique_ptr<ShardWriter>> writers_;
  Clock::time_point start_ = Clock::now();
  double shown_ = 0, shown_plain_ = 0;
};

void check(const PrepareOptions& o) {
  const auto check_choice = [](const std::string& option, const std::string& value,
                               std::initializer_list<const char*> allowed) {
    std::string list;
    for (const auto* a : allowed) {
      if (value == a) return;
      list += (list.empty() ? "" : ", ") + std::string(a);
    }
    fail<ConfigError>("--", option, " is '", value, "', must be one of ", list);
  };
  check_choice("format", o.format, {"auto", "text", "lines", "jsonl", "wiki", "pairs"});
  check_choice("train", o.train_kind, {"unigram", "bpe", "wordpiece", "byte_bpe"});
  check_choice("invalid-utf8", o.invalid_utf8, {"replace", "refuse"});
  require<ConfigError>(!o.out.empty(), "no output folder was given; name one with --out");
  require<ConfigError>(o.held_out >= 0 && o.held_out < 1, "--held-out is ", o.held_out, ", must be in [0, 1)");
  require<ConfigError>(o.vocab_size >= 16 && o.vocab_size <= 1000000, "--vocab-size is ", o.vocab_size,
                       ", must be in [16, 1000000]");
  require<ConfigError>(o.sentinels >= 0 && o.sentinels <= 10000, "--sentinels is ", o.sentinels,
                       ", must be in [0, 10000]");
  require<ConfigError>((o.targets.empty() && o.valid_targets.empty()) || o.format == "pairs",
                       "--target names the other side of pairs; add --format pairs");
  require<ConfigError>(o.valid_targets.empty() || (!o.valid_inputs.empty() && !o.targets.empty()),
                       "--valid-target names the other side of --valid; give --valid and --target too");
  require<ConfigError>(o.targets.empty() || o.valid_inputs.empty() == o.valid_targets.empty(),
                       "--valid and --valid-target name both sides of held-out pairs; give both or none");
  const auto comma = o.columns.find(',');
  require<ConfigError>(o.columns.empty() || (comma != std::string::npos && comma > 0 && comma + 1 < o.columns.size() &&
                                             o.columns.find(',', comma + 1) == std::string::npos),
                       "--columns is '", o.columns,
                       "', must be two names with a comma between them: --columns sentence1,sentence2");
  require<ConfigError>(o.columns.empty() || (o.format == "pairs" && o.targets.empty()),
                       "--columns names both sides of pairs in one line; add --format pairs, and leave --target out");
  require<ConfigError>(o.columns.empty() || o.field == "text",
                       "--columns and --field both name the keys of pairs; leave --field out");
  require<ConfigError>(o.threads >= 0 && o.threads <= 1024, "--threads is ", o.threads, ", must be in [0, 1024]");
}

/// The options and inputs of a folder: equal ones give equal tokens. `spooled`: by the names of the inputs.
json made_from(const PrepareOptions& o, const std::map<std::string, Spooled>& spooled) {
  const auto files = [&](const std::vector<std::string>& inputs) {
    json list = json::array();
    for (const auto& file : expand_inputs(inputs)) {
      if (const auto copy = spooled.find(file); copy != spooled.end()) {
        list.push_back({{"path", file}, {"bytes", copy->second.bytes}, {"xxh3", copy->second.xxh3}});
        continue;
      }
      struct stat info{};
      stat(file.c_str(), &info);
      list.push_back({{"path", file},
                      {"bytes", info.st_size},
                      {"mtime", info.st_mtim.tv_sec},
                      {"mtime_ns", info.st_mtim.tv_nsec}});
    }
    return list;
  };
  json j{{"inputs", files(o.inputs)},
         {"format", o.format},
         {"field", o.field},
         {"held_out", o.held_out},
         {"invalid_utf8", o.invalid_utf8}};
  if (o.dedup) j["dedup"] = true;
  if (!o.columns.empty()) j["columns"] = o.columns;
  if (!o.valid_inputs.empty()) j["valid_inputs"] = files(o.valid_inputs);
  if (!o.targets.empty()) j["targets"] = files(o.targets);
  if (!o.valid_targets.empty()) j["valid_targets"] = files(o.valid_targets);
  if (o.sentinels > 0) j["sentinels"] = o.sentinels;
  if (o.tokenizer.empty())
    j["train"] = {{"kind", o.train_kind}, {"vocab_size", o.vocab_size}, {"lowercase", o.lowercase}, {"seed", o.seed}};
  else
    j["tokenizer"] = Tokenizer::open(o.tokenizer).fingerprint();
  if (o.special_tokens) j["special_tokens"] = true;
  return j;
}

}  // namespace

ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets) {
  return {.inputs = inputs,
          .targets = targets,
          .format = options.format,
          .field = options.field,
          .columns = options.columns,
          .refuse_invalid_utf8 = options.invalid_utf8 == "refuse"};
}

namespace {

void warn_of_duplicates(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (options.dedup) {
    log_info("data", words(thousands(split.removed), " documents of the text and ", thousands(split.removed_valid),
                           " of held-out text were removed as duplicates or near-duplicates"));
    return;
  }
  const uint64_t copies = split.copies + split.near_duplicates;
  if (copies * 20 > split.documents.size())
    log_warning("data", words(thousands(copies), " of ", thousands(split.documents.size()),
                              " documents are duplicates or near-duplicates of another; a model memorizes them: remove "
                              "them with --dedup"));
  if (split.leaked > 0)
    log_warning("data", words(thousands(split.leaked), " of ", thousands(report.valid_documents),
                              " held-out documents have a duplicate or near-duplicate in the training text, "
                              "which makes held-out losses too low; remove it there with --dedup"));
}

/// Warns if the held-out share is far from the requested one.
void warn_of_share(double asked, const PrepareReport& report) {
  const double all = static_cast<double>(report.tokens + report.valid_tokens);
  const double share = static_cast<double>(report.valid_tokens) / all;
  if (share <= 2 * asked && share >= asked / 2) return;
  char text[160];
  std::snprintf(
      text, sizeof text,
      "%.3g %% of the tokens are held out, %.3g %% were requested: the documents are too few, or too long, to "
      "come closer",
      100 * share, 100 * asked);
  log_warning("data", text);
}

}  // namespace

PrepareReport prepare(const PrepareOptions& given) {
  const auto start = Clock::now();
  check(given);
  PrepareOptions options = given;
  const std::string partial = options.out + ".partial";
  std::error_code error;
  if (fs::exists(options.out) && !fs::exists(options.out + "/manifest.json"))
    require<ConfigError>(fs::is_directory(options.out) && fs::is_empty(options.out), options.out,
                         ": exists and is not prepared text; name another --out");
  const std::array all_inputs{&options.inputs, &options.targets, &options.valid_inputs, &options.valid_targets};
  for (auto* inputs : all_inputs)
    if (!inputs->empty()) *inputs = expand_inputs(*inputs);
  const PrepareOptions named = options;  // in `options`, inputs that can be read only once are replaced by copies
  const bool reads_again = std::all_of(all_inputs.begin(), all_inputs.end(), [](const auto* inputs) {
    return std::all_of(inputs->begin(), inputs->end(), can_be_read_again);
  });
  if (!options.force && fs::exists(options.out + "/manifest.json") && reads_again) {
    const auto manifest = read_manifest(options.out);
    require<ConfigError>(manifest.made_from == made_from(named, {}), options.out,
                         ": has tokens of other text or options; name another --out, or overwrite it with --force");
    PrepareReport report;
    report.reused = true;
    report.documents = manifest.report.value("documents", uint64_t{0}),
    report.tokens = manifest.report.value("tokens", uint64_t{0});
    report.sentences = manifest.report.value("sentences", uint64_t{0});
    report.valid_documents = manifest.report.value("valid_documents", uint64_t{0}),
    report.valid_tokens = manifest.report.value("valid_tokens", uint64_t{0});
    return report;
  }
  require<ConfigError>(options.force || !fs::exists(options.out + "/manifest.json"), options.out,
                       ": exists; name another --out, or overwrite it with --force");
  fs::create_directories(partial, error);
  require(!error, partial, ": cannot be created (", error.message(), ")");
  const auto spooled = spool(all_inputs, partial);
  const json key = made_from(named, spooled);
  const Split split = split_text(options, partial);
  require<DataError>(!split.documents.empty(), options.inputs.front(), ": has no text; name files with text");

  // A resumed run keeps the tokenizer that was trained for the same text and options.
  const std::string tokenizer_folder = partial + "/tokenizer", key_file = partial + "/key.json";
  const bool same = fs::exists(key_file) && parse_json(read_text(key_file)) == key;
  if (!same) {
    const auto is_spooled = [&](const fs::path& path) {
      return std::any_of(spooled.begin(), spooled.end(), [&](const auto& copy) { return copy.second.path == path; });
    };
    for (const auto& entry : fs::directory_iterator(partial))
      if (!is_spooled(entry.path())) fs::remove_all(entry.path());
    if (options.tokenizer.empty()) train_tokenizer(options, split, tokenizer_folder);
    write_atomic(key_file, key.dump());
  }
  auto tokenizer = Tokenizer::open(options.tokenizer.empty() ? tokenizer_folder : options.tokenizer);
  if (options.sentinels > 0) tokenizer = tokenizer.with_sentinels(options.sentinels);
  if (options.special_tokens || !tokenizer.belongs_to_model()) tokenizer = tokenizer.with_special_tokens();
  tokenizer.save(tokenizer_folder);

  const bool own_valid = !options.valid_inputs.empty();
  Progress done = Pass(options, tokenizer, partial, key, split, split.documents).run(options.inputs, options.targets);
  if (own_valid) {
    auto held = Pass(options, tokenizer, partial, key, split, split.valid_documents)
                    .run(options.valid_inputs, options.valid_targets);
    done.splits["valid"] = held.splits["valid"];
    done.report.valid_documents = held.report.valid_documents, done.report.valid_tokens = held.report.valid_tokens;
    done.report.sentences += held.report.sentences, done.report.unknown_tokens += held.report.unknown_tokens;
    done.report.incomplete_pairs += held.report.incomplete_pairs, done.report.invalid_utf8 += held.report.invalid_utf8;
  }
  auto& report = done.report;
  require<DataError>(report.documents > 0 && report.tokens > 0, options.inputs.front(),
                     options.for_scoring ? ": has no text that the tokenizer knows; name files with text"
                                         : ": leaves no text to train on; lower --held-out or name more text");
  report.files = options.inputs.size();
  report.duplicate_documents = split.copies;
  report.near_duplicates = split.near_duplicates;
  report.leaked_documents = split.leaked;
  report.removed_documents = split.removed;
  report.removed_valid_documents = split.removed_valid;
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Manifest manifest{.tokenizer_kind = tokenizer.kind(),
                    .tokenizer_fingerprint = tokenizer.fingerprint(),
                    .vocab_size = tokenizer.size(),
                    .splits = done.splits,
                    .counts = done.counts,
                    .made_from = key,
                    .report = {{"documents", report.documents},
                               {"sentences", report.sentences},
                               {"tokens", report.tokens},
                               {"words", report.words},
                               {"valid_documents", report.valid_documents},
                               {"valid_tokens", report.valid_tokens},
                               {"unknown_tokens", report.unknown_tokens},
                               {"duplicate_documents", report.duplicate_documents},
                               {"near_duplicates", report.near_duplicates},
                               {"leaked_documents", report.leaked_documents},
                               {"removed_documents", report.removed_documents},
                               {"removed_valid_documents", report.removed_valid_documents},
                               {"invalid_utf8", report.invalid_utf8}},
                    .fingerprint = {}};
  for (const auto* file : {"/progress.json", "/key.json"}) fs::remove(partial + file);
  for (const auto& [name, copy] : spooled) fs::remove(copy.path);
  write_manifest(partial, manifest);
  if (fs::exists(options.out)) fs::remove_all(options.out);
  fs::rename(partial, options.out, error);
  require(!error, options.out, ": cannot be put in place (", error.message(), ")");
  if (!options.for_scoring) warn_of_duplicates(options, split, report);
  if (!own_valid && options.held_out > 0 && split.documents.size() > 1) warn_of_share(options.held_out, report);
  if (report.incomplete_pairs > 0)
    log_warning("data", words(thousands(report.incomplete_pairs), " pairs lack a side and were skipped"));
  if (report.invalid_utf8 > 0)
    log_warning("data", words(thousands(report.invalid_utf8), " invalid UTF-8 sequences were replaced by U+FFFD"));
  if (report.unknown_tokens * 20 > report.tokens)
    log_warning("data", words(thousands(report.unknown_tokens), " of ", thousands(report.tokens),
                              " tokens are unknown; the tokenizer does not fit the text"));
  return report;
}

}  // namespace cloze
