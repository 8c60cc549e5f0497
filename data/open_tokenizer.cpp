// Opening a tokenizer: which file of a folder has its model, and which model reads that file.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "data/tokenizer_impl.h"
#include "data/tokenizers/class_rules.h"
#include "data/tokenizers/fields.h"
#include "data/tokenizers/pipeline.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// The file of a folder with the tokenizer model.
std::string model_file(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  const fs::path folder = path;
  // In folders of others tokenizer.json is complete, and transformers prefers it; in Cloze's own folders it is only for
  // transformers.
  const bool saved_by_cloze = fs::exists(folder / facts_file);
  if (!saved_by_cloze && fs::exists(folder / "tokenizer.json")) return (folder / "tokenizer.json").string();
  for (const auto* name : {"vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "spm.model",
                           "vocab.json", "tokenizer.json"})
    if (fs::exists(folder / name)) return (folder / name).string();
  fail<DataError>(path,
                  ": has no tokenizer (vocab.txt, spiece.model, tokenizer.model, sentencepiece.bpe.model, spm.model, "
                  "vocab.json with merges.txt, tokenizer.json); name the file, or train one with `cloze prepare`");
}

/// The merges file next to a byte-level BPE vocabulary.
std::string merges_file(const fs::path& vocabulary) {
  for (const auto* name : {"merges.txt", "vocab.bpe"})
    if (fs::exists(vocabulary.parent_path() / name)) return (vocabulary.parent_path() / name).string();
  fail<DataError>(vocabulary.string(), ": has no merges.txt next to it; byte-level BPE needs both");
}

/// A vocabulary alone does not determine tokenization and ids: its family does.
void refuse_unknown_family(const std::string& file, const FolderFacts& facts) {
  std::string known;
  for (const auto& family : tokenizer_families())
    if (!family.model_types.empty()) known += (known.empty() ? "" : ", ") + family.model_types[0];
  require<DataError>(facts.unknown_class.empty(), file, ": belongs to '", facts.unknown_class,
                     "', whose ids Cloze does not know; it knows those of ", known,
                     "; have transformers write tokenizer.json next to it (save_pretrained)");
}

/// Gives a tokenizer.json the rules that its class takes from the file beside it. The kept file gets them, too, so that
/// every reader of it has them.
void apply_class_rules(const std::string& file, FolderFacts& facts, Field::Json& json, std::string& content) {
  if (!facts.rules_of_class) return;
  const auto& family = *facts.rules_of_class;
  const auto config = (fs::path(file).parent_path() / "tokenizer_config.json").string();
  const bool has_config = fs::exists(config);
  const auto rules = has_config ? parse_json(read_tokenizer_file(config)) : Field::Json::object();
  const auto changes = apply_class_rules(family, rules, json);
  if (!changes.empty())
    log_info("data", concat(file, ": ", family.classes[0], " comes before it, as in transformers, with ",
                            has_config ? "tokenizer_config.json and " : "", "its defaults: ", changes));
  if (const auto sentence = steps_beyond_class(family, json); !sentence.empty())
    log_warning("data", concat(file, ": ", sentence));
  if (changes.empty()) return;
  content = json_text(json);
  if (auto kept = facts.extras.kept.find("tokenizer.json"); kept != facts.extras.kept.end()) kept->second = content;
}

/// Opens a tokenizer.json or a byte-level BPE vocabulary, distinguished by content: a vocabulary is an object of tokens
/// and ids.
std::unique_ptr<TokenizerModel> open_json(const std::string& file, FolderFacts& facts) {
  auto content = read_tokenizer_file(file);
  auto json = parse_json(content);
  const bool named = fs::path(file).filename() == "tokenizer.json";
  if (!json.is_object())
    fail<DataError>(file, ": is not a JSON object", named ? "" : " of tokens and ids", json_fault(content),
                    "; it is damaged");
  facts.extras.finds_added_tokens = json.contains("model") && json["model"].is_object();
  if (facts.extras.finds_added_tokens && named) apply_class_rules(file, facts, json, content);
  if (facts.extras.finds_added_tokens) return make_pipeline(std::move(content), json, file);
  refuse_unknown_family(file, facts);
  return make_byte_bpe(std::move(content), read_tokenizer_file(merges_file(file)), file, facts.add_prefix_space);
}

/// Opens a SentencePiece file with the ids of its family.
std::unique_ptr<TokenizerModel> open_sentencepiece(std::string content, const std::string& file, FolderFacts& facts) {
  refuse_unknown_family(file, facts);
  if (facts.extras.family && !facts.extras.saved_by_cloze)
    log_info("data", concat(file, ": SentencePiece cuts texts, as in the training of the published models; ",
                            facts.extras.family->classes[0], " of transformers 5 departs from it for odd blanks, ",
                            "characters that NFKC changes, or commas after digits"));
  auto made = make_sentencepiece(std::move(content), file, facts.rules);
  if (facts.rules.strip_accents) {
    facts.extras.folding.emplace_back(NormalForm{.compatible = true});
    facts.extras.folding.emplace_back(StripAccentsNormalizer{});
  }
  if (made->lowercase) facts.extras.folding.emplace_back(LowercaseNormalizer{});
  return facts.extras.family ? renumbered(std::move(made), *facts.extras.family, file) : std::move(made);
}

bool has_upper_case(const std::string& vocabulary) {
  // Special and unused tokens are written in brackets.
  for (size_t begin = 0; begin < vocabulary.size();) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    for (size_t at = begin; vocabulary[begin] != '[' && at < end; ++at)
      if (vocabulary[at] >= 'A' && vocabulary[at] <= 'Z') return true;
    begin = end + 1;
  }
  return false;
}

/// Opens a WordPiece vocabulary. Where no file says it, capitals in the vocabulary tell whether case is kept.
std::unique_ptr<TokenizerModel> open_wordpiece(std::string content, const std::string& file, FolderFacts& facts) {
  refuse_unknown_family(file, facts);
  // A byte order mark is no part of the first token; folders that Cloze saved are as their fingerprint says.
  if (!facts.extras.saved_by_cloze && content.starts_with("\xEF\xBB\xBF")) content.erase(0, 3);
  const bool fold = facts.lowercase ? *facts.lowercase : !has_upper_case(content);
  if (!facts.lowercase)
    log_info("data",
             concat(file, fold ? " has no capitals: text is lower-cased" : " has capitals: the case of text is kept"));
  for (const auto& warning : facts.warnings) log_warning("data", warning);
  auto rules = facts.words;
  rules.lowercase = fold;
  if (!facts.lowercase) rules.strip_accents = fold;
  facts.extras.folding.emplace_back(BertNormalizer{
      .split_ideographs = rules.split_ideographs, .strip_accents = rules.strip_accents, .lowercase = rules.lowercase});
  return make_wordpiece(std::move(content), file, rules);
}

/// Opens the tokenizer model of a file; records in `facts` how added tokens are found.
std::unique_ptr<TokenizerModel> open_model(const std::string& file, FolderFacts& facts) {
  const auto extension = fs::path(file).extension();
  if (extension == ".json") return open_json(file, facts);
  auto content = read_tokenizer_file(file);
  require<DataError>(!content.empty(), file, ": is empty; it has no tokenizer");
  return extension == ".txt" ? open_wordpiece(std::move(content), file, facts)
                             : open_sentencepiece(std::move(content), file, facts);
}

/// True if the folder of `file` is opened by it; another one next to it has a fingerprint of its own.
bool is_main_file(const fs::path& file) {
  const auto folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  return fs::path(model_file(folder.string())).filename() == file.filename();
}

/// True if a tokenizer.json that Cloze wrote has added tokens that were found outside of it before. Folders of earlier
/// versions record the fingerprint that the tokenizer had then.
bool has_taken_over(const Tokenizer::Impl& parts) {
  const auto& extras = parts.extras;
  const bool is_written = extras.kept.empty() && parts.model->files().contains("tokenizer.json");
  const auto is_plain = [](const auto& entry) { return !entry.second.special; };
  return is_written && parts.in_text.empty() && std::any_of(extras.added.begin(), extras.added.end(), is_plain);
}

/// Throws ChangedTokenizer unless the tokenizer is the one that was saved in its folder.
void require_recorded(const Tokenizer& tokenizer, const std::string& recorded, const std::string& file) {
  if (tokenizer.has_fingerprint(recorded)) return;
  throw ChangedTokenizer(concat(file, ": has changed since it was saved (", facts_file, " records the fingerprint ",
                                recorded, ", it is ", tokenizer.fingerprint(), ")"),
                         concat("; restore it, or remove ", facts_file, " to take it as it is"));
}

}  // namespace

Tokenizer Tokenizer::open(const std::string& path) try {
  require<DataError>(fs::exists(path), path,
                     ": no such tokenizer; name a folder, a SentencePiece .model, a vocab.txt, or a vocab.json");
  const auto file = model_file(path);
  auto facts = read_tokenizer_facts(fs::path(file).parent_path().string());
  auto model = open_model(file, facts);
  if (!facts.extras.saved_by_cloze && fs::path(file).filename() == "tokenizer.json")
    facts.extras.sentinels = 0;  // they are in its vocabulary, or missing
  require<DataError>(model->pieces.size() <= max_pieces, file, ": has ", model->pieces.size(),
                     " pieces, more than the ", max_pieces, " that a vocabulary can have");
  const auto recorded = facts.fingerprint;
  Tokenizer tokenizer;
  tokenizer.impl_ = std::make_shared<Impl>(std::move(model), std::move(facts.extras), file);
  const bool is_checked = !recorded.empty() && is_main_file(file) && !has_taken_over(*tokenizer.impl_);
  if (is_checked) require_recorded(tokenizer, recorded, file);
  return tokenizer;
} catch (const nlohmann::json::exception& e) {
  const std::string why = e.what();  // [json.exception.type_error.302] type must be string, but is number
  fail<DataError>(path, ": a value of its files is not of the kind that a tokenizer has there (",
                  why.substr(why.find(']') == std::string::npos ? 0 : why.find(']') + 2), "); get it again");
}

}  // namespace cloze
