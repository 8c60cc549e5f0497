#include "data/prepare_options.h"

#include <sys/stat.h>

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/tokenizer.h"

namespace cloze {

using nlohmann::json;

namespace {

void check_choice(const std::string& option, const std::string& value, std::initializer_list<const char*> allowed) {
  std::string list;
  for (const auto* a : allowed) {
    if (value == a) return;
    list += (list.empty() ? "" : ", ") + std::string(a);
  }
  fail<ConfigError>("--", option, " is '", value, "', must be one of ", list);
}

/// The two sides of pairs.
void check_pairs(const PrepareOptions& o) {
  require<ConfigError>((o.targets.empty() && o.valid_targets.empty()) || o.format == "pairs",
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
  require<ConfigError>((o.format == "pairs" && o.targets.empty()),
                       "--columns names both sides of pairs in one line; add --format pairs, and leave --target out");
  require<ConfigError>(o.field == "text", "--columns and --field both name the keys of pairs; leave --field out");
}

/// Files by path, size and modification time, copies of streams by their content.
json facts_of(const std::vector<std::string>& inputs, const std::map<std::string, Spooled>& spooled) {
  json list = json::array();
  for (const auto& file : expand_inputs(inputs)) {
    if (const auto copy = spooled.find(file); copy != spooled.end()) {
      list.push_back({{"path", file}, {"bytes", copy->second.bytes}, {"xxh3", copy->second.xxh3}});
      continue;
    }
    struct stat info{};
    stat(file.c_str(), &info);
    list.push_back(
        {{"path", file}, {"bytes", info.st_size}, {"mtime", info.st_mtim.tv_sec}, {"mtime_ns", info.st_mtim.tv_nsec}});
  }
  return list;
}

}  // namespace

void check_options(const PrepareOptions& o) {
  check_choice("format", o.format, {"auto", "text", "lines", "jsonl", "wiki", "pairs"});
  check_choice("train", o.train_kind, {"unigram", "bpe", "wordpiece", "byte_bpe"});
  check_choice("invalid-utf8", o.invalid_utf8, {"replace", "refuse"});
  require<ConfigError>(!o.out.empty(), "no output folder was given; name one with --out");
  require<ConfigError>(o.held_out >= 0 && o.held_out < 1, "--held-out is ", o.held_out, ", must be in [0, 1)");
  require<ConfigError>(o.vocab_size >= 16 && o.vocab_size <= 1000000, "--vocab-size is ", o.vocab_size,
                       ", must be in [16, 1000000]");
  require<ConfigError>(o.sentinels >= 0 && o.sentinels <= 10000, "--sentinels is ", o.sentinels,
                       ", must be in [0, 10000]");
  check_pairs(o);
  check_columns(o);
  require<ConfigError>(o.threads >= 0 && o.threads <= 1024, "--threads is ", o.threads, ", must be in [0, 1024]");
}

ReaderOptions reader_of(const PrepareOptions& options, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& targets) {
  return {.inputs = inputs,
          .targets = targets,
          .format = options.format,
          .field = options.field,
          .columns = options.columns,
          .refuse_invalid_utf8 = options.invalid_utf8 == "refuse"};
}

json made_from(const PrepareOptions& o, const std::map<std::string, Spooled>& spooled) {
  const auto files = [&](const std::vector<std::string>& inputs) { return facts_of(inputs, spooled); };
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

}  // namespace cloze
