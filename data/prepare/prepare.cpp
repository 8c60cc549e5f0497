#include "data/prepare/prepare.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/lock.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "data/prepare/encode_pass.h"
#include "data/store/manifest.h"
#include "data/prepare/input_files.h"
#include "data/prepare/input_survey.h"
#include "data/reading/line_reader.h"
#include "data/prepare/sources.h"
#include "data/prepare/split.h"
#include "data/tokenizer.h"
#include "data/prepare/train_tokenizer.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string manifest_of(const PrepareOptions& options) { return options.out + "/manifest.json"; }

/// The folder that `out` names, without `.`, links and slashes at its end, so that its siblings and its lock are the
/// same whatever it is called; `out` as given where that is such a name. Throws ConfigError for the current folder, and
/// for a link to nothing.
std::string output_folder(const std::string& out) {
  std::error_code error;
  auto plain = out;
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  auto resolved = fs::weakly_canonical(fs::absolute(plain), error);
  require(!error, out, ": cannot be used (", error.message(), "); name another --out");
  if (!resolved.has_filename()) resolved = resolved.parent_path();  // `new/.` where `new` does not exist
  require<ConfigError>(resolved != fs::current_path(), out,
                       ": is the current folder, which cannot be replaced; name a folder in it, such as tokens");
  require<ConfigError>(!fs::is_symlink(resolved, error), out,
                       ": is a link to a folder that does not exist; create that folder, or name another --out");
  return fs::absolute(plain) == resolved ? plain : resolved.string();
}

/// Throws ConfigError if the output folder has something else in it.
void require_own_folder(const PrepareOptions& options) {
  if (!fs::exists(options.out) || fs::exists(manifest_of(options))) return;
  require<ConfigError>(fs::is_directory(options.out) && fs::is_empty(options.out), options.out,
                       ": exists and is not prepared text; name another --out");
}

/// A name without the ending of what is half written.
std::string unstaged(const std::string& name) { return is_staged(name) ? name.substr(0, name.rfind(".tmp-")) : name; }

/// Whether a name is a beginning, a number of at least so many digits, and an ending.
bool is_numbered(const std::string& name, const std::string& beginning, size_t digits, const std::string& ending) {
  const auto other = beginning.size() + ending.size();
  if (name.size() < other + digits || !name.starts_with(beginning) || !name.ends_with(ending)) return false;
  const auto number = name.substr(beginning.size(), name.size() - other);
  return number.find_first_not_of("0123456789") == std::string::npos;
}

/// Whether `prepare` gives this name to something in the folder of tokens, complete or not.
bool is_name_in_tokens(const std::string& name) {
  constexpr std::array names{"manifest.json", "tokenizer", "key.json", "progress.json", "standard-input", "sketches"};
  const auto plain = unstaged(name);
  const auto is_shard = [&](const char* split) {
    return is_numbered(plain, split, 5, ".tokens") || is_numbered(plain, split, 5, ".bytes");
  };
  const auto is = [&](const char* other) { return plain == other; };
  return std::ranges::any_of(names, is) || is_shard("train-") || is_shard("valid-") ||
         is_numbered(plain, "pipe-", 1, "");
}

/// Whether a tokenizer that is trained or saved gives this name to one of its files, complete or not.
bool is_name_in_tokenizer(const std::string& name) {
  constexpr std::array names{
      "cloze_tokenizer.json", "tokenizer.json",      "tokenizer_config.json",  "vocab.txt", "vocab.json", "merges.txt",
      "spiece.model",         "chat_template.jinja", "special_tokens_map.json"};
  const auto plain = unstaged(name);
  return std::ranges::any_of(names, [&](const char* other) { return plain == other; });
}

/// Throws ConfigError where a folder that is to be replaced or removed has a name that is not `own`.
void require_only(const std::string& folder, bool (*is_own)(const std::string& name)) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto name = entry.path().filename().string();
    require<ConfigError>(is_own(name), folder, ": holds ", name,
                         ", which no `cloze prepare` wrote and which would be removed; move it, or name another --out");
  }
}

/// Throws ConfigError where a folder that is to be replaced or removed has something that no `prepare` wrote.
void require_only_tokens(const std::string& folder) {
  std::error_code ignored;
  require<ConfigError>(fs::is_directory(folder, ignored) || !fs::exists(folder, ignored), folder,
                       ": stands where the tokens are made; move it, or name another --out");
  require_only(folder, is_name_in_tokens);
  const auto tokenizer = folder + "/tokenizer";
  if (!fs::is_symlink(tokenizer, ignored)) require_only(tokenizer, is_name_in_tokenizer);  // what a link names stays
}

/// The folder in which tokens are made, a sibling of the output folder.
std::string partial_of(const std::string& out) { return out + ".partial"; }

/// The old tokens while new ones take their folder.
std::string replaced_folder(const std::string& out) { return partial_of(out) + ".old"; }

void move_folder(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  require<DataError>(!error, from, ": cannot be renamed to ", to, " (", error.message(), ")");
}

void remove_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  require<DataError>(!error, folder, ": cannot be removed (", error.message(), ")");
}

/// Removes what a killed process left half written in a folder and in those below it.
void sweep(const std::string& folder) {
  sweep_staged(folder, is_staged);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (fs::is_directory(entry.symlink_status(ignored))) sweep(entry.path().string());  // what a link names stays
}

/// Ends what a killed process began when it replaced old tokens with new ones, and removes what it left.
void mend(const std::string& out, const std::string& partial) {
  const auto replaced = replaced_folder(out);
  const bool is_complete = fs::exists(partial + "/manifest.json");
  sweep(partial);
  if (!fs::exists(out) && is_complete) move_folder(partial, out);
  if (!fs::exists(out) && fs::exists(replaced)) move_folder(replaced, out);
  if (fs::exists(out) && is_complete)
    remove_folder(partial);  // it has changed places with the output folder, or not yet
  remove_folder(replaced);
}

/// The inputs of options: the text and the held-out text, and the other side of each.
std::array<std::vector<std::string>*, 4> inputs_of(PrepareOptions& options) {
  return {&options.inputs, &options.targets, &options.valid_inputs, &options.valid_targets};
}

/// The options with inputs that are files. Folders do not stand for what is made in `out`.
PrepareOptions with_files(PrepareOptions options, const std::string& out) {
  const std::vector<std::string> own{out, partial_of(out), replaced_folder(out)};
  const bool has_scored = options.held_out > 0 || !options.valid_inputs.empty() || options.for_scoring;
  for (auto* inputs : inputs_of(options)) {
    if (inputs->empty()) continue;
    const auto named_inputs = *inputs;
    const auto files = find_files(named_inputs, own);
    *inputs = files.files;
    const bool are_scored = has_scored && inputs == &held_out_files(options);
    if (are_scored && options.sources.empty()) options.sources = name_sources(files);
    leave_out(*inputs, named_inputs, options.exclude);
    leave_out_cards(*inputs, named_inputs);
    if (!options.for_scoring) warn_of_parts(*inputs, named_inputs);
  }
  return options;
}

/// The lock on the output folder, with the folder that is to have both. Throws Error that names the process that works
/// there; `named`: the output folder as given.
Lock lock_folder(const std::string& named, const std::string& partial) {
  const auto parent = fs::path(partial).parent_path();
  std::error_code error;
  if (!parent.empty()) fs::create_directories(parent, error);
  require(!error, parent.string(), ": cannot be created (", error.message(), ")");
  return Lock::take_or_fail(partial + ".lock", named);
}

/// That a tokenizer is given where one was trained, or the other way round, which is taken out of both; or empty.
std::string other_origin(json& was, json& is) {
  const bool was_trained = was.contains("train"), was_given = was.contains("tokenizer");
  if (was_trained == was_given || was_trained != is.contains("tokenizer") || was_given != is.contains("train"))
    return "";
  for (auto* side : {&was, &is})
    for (const auto* key : {"train", "tokenizer"}) side->erase(key);
  return was_trained ? "a tokenizer was trained, and another is given"
                     : "a tokenizer was given, and another is to be trained";
}

/// What two folders are made from, as far as it differs: `held_out was 0.1, is 0.2; a.txt: modified since`.
std::string differences(json was, json is) {
  std::string list = other_origin(was, is);
  std::set<std::string> keys;
  for (const auto* side : {&was, &is})
    for (const auto& [key, value] : side->items()) keys.insert(key);
  for (const auto& key : keys) {
    const auto before = was.value(key, json()), after = is.value(key, json());
    const bool are_names = key == "sources";
    if (before == after || (are_names && !list.empty())) continue;  // other files have other names
    if (!list.empty()) list += "; ";
    if (!are_names && (before.is_array() || after.is_array())) {
      list += first_few(changed_files(before, after), "; ");
      continue;
    }
    const auto old_text = before.is_null() ? "none" : json_text(before),
               new_text = after.is_null() ? "none" : json_text(after);
    const bool is_short =
        (are_names || (!before.is_structured() && !after.is_structured())) && old_text.size() + new_text.size() < 80;
    list += key;
    if (is_short) list += concat(" was ", old_text, ", is ", new_text);
    if (before.is_object() && after.is_object()) list += ": " + differences(before, after);
  }
  return list;
}

/// How to train with sentinels without training a tokenizer again, where that is all that is wanted.
std::string remedy(json was, json is, const std::string& out) {
  was.erase("sentinels");
  if (!is.contains("sentinels") || is["sentinels"] == 0) return "";
  is.erase("sentinels");
  if (was != is) return "";
  return concat("; span corruption adds 100 sentinels by itself where tokens have none; another number needs no new ",
                "tokenizer: --tokenizer ", out, "/tokenizer with another --out");
}

/// Throws DataError unless the tokenizer of a complete folder is the one that made its tokens.
void require_own_tokenizer(const std::string& out, const Manifest& manifest) {
  const auto folder = out + "/tokenizer";
  require<DataError>(Tokenizer::open(folder).has_fingerprint(manifest.tokenizer_fingerprint), folder,
                     ": is not the tokenizer that made these tokens; make them again with --force");
}

/// The manifest of a complete folder. Throws DataError for a damaged one.
Manifest own_manifest(const std::string& out) try { return read_manifest(out); } catch (const DataError& fault) {
  const std::string said = fault.what();
  fail<DataError>(said, said.ends_with("prepare the text again") ? " with --force" : "");
}

/// Throws DataError for a complete folder whose tokens, or whose tokenizer, are not those that were made.
void require_undamaged(const std::string& out, const Manifest& manifest) {
  require_own_tokenizer(out, manifest);
  for (const auto& [split, shards] : manifest.splits)
    for (const auto& facts : shards) {
      const auto file = damaged_file(out, facts);
      require<DataError>(file.empty(), file, ": its content does not match its checksum; make the tokens again with ",
                         "--force");
    }
}

/// The report of an output folder that is complete, and made with these options, the `given` tokenizer among them, from
/// this text. Throws ConfigError if it is of others and may not be overwritten, DataError if it is damaged.
std::optional<PrepareReport> existing(const PrepareOptions& options, const std::optional<Tokenizer>& tokenizer) {
  if (options.force || !fs::exists(manifest_of(options))) return std::nullopt;
  for (const auto* inputs : {&options.inputs, &options.targets, &options.valid_inputs, &options.valid_targets})
    require<ConfigError>(std::all_of(inputs->begin(), inputs->end(), can_be_read_again), options.out,
                         ": exists; name another --out, or overwrite it with --force");
  const auto manifest = own_manifest(options.out);
  auto wanted = made_from(options, tokenizer ? tokenizer->fingerprint() : "", {});
  if (!manifest.made_from.contains("sources")) wanted.erase("sources");  // of earlier versions
  for (const auto* list : {"inputs", "targets", "valid_inputs", "valid_targets"})
    if (wanted.contains(list) && manifest.made_from.contains(list))
      wanted[list] = with_known_times(wanted[list], manifest.made_from[list], manifest.contents);
  require<ConfigError>(manifest.made_from == wanted, options.out, ": has tokens of other text or options (",
                       differences(manifest.made_from, wanted), "); name another --out, or overwrite it with --force",
                       remedy(manifest.made_from, wanted, options.out));
  require_undamaged(options.out, manifest);
  const auto count = [&](const char* name) { return manifest.report.value(name, uint64_t{0}); };
  PrepareReport report;
  report.reused = true;
  report.documents = count("documents");
  report.tokens = count("tokens");
  report.sentences = count("sentences");
  report.valid_documents = count("valid_documents");
  report.valid_tokens = count("valid_tokens");
  return report;
}

/// What a text would need more of for its vocabulary to grow.
const char* lacking(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::unigram:
      return "parts that occur twice";
    case TokenizerKind::bpe:
      return "pairs of pieces within a word";
    case TokenizerKind::wordpiece:
      return "pairs of pieces that occur twice within words, where a Chinese character is a word";
    case TokenizerKind::byte_bpe:
      break;
  }
  return "pairs of pieces that occur twice within words";
}

/// Warns of a trained vocabulary that is smaller than was asked for.
void warn_of_few_pieces(const Tokenizer& tokenizer, const PrepareOptions& options) {
  if (tokenizer.size() >= options.vocab_size) return;
  log_warning("data", concat("the tokenizer has ", thousands(static_cast<uint64_t>(tokenizer.size())),
                             " pieces, fewer than the ", thousands(static_cast<uint64_t>(options.vocab_size)),
                             " asked for: the text has no more ", lacking(options.train_kind)));
}

/// The tokenizer of a run in `partial`, saved there: the one given, or one trained on the text. A resumed run keeps the
/// tokenizer that was trained for the same text and options, and its progress; of others nothing is kept but copies of
/// streams.
Tokenizer make_tokenizer(const PrepareOptions& options, const std::optional<Tokenizer>& ready_tokenizer,
                         const Split& split, const std::string& partial, const json& key,
                         const std::map<std::string, Spooled>& spooled) {
  const std::string folder = partial + "/tokenizer", key_file = partial + "/key.json";
  const bool same = fs::exists(key_file) && parse_json(read_text(key_file)) == key;
  if (!same) {
    const auto is_spooled = [&](const fs::path& path) {
      return std::any_of(spooled.begin(), spooled.end(), [&](const auto& copy) { return copy.second.path == path; });
    };
    for (const auto& entry : fs::directory_iterator(partial))
      if (!is_spooled(entry.path())) fs::remove_all(entry.path());
    if (!ready_tokenizer) train_tokenizer(options, split, folder);
  }
  auto tokenizer = ready_tokenizer ? *ready_tokenizer : Tokenizer::open(folder);
  if (!same && !ready_tokenizer) warn_of_few_pieces(tokenizer, options);
  if (options.sentinels > 0) tokenizer = tokenizer.with_sentinels(options.sentinels);
  if (options.special_tokens || !tokenizer.belongs_to_model()) tokenizer = tokenizer.with_special_tokens();
  tokenizer.save(folder);
  if (!same) write_atomic(key_file, json_text(key));  // from now on a resumed run has something to take up
  return tokenizer;
}

/// Encodes the text, and the separate held-out text if there is one.
EncodeProgress encode_all(const PrepareOptions& options, const Tokenizer& tokenizer, const std::string& partial,
                          const json& key, const Split& split) {
  auto done = EncodePass(options, tokenizer, partial, key, split, split.documents).run(options.inputs, options.targets);
  if (options.valid_inputs.empty()) return done;
  const auto held = EncodePass(options, tokenizer, partial, key, split, split.valid_documents)
                        .run(options.valid_inputs, options.valid_targets);
  done.splits["valid"] = held.splits.contains("valid") ? held.splits.at("valid") : std::vector<ShardFacts>{};
  done.report.valid_documents = held.report.valid_documents;
  done.report.valid_tokens = held.report.valid_tokens;
  done.report.sentences += held.report.sentences;
  done.report.unknown_tokens += held.report.unknown_tokens;
  done.report.incomplete_pairs += held.report.incomplete_pairs;
  if (done.report.invalid_utf8 == 0) done.report.first_invalid = held.report.first_invalid;
  done.report.invalid_utf8 += held.report.invalid_utf8;
  if (done.report.skipped_lines == 0) done.report.first_skipped = held.report.first_skipped;
  done.report.skipped_lines += held.report.skipped_lines;
  if (done.report.null_rows == 0) done.report.first_null = held.report.first_null;
  done.report.null_rows += held.report.null_rows;
  return done;
}

/// How many documents of each source are held out, in the order of the text; empty for text of one source.
std::vector<SourceSpan> held_out_by_source(const PrepareOptions& options,
                                           const std::map<std::string, std::vector<ShardFacts>>& splits) {
  std::map<std::string, uint64_t> documents;
  if (const auto held_out = splits.find("valid"); held_out != splits.end())
    for (const auto& shard : held_out->second)
      for (const auto& span : shard.sources) documents[span.source] += span.documents;
  std::vector<SourceSpan> all;
  for (const auto& name : names_in_order(held_out_files(options), options.sources))
    all.push_back({.source = name, .documents = documents[name]});
  return all;
}

/// What the manifest keeps of a report.
json as_json(const PrepareReport& report) {
  return {{"documents", report.documents},
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
          {"invalid_utf8", report.invalid_utf8},
          {"skipped_lines", report.skipped_lines},
          {"null_rows", report.null_rows}};
}

/// Hashes of the files that the tokens were made from. Throws DataError if one has changed meanwhile.
json hashes_of(PrepareOptions options, const Split& split, const std::map<std::string, Spooled>& spooled) {
  std::vector<std::string> files;
  for (const auto* inputs : inputs_of(options))
    for (const auto& file : *inputs)
      if (!spooled.contains(file)) files.push_back(file);
  const auto contents = contents_of(files);
  split.require_unchanged();
  return contents;
}

/// Makes the complete `partial` the output folder. What stands there changes places with it at one moment, or, where
/// the file system cannot do that, is renamed first and removed last; `mend` ends what a killed process began.
void complete_output(const std::string& partial, const std::string& out, const std::map<std::string, Spooled>& spooled,
                     const Manifest& manifest) {
  for (const auto* file : {"/progress.json", "/key.json"}) fs::remove(partial + file);
  for (const auto& [name, copy] : spooled) fs::remove(copy.path);
  write_manifest(partial, manifest);  // the last file: a folder that has it is complete
  const auto replaced = replaced_folder(out);
  remove_folder(replaced);
  if (swap_paths(partial, out)) {
    move_folder(partial, replaced);
  } else {
    if (fs::exists(out)) move_folder(out, replaced);
    move_folder(partial, out);
  }
  remove_folder(replaced);
}

/// A message in which copies of streams have the names of these.
std::string with_names(std::string message, const std::map<std::string, Spooled>& spooled) {
  for (const auto& [name, copy] : spooled) replace_all(message, copy.path, input_name(name));
  return message;
}

/// Makes tokens in `partial` and puts them in place. `named`: the options as given; in `options`, inputs that can be
/// read only once are replaced by copies.
PrepareReport make_tokens(const PrepareOptions& options, const PrepareOptions& named,
                          const std::optional<Tokenizer>& ready_tokenizer, const std::string& partial,
                          const std::map<std::string, Spooled>& spooled) {
  const auto start = Clock::now();
  const json key = made_from(named, ready_tokenizer ? ready_tokenizer->fingerprint() : "", spooled);
  const Split split = split_text(options, partial);
  require<DataError>(!split.documents.empty(), options.inputs.front(), ": has no text; name files with text");
  require<DataError>(split.has_visible_text, options.inputs.front(),
                     ": has no text that can be seen, but only characters such as U+200B (a space without width); name "
                     "files with text");
  const auto tokenizer = make_tokenizer(options, ready_tokenizer, split, partial, key, spooled);
  auto [documents_read, splits, counts, report] = encode_all(options, tokenizer, partial, key, split);
  const bool has_text = report.documents > 0 && report.tokens > 0;
  if (!has_text) fs::remove(partial + "/key.json");  // a resumed run would find no more
  require<DataError>(has_text, options.inputs.front(),
                     options.for_scoring ? ": has no text that the tokenizer knows; name files with text"
                                         : ": leaves no text to train on; lower --held-out or name more text");
  report.files = options.inputs.size();
  report.duplicate_documents = split.copies;
  report.near_duplicates = split.near_duplicates;
  report.leaked_documents = split.leaked;
  report.removed_documents = split.removed;
  report.removed_valid_documents = split.removed_valid;
  report.held_out = held_out_by_source(options, splits);
  report.seconds = seconds_since(start);
  const auto contents = options.for_scoring ? json::object() : hashes_of(named, split, spooled);
  complete_output(partial, options.out, spooled,
                  {.tokenizer_kind = tokenizer.kind(),
                   .tokenizer_fingerprint = tokenizer.fingerprint(),
                   .vocab_size = tokenizer.size(),
                   .splits = splits,
                   .counts = counts,
                   .made_from = key,
                   .report = as_json(report),
                   .contents = contents,
                   .fingerprint = {}});
  for (auto* line : {&report.first_invalid, &report.first_skipped, &report.first_null})
    line->file = with_names(line->file, spooled);
  warn_of_text(options, split, report);
  return report;
}

/// Removes what a run that failed or was stopped leaves, where a resumed one could take nothing up: copies of streams,
/// and a folder without a tokenizer and its key.
void leave(const std::string& partial, const std::map<std::string, Spooled>& spooled) {
  std::error_code ignored;
  for (const auto& [name, copy] : spooled) fs::remove(copy.path, ignored);
  if (!fs::exists(partial + "/key.json", ignored)) fs::remove_all(partial, ignored);
}

/// Throws Error for a link in the folder in which tokens are made, through which a folder elsewhere would be written,
/// and where another user made that folder.
void require_no_links(const std::string& partial) {
  std::error_code ignored;
  const auto check = [&](const fs::path& path) {
    require<Error>(!fs::is_symlink(path, ignored), path.string(),
                   ": is a link, through which another folder would be changed; remove it");
  };
  check(partial);
  require<Error>(!fs::exists(partial, ignored) || is_of_this_user(partial), partial,
                 ": belongs to another user; remove it, or name another --out");
  for (const auto& entry : fs::directory_iterator(partial, ignored)) check(entry.path());
}

/// `prepare` of inputs that are files and streams, into a folder that is not complete. `out`: what `named.out` names.
PrepareReport prepare_files(const PrepareOptions& named, const std::optional<Tokenizer>& ready_tokenizer,
                            const std::string& out) {
  const std::string partial = partial_of(out);
  check_field(named);
  check_document_unit(named);
  const auto lock = lock_folder(named.out, partial);
  require_no_links(partial);
  for (const auto& folder : {partial, replaced_folder(out)}) require_only_tokens(folder);
  mend(out, partial);
  if (const auto report = existing(named, ready_tokenizer))
    return *report;  // of a process that has ended meanwhile, or was killed
  require_only_tokens(out);
  std::error_code error;
  fs::create_directories(partial, error);
  require(!error, partial, ": cannot be created (", error.message(), ")");
  PrepareOptions options = named;
  options.out = out;
  std::map<std::string, Spooled> spooled;
  try {
    spooled = spool(inputs_of(options), partial);
    name_copies(spooled, options.sources);
    return make_tokens(options, named, ready_tokenizer, partial, spooled);
  } catch (const NotText& fault) {
    leave(partial, spooled);
    const bool is_copy =
        std::any_of(spooled.begin(), spooled.end(), [&](const auto& one) { return one.second.path == fault.file; });
    if (!is_copy) throw;
    throw NotText(with_names(fault.file, spooled), fault.said_of_stream);
  } catch (const DataError& fault) {
    leave(partial, spooled);
    throw DataError(with_names(fault.what(), spooled));
  } catch (...) {
    leave(partial, spooled);
    throw;
  }
}

}  // namespace

PrepareReport prepare(const PrepareOptions& options) {
  check_options(options);
  const auto out = output_folder(options.out);
  require_own_folder(options);
  const auto survey = survey_of(with_files(options, out), options);
  const auto& named = survey.options;
  std::optional<Tokenizer> ready_tokenizer;
  if (!options.tokenizer.empty()) ready_tokenizer = Tokenizer::open(options.tokenizer);
  if (const auto report = existing(named, ready_tokenizer)) return *report;
  announce(survey);
  try {
    return prepare_files(named, ready_tokenizer, out);
  } catch (const NotText& fault) {
    throw DataError(fault.what() + way_out_of_folder(options, named, fault.file));
  }
}

}  // namespace cloze
