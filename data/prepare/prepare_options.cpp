#include "data/prepare/prepare_options.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "core/contains.h"
#include "core/error.h"
#include "core/json.h"
#include "data/prepare/sources.h"
#include "data/reading/decoder.h"
#include "data/reading/table_reader.h"
#include "data/store/manifest.h"
#include "data/tokenizers/families.h"

namespace cloze {

using nlohmann::json;

namespace {

/// The two sides of pairs.
void check_pairs(const PrepareOptions& o) {
  require<ConfigError>((o.targets.empty() && o.valid_targets.empty()) || o.format == TextFormat::pairs,
                       "--target names the other side of pairs; add --format pairs");
  require<ConfigError>(o.valid_targets.empty() || (!o.valid_inputs.empty() && !o.targets.empty()),
                       "--valid-target names the other side of --valid; give --valid and --target too");
  require<ConfigError>(o.targets.empty() || o.valid_inputs.empty() == o.valid_targets.empty(),
                       "--valid and --valid-target name both sides of held-out pairs; give both or none");
}

/// --columns, which names both sides.
void check_columns(const PrepareOptions& o) {
  if (o.columns.empty()) return;
  const auto comma = o.columns.find(',');
  require<ConfigError>((comma != std::string::npos && comma > 0 && comma + 1 < o.columns.size() &&
                        o.columns.find(',', comma + 1) == std::string::npos),
                       "--columns is '", o.columns,
                       "', must be two names with a comma between them: --columns sentence1,sentence2");
  require<ConfigError>((o.format == TextFormat::pairs && o.targets.empty()),
                       "--columns names both sides of pairs in one line; add --format pairs, and leave --target out");
  require<ConfigError>(!o.field && o.fields.empty(),
                       "--columns and --field both name the keys of pairs; leave --field out");
}

/// --document, which formats of records leave nothing to say.
void check_document(const PrepareOptions& o) {
  if (o.document == DocumentUnit::blank_line) return;
  using enum TextFormat;
  require<ConfigError>(o.format == automatic || o.format == text || o.format == lines, "--document is '",
                       name_of(o.document), "', which says what a document is in text and lines; in ",
                       name_of(o.format), " each record is one: leave --document out");
}

/// What only a tokenizer that is trained can have.
void check_training(const PrepareOptions& o) {
  const double coverage = o.character_coverage.value_or(default_coverage);
  require<ConfigError>(coverage > 0.9 && coverage <= 1, "--character-coverage is ", coverage, ", must be in (0.9, 1]");
  const bool has_coverage = o.character_coverage.has_value();
  if (!o.tokenizer.empty()) {
    require<ConfigError>(!o.lowercase, "--lowercase applies only to a tokenizer that is trained; ", o.tokenizer,
                         " has its own rules for case; leave --lowercase out");
    for (const auto& [is_given, option] :
         {std::pair{o.byte_fallback, "--byte-fallback"}, std::pair{has_coverage, "--character-coverage"}})
      require<ConfigError>(!is_given, option, " applies only to a tokenizer that is trained, and ", o.tokenizer,
                           " is given; leave one of them out");
    require<ConfigError>(o.seed == PrepareOptions().seed,
                         "--seed chooses the sentences that a tokenizer is trained on, and ", o.tokenizer,
                         " is given; leave --seed out");
    return;
  }
  const bool is_sentencepiece = o.train_kind == TokenizerKind::unigram || o.train_kind == TokenizerKind::bpe;
  const bool has_bytes = o.train_kind == TokenizerKind::byte_bpe;
  require<ConfigError>(!o.lowercase || !has_bytes,
                       "--lowercase does not apply to byte_bpe, which keeps every byte; choose another --train, or "
                       "leave --lowercase out");
  require<ConfigError>(!o.byte_fallback || is_sentencepiece,
                       "--byte-fallback applies to unigram and bpe, and --train is ", o.train_kind,
                       "; leave --byte-fallback out");
  require<ConfigError>(
      !has_coverage || !has_bytes,
      "--character-coverage does not apply to byte_bpe, whose bytes spell every character; leave it out");
}

}  // namespace

std::optional<TokenizerKind> published_kind(const std::string& model) {
  const auto* of_kind = family_of_kind(model);
  const auto* family = of_kind ? of_kind : family_called(model);
  if (!family) return std::nullopt;
  return choice_of_option<TokenizerKind>("for", family->vocabulary);
}

std::vector<std::string> models_with_published_kind() {
  std::set<std::string> names;
  for (const auto& family : tokenizer_families()) {
    names.insert(family.name);
    names.insert(family.kinds.begin(), family.kinds.end());
  }
  return {names.begin(), names.end()};
}

void check_options(const PrepareOptions& o) {
  require<ConfigError>(!o.out.empty(), "no output folder was given; name one with --out");
  require<ConfigError>(o.held_out >= 0 && o.held_out < 1, "--held-out is ", o.held_out, ", must be in [0, 1)");
  require<ConfigError>(o.vocab_size >= 16 && o.vocab_size <= 1000000, "--vocab-size is ", o.vocab_size,
                       ", must be in [16, 1000000]");
  require<ConfigError>(o.sentinels >= 0 && o.sentinels <= 10000, "--sentinels is ", o.sentinels,
                       ", must be in [0, 10000]");
  check_pairs(o);
  check_columns(o);
  check_document(o);
  check_training(o);
  if (!o.encoding.empty()) Decoder{o.encoding};
  require<ConfigError>(o.threads >= 0 && o.threads <= 1024, "--threads is ", o.threads, ", must be in [0, 1024]");
}

namespace {

constexpr std::array formats_with_fields{TextFormat::jsonl, TextFormat::csv, TextFormat::tsv, TextFormat::arrow,
                                         TextFormat::parquet};

/// Whether a file of the text may be one of which this is asked.
template <class Is>
bool any_file(const PrepareOptions& o, const Is& is) {
  const auto may_be = [&](const std::string& file) { return !can_be_read_again(file) || is(file); };
  return std::ranges::any_of(o.inputs, may_be) || std::ranges::any_of(o.valid_inputs, may_be);
}

/// Throws ConfigError for a --field of files of a format that the text has not.
void check_fields(const PrepareOptions& o) {
  for (const auto& [format, name] : o.fields) {
    const bool decides = o.format == TextFormat::automatic;
    const bool any = decides ? any_file(o, [&](const auto& file) { return format_of(file, reader_of(o)) == format; })
                             : o.format == format;
    require<ConfigError>(any, "--field is '", name_of(format), ":", name, "', and none of the text is ",
                         name_of(format), "; leave it out");
  }
}

}  // namespace

void add_field(PrepareOptions& options, const std::string& field) {
  const auto colon = std::min(field.find(':'), field.size());
  for (const auto format : formats_with_fields) {
    if (colon == field.size() || field.substr(0, colon) != name_of(format)) continue;
    const bool is_first = options.fields.emplace(format, field.substr(colon + 1)).second;
    require<ConfigError>(is_first, "--field is given twice for ", name_of(format), "; leave one out");
    return;
  }
  require<ConfigError>(!options.field, "--field is given twice, '", options.field.value_or(""), "' and '", field,
                       "'; say of which files each is: --field csv:", options.field.value_or(""),
                       " --field jsonl:", field);
  options.field = field;
}

void check_field(const PrepareOptions& o) {
  using enum TextFormat;
  check_fields(o);
  const auto is_json = [&](const std::string& file) { return format_of(file, reader_of(o)) == jsonl; };
  const bool may_be_json = o.format == jsonl || o.format == pairs || (o.format == automatic && any_file(o, is_json));
  require<ConfigError>(!o.skip_null || may_be_json,
                       "--skip-null leaves out objects of JSON lines, and none of the text ",
                       "is JSON lines; leave it out");
  const auto has_columns = [](TextFormat format) { return contains(formats_with_fields, format); };
  if (!o.field || has_columns(o.format)) return;
  const auto has_keys = [&](const std::string& file) {
    return is_named_table(file) || has_columns(format_of(file, reader_of(o)));
  };
  const bool is_open = o.format == automatic || (o.format == pairs && o.targets.empty());
  const bool any = is_open && any_file(o, has_keys);
  require<ConfigError>(any, "--field is '", *o.field,
                       "', a key of JSON lines, and none of the text is JSON lines; leave --field out",
                       is_open ? ", or read the text as such with --format jsonl" : "");
}

void check_document_unit(const PrepareOptions& o) {
  if (o.document == DocumentUnit::blank_line || o.format != TextFormat::automatic) return;
  const bool any = any_file(o, [&](const auto& file) { return format_of(file, reader_of(o)) == TextFormat::text; });
  require<ConfigError>(any, "--document is '", name_of(o.document),
                       "', which says what a document is in text and lines, and none of the text is either; leave "
                       "--document out");
}

ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets) {
  return {.inputs = inputs,
          .targets = targets,
          .format = options.format,
          .field = options.field,
          .fields = options.fields,
          .columns = options.columns,
          .refuse_invalid_utf8 = options.invalid_utf8 == InvalidUtf8::refuse,
          .encoding = options.encoding,
          .skip_null = options.skip_null,
          .document = options.document};
}

json made_from(const PrepareOptions& o, const std::string& tokenizer, const std::map<std::string, Spooled>& spooled) {
  const auto files = [&](const std::vector<std::string>& inputs) { return file_facts(inputs, spooled); };
  json j{{"inputs", files(o.inputs)},
         {"format", name_of(o.format)},
         {"field", o.field.value_or(default_field)},
         {"held_out", o.held_out},
         {"invalid_utf8", name_of(o.invalid_utf8)}};
  if (o.dedup) j["dedup"] = true;
  if (o.document != DocumentUnit::blank_line) j["document"] = name_of(o.document);
  for (const auto& [format, name] : o.fields) j["fields"][name_of(format)] = name;
  if (!o.encoding.empty()) j["encoding"] = o.encoding;
  if (o.skip_null) j["skip_null"] = true;
  if (!o.columns.empty()) j["columns"] = o.columns;
  if (!o.valid_inputs.empty()) j["valid_inputs"] = files(o.valid_inputs);
  if (!o.targets.empty()) j["targets"] = files(o.targets);
  if (!o.valid_targets.empty()) j["valid_targets"] = files(o.valid_targets);
  if (o.sentinels > 0) j["sentinels"] = o.sentinels;
  if (o.tokenizer.empty())
    j["train"] = {
        {"kind", name_of(o.train_kind)}, {"vocab_size", o.vocab_size}, {"lowercase", o.lowercase}, {"seed", o.seed}};
  else
    j["tokenizer"] = tokenizer;
  if (o.byte_fallback) j["train"]["byte_fallback"] = true;
  if (o.character_coverage) j["train"]["character_coverage"] = *o.character_coverage;
  if (o.special_tokens) j["special_tokens"] = true;
  if (!o.sources.empty()) j["sources"] = names_in_order(held_out_files(o), o.sources);
  return parse_json(json_text(j));  // names as a manifest gives them back, which holds UTF-8
}

}  // namespace cloze
