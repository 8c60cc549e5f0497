#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/engine/parts.h"
#include "core/log.h"
#include "data/manifest.h"
#include "data/prepare.h"
#include "data/reader.h"
#include "data/spool.h"
#include "objectives/generative_rows.h"
#include "generation/generate.h"
#include "run/load_config.h"
#include "run/moved.h"
#include "run/objective_short_form.h"
#include "evaluation/evaluate.h"
#include "evaluation/text_metrics.h"
#include "run/run.h"

namespace cloze {

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A temporary folder, removed when the verb ends.
struct ScratchFolder {
  ScratchFolder() {
    std::error_code error;
    const auto parent = fs::temp_directory_path(error);
    require<Error>(!error, "TMPDIR, the folder for temporary files: cannot be used (", error.message(),
                   "); set it to another folder");
    path = (parent / "cloze-XXXXXX").string();
    const bool is_made = mkdtemp(path.data()) != nullptr;
    require<Error>(is_made, parent.string(), ": cannot create a temporary folder there (", system_reason(),
                   "); set TMPDIR to another folder");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

/// The files of --text and --target; pipes, which can be read only once, are copied to disk.
struct Texts {
  std::vector<std::string> sources, targets;
};
Texts readable_texts(const EvaluateCommand& c, const ScratchFolder& scratch) {
  Texts texts;
  if (!c.text.empty()) texts.sources = expand_inputs(c.text);
  if (!c.target.empty()) texts.targets = expand_inputs(c.target);
  spool(std::array{&texts.sources, &texts.targets}, scratch.path);
  return texts;
}

/// Held-out sources with generated targets and references.
struct GeneratedPairs {
  std::vector<std::string> sources, generated, references;
};
GeneratedPairs generate_pairs(const LoadedRun& run, const TokenStore& store, const EvaluateCommand& c,
                              const Texts& texts, int64_t max_pairs) {
  require<ConfigError>(store.num_sentences() == 2 * store.num_documents(),
                       "--generate needs pairs of sources and targets; prepare the tokens with --format pairs");
  GeneratedPairs found;
  if (!c.text.empty()) {  // the raw text of the files
    DocumentReader reader({.inputs = texts.sources,
                           .targets = texts.targets,
                           .format = TextFormat::pairs,
                           .field = c.field,
                           .columns = c.columns});
    for (RawDocument pair; static_cast<int64_t>(found.sources.size()) < max_pairs && reader.next(pair);) {
      found.sources.push_back(pair.lines[0]);
      found.references.push_back(pair.lines[1]);
    }
  }
  uint64_t unknown = 0;
  const auto text = [&](uint64_t sentence) {
    std::vector<int64_t> ids(store.first_token(sentence + 1) - store.first_token(sentence));
    store.read(store.first_token(sentence), ids.size(), ids.data());
    unknown += std::find(ids.begin(), ids.end(), run.tokenizer.special().unk) != ids.end();
    return run.tokenizer.decode(ids);
  };
  for (uint64_t d = 0;
       c.text.empty() && d < std::min<uint64_t>(store.num_documents(), static_cast<uint64_t>(max_pairs)); ++d) {
    found.sources.push_back(text(2 * d));
    found.references.push_back(text(2 * d + 1));
  }
  if (unknown > 0)
    log_warning("evaluate", words(unknown,
                                  " sources and references contain unknown tokens; to score against the raw text, give "
                                  "the files with --text and --target"));
  const GenerateOptions options{.search = c.search, .batch_size = c.batch_size, .truncate = true};
  for (const auto& list : generate(run, found.sources, options)) found.generated.push_back(list[0].text);
  return found;
}

/// A run with its scores.
struct Scored {
  std::string path;  ///< as given on the command line
  LoadedRun run;
  RunConfig config{};  ///< of the run, with the evaluation that all runs share
  std::string tokens{};
  std::optional<TokenStore> store{};
  std::vector<HeldOut> losses{};
  std::optional<double> bits_per_byte{};
};

std::vector<std::string> names_of(const EvaluationConfig& evaluation) {
  std::vector<std::string> names;
  for (const auto& objective : evaluation.objectives) names.push_back(short_form(objective));
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Keeps the objectives that all runs are scored by, and logs the others.
void keep_common(EvaluationConfig& evaluation, const std::vector<Scored>& runs) {
  std::vector<std::vector<std::string>> of_runs;
  for (const auto& one : runs) of_runs.push_back(names_of(resolved_evaluation(one.run.config)));
  const auto first = names_of(evaluation);
  std::erase_if(evaluation.objectives, [&](const ObjectiveConfig& objective) {
    const auto name = short_form(objective);
    for (size_t r = 1; r < runs.size(); ++r) {
      if (std::find(of_runs[r].begin(), of_runs[r].end(), name) != of_runs[r].end()) continue;
      log_info("evaluate", words(name, " is skipped: ", runs[r].path, " is scored by ", joined(of_runs[r])));
      return true;
    }
    return false;
  });
  require<ConfigError>(!evaluation.objectives.empty(), runs[0].path, " is scored by ", joined(first), ", ",
                       runs[1].path, " by ", joined(of_runs[1]),
                       "; name an objective for both, such as --objective mlm:0.15");
}

/// The evaluation of all runs: that of the first run, with the changes of the command.
EvaluationConfig common_evaluation(const EvaluateCommand& c, const std::vector<Scored>& runs) {
  bool named = !c.objectives.empty(), sized = false;
  for (const auto& change : c.set) {
    require<ConfigError>(change.rfind("evaluation.", 0) == 0, "--set ", change,
                         ": evaluate accepts keys of `evaluation` only, such as --set evaluation.seed=2");
    named = named || change.rfind("evaluation.objectives", 0) == 0;
    sized = sized || change.rfind("evaluation.max_seq_length=", 0) == 0;
  }
  auto first = decode<RunConfig>(load_run_config(runs[0].run.folder + "/run.yaml", c.set));
  first.objectives = runs[0].run.config.objectives;
  auto evaluation = resolved_evaluation(first);
  if (!c.objectives.empty()) evaluation.objectives.clear();
  for (const auto& text : c.objectives)
    for (const auto& objective : separate_losses(parse_objective(text))) evaluation.objectives.push_back(objective);
  if (c.sequences > 0) evaluation.sequences = c.sequences;
  if (!named && runs.size() > 1) keep_common(evaluation, runs);
  for (const auto& one : runs)
    if (!sized)
      evaluation.max_seq_length =
          std::min(evaluation.max_seq_length, resolved_evaluation(one.run.config).max_seq_length);
  return evaluation;
}

/// Opens the text to score on, the same for every run.
void open_texts(std::vector<Scored>& runs, const EvaluateCommand& c, const Texts& texts, const ScratchFolder& scratch) {
  const auto& evaluation = runs[0].config.evaluation;
  const auto is_pairs = [](const auto& objective) { return std::holds_alternative<PairsConfig>(objective); };
  const bool of_pairs = std::any_of(evaluation.objectives.begin(), evaluation.objectives.end(), is_pairs),
             as_pairs = !c.target.empty() || !c.columns.empty() || c.format == "pairs";
  require<ConfigError>(c.text.empty() || of_pairs == as_pairs,
                       of_pairs ? "this run is trained on pairs; name the targets of --text with --target, or use "
                                  "--format pairs for two columns"
                                : "this run is not trained on pairs; leave out --target and --format pairs");
  std::map<std::string, std::string> prepared;  // tokenizer -> folder
  for (auto& one : runs) {
    const auto tokenizer = one.run.has_tokenizer ? one.run.tokenizer.fingerprint() : "";
    one.tokens = c.tokens.empty() ? one.run.config.data.tokens : c.tokens;
    std::string split = "valid";
    if (!c.text.empty()) {
      require<CheckpointError>(one.run.has_tokenizer, one.path,
                               ": has no tokenizer, so it cannot read text; name prepared tokens with --tokens");
      split = "train";
      const auto [folder, is_new] = prepared.emplace(tokenizer, words(scratch.path, "/tokens-", prepared.size()));
      one.tokens = folder->second;
      PrepareOptions options;
      options.inputs = texts.sources;
      options.targets = texts.targets;
      options.out = one.tokens;
      options.tokenizer = one.run.folder + "/tokenizer";
      options.held_out = 0;
      options.for_scoring = true;
      options.format = as_pairs ? TextFormat::pairs : choice_of_option<TextFormat>("format", c.format);
      options.field = c.field;
      options.columns = c.columns;
      if (is_new) prepare(options);
    }
    require<ConfigError>(!one.tokens.empty(), one.path,
                         ": names no prepared tokens; give text with --text, or tokens with --tokens");
    require<DataError>(!c.tokens.empty() || fs::exists(one.tokens), one.path, ": its tokens, ", one.tokens,
                       ", are neither there nor near the run; name their folder with --tokens, or text with --text");
    one.store.emplace(one.tokens, split);
    require<ConfigError>(!one.run.has_tokenizer || one.store->tokenizer().fingerprint() == tokenizer, one.tokens,
                         ": has another tokenizer than the run; prepare it with --tokenizer ", one.run.folder,
                         "/tokenizer");
    if (one.run.has_tokenizer) one.store = one.store->with_tokenizer(one.run.tokenizer);  // with sentinels of its own
    const bool same_tokens = one.store->fingerprint() == runs[0].store->fingerprint(),
               same_tokenizer = one.store->tokenizer().fingerprint() == runs[0].store->tokenizer().fingerprint();
    require<ConfigError>(same_tokens || !same_tokenizer, one.path, " was trained on other tokens than ", runs[0].path,
                         " (", one.tokens, ", ", runs[0].tokens,
                         "); name the text to score both on with --text or --tokens");
    if (!same_tokenizer)
      log_warning("evaluate", words(one.path, " has another tokenizer than ", runs[0].path,
                                    ": losses per token cannot be compared, bits per byte can"));
  }
}

/// Removes the objectives whose segment pairs need two documents if the text is a single one, and logs them.
void skip_document_pairs(std::vector<Scored>& runs, const std::string& text) {
  const auto has_one = [](const Scored& one) { return one.store->num_documents() < 2; };
  if (std::none_of(runs.begin(), runs.end(), has_one)) return;
  auto left = runs[0].config.evaluation.objectives;
  const auto rows = held_out_data(runs[0].config);
  std::vector<std::string> skipped;
  std::erase_if(left, [&](const ObjectiveConfig& objective) {
    if (!needs_documents(row_objectives(objective), rows)) return false;
    skipped.push_back(short_form(objective));
    return true;
  });
  require<DataError>(!left.empty(), text, ": is a single document, and ", joined(skipped),
                     " needs two; separate documents by blank lines");
  for (const auto& name : skipped)
    log_info("evaluate", words(name, " is skipped: it needs two documents, and ", text,
                               " is a single one; separate documents by blank lines"));
  for (auto& one : runs) one.config.evaluation.objectives = left;
}

/// Token counts of the run's training text, for its unigram baseline. Empty if they are unknown; the reason is logged.
std::vector<uint64_t> training_counts(const Scored& one) {
  const auto& tokens = one.run.config.data.tokens;
  std::vector<uint64_t> counts;
  std::string why;
  if (tokens.empty())
    why = "its training tokens are not named";
  else if (!fs::exists(tokens + "/manifest.json"))
    why = words("its training tokens, ", tokens, ", no longer exist");
  try {
    const auto manifest = why.empty() ? read_manifest(tokens) : Manifest{};
    if (why.empty() && one.store->tokenizer().has_fingerprint(manifest.tokenizer_fingerprint)) {
      counts = manifest.counts;
      if (!counts.empty()) counts.resize(static_cast<size_t>(one.store->tokenizer().size()));
    } else if (why.empty()) {
      why = words(tokens, " has another tokenizer");
    }
  } catch (const DataError& e) {
    why = e.what();
  }
  if (!why.empty()) log_info("evaluate", words(one.path, ": no unigram baseline, because ", why));
  return counts;
}

/// True if both are scored on the same tokens, and so on the same sequences with the same masks.
bool same_sequences(const Scored& one, const Scored& other) {
  return one.store->fingerprint() == other.store->fingerprint();
}

/// The difference of two losses of the same predictions, and its standard error.
struct Difference {
  double mean = 0;
  std::optional<double> standard_error;
};

/// The difference between a part of `one` and the same part of `first`. None if their predictions differ: those of
/// other tokens, and those of tokens replaced by each run's own generator.
std::optional<Difference> difference(const Scored& one, const HeldOut& a, const Scored& first, const HeldOut& b) {
  if (!same_sequences(one, first) || a.name.rfind(RtdConfig::kind, 0) == 0) return std::nullopt;
  if (a.sequences.size() != b.sequences.size() || a.count == 0) return std::nullopt;
  auto sequences = a.sequences;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].count != b.sequences[i].count) return std::nullopt;
    sequences[i].sum -= b.sequences[i].sum;
  }
  return Difference{a.loss - b.loss, standard_error(sequences)};
}

std::string with_error(double value, const std::optional<double>& error) {
  return number(value, 4) + (error ? " +- " + number(*error, 4) : "");
}

/// Prints which text several runs were scored on.
void print_evaluation(const std::vector<Scored>& runs) {
  const auto& evaluation = runs[0].config.evaluation;
  const bool same =
      std::all_of(runs.begin(), runs.end(), [&](const Scored& one) { return same_sequences(one, runs[0]); });
  const auto sequences = thousands(static_cast<uint64_t>(evaluation.sequences)),
             length = thousands(static_cast<uint64_t>(evaluation.max_seq_length));
  const auto text = same ? words("each on the same sequences, at most ", sequences, " of up to ", length,
                                 " tokens, with the same masks")
                         : words("each on its own tokens of the text, at most ", sequences, " sequences of up to ",
                                 length, " tokens");
  std::printf("%s (seed %s)\n", text.c_str(), std::to_string(evaluation.seed).c_str());
}

void print_head(const std::string& first, bool several) {
  std::printf("%-24s %10s %9s %12s %10s %12s%s\n", first.c_str(), "loss", "+-", "perplexity", "accuracy", "predictions",
              several ? "   vs. first" : "");
}

void print_line(const std::string& name, const HeldOut& part, const std::string& suffix) {
  const auto error = part.standard_error ? number(*part.standard_error, 4) : "";
  std::printf("%-24s %10.4f %9s %12.2f %9.2f%% %12s%s%s\n", name.c_str(), part.loss, error.c_str(), std::exp(part.loss),
              100 * part.accuracy, thousands(static_cast<uint64_t>(part.count)).c_str(),
              part.f1 ? ("   F1 " + number(*part.f1, 4)).c_str() : "", suffix.c_str());
}

void print_baseline(const HeldOut& part) {
  if (!part.baseline) return;
  const auto& b = *part.baseline;
  std::printf("%-24s %10.4f %9s %12.2f %9.2f%% %12s\n", ("  " + b.name).c_str(), b.loss, "", std::exp(b.loss),
              100 * b.accuracy, thousands(static_cast<uint64_t>(part.count)).c_str());
}

/// Prints one part of the losses for all runs; a baseline that differs between runs is printed below each.
void print_part(const std::vector<Scored>& runs, const HeldOut& first) {
  struct Line {
    const Scored& run;
    const HeldOut& part;
    std::optional<Difference> gap;
  };
  std::vector<Line> lines;
  for (const auto& one : runs)
    for (const auto& part : one.losses) {
      if (part.name != first.name) continue;
      lines.push_back({one, part, &part == &first ? std::nullopt : difference(one, part, runs[0], first)});
    }
  const auto has_gap = [](const Line& line) { return line.gap.has_value(); };
  const auto has_first = [&](const Line& line) { return line.part.baseline == first.baseline; };
  const bool one_baseline = std::all_of(lines.begin(), lines.end(), has_first);
  print_head(first.name, std::any_of(lines.begin(), lines.end(), has_gap));
  for (const auto& [one, part, gap] : lines) {
    print_line("  " + one.path, part, gap ? "   " + with_error(gap->mean, gap->standard_error) : "");
    if (!one_baseline) print_baseline(part);
  }
  if (one_baseline) print_baseline(first);
}

void print_table(const std::vector<Scored>& runs) {
  const auto& first = runs[0].losses;
  if (runs.size() == 1) {
    print_head("", false);
    for (const auto& part : first) {
      print_line(part.name, part, "");
      print_baseline(part);
    }
    return;
  }
  for (const auto& part : first) print_part(runs, part);
}

json evaluation_json(const EvaluationConfig& e) {
  return {{"objectives", names_of(e)},
          {"seed", e.seed},
          {"sequences", e.sequences},
          {"max_seq_length", e.max_seq_length},
          {"packing", name_of(e.packing)}};
}

json to_json(const Scored& one, const EvaluateCommand& c) {
  uint64_t sequences = 0;
  for (const auto& part : one.losses) sequences = std::max<uint64_t>(sequences, part.sequences.size());
  json found{{"run", one.path},
             {"checkpoint", one.run.checkpoint},
             {"sequences", sequences},
             {"held_out", to_json(one.losses)},
             {"measures", json::object()}};
  found[c.text.empty() ? "tokens" : "text"] = c.text.empty() ? json(one.tokens) : json(c.text);
  for (const auto& part : one.losses)
    if (part.baseline && part.baseline->name == "unigram" && !found.contains("unigram"))
      found["unigram"] = {{"loss", part.baseline->loss}, {"accuracy", part.baseline->accuracy}};
  if (one.bits_per_byte) found["measures"]["bits_per_byte"] = *one.bits_per_byte;
  return found;
}

json differences_json(const Scored& one, const Scored& first) {
  json found = json::object();
  for (const auto& part : one.losses)
    for (const auto& other : first.losses) {
      const auto gap = part.name == other.name ? difference(one, part, first, other) : std::nullopt;
      if (!gap) continue;
      found[part.name] = {{"mean", gap->mean}};
      if (gap->standard_error) found[part.name]["standard_error"] = *gap->standard_error;
    }
  return found;
}

json measures_of(const GeneratedPairs& pairs) {
  const auto r = rouge(pairs.generated, pairs.references);
  return {{"bleu", bleu(pairs.generated, pairs.references).score},
          {"chrf", chrf(pairs.generated, pairs.references)},
          {"rouge1", r.rouge1},
          {"rouge2", r.rouge2},
          {"rougeL", r.rougeL},
          {"exact_match", exact_match(pairs.generated, pairs.references)}};
}

void print_pairs(const GeneratedPairs& pairs, const json& measures) {
  const auto percent_of = [&](const char* name) { return 100 * measures.at(name).get<double>(); };
  std::printf("\nBLEU %.2f   chrF %.2f   ROUGE-1 %.2f   ROUGE-2 %.2f   ROUGE-L %.2f   exact %.2f %%   (%zu texts)\n",
              measures.at("bleu").get<double>(), measures.at("chrf").get<double>(), percent_of("rouge1"),
              percent_of("rouge2"), percent_of("rougeL"), percent_of("exact_match"), pairs.generated.size());
  for (size_t i = 0; i < std::min<size_t>(3, pairs.generated.size()); ++i)
    std::printf("\n  %s\n  %s\n  (%s)\n", pairs.sources[i].c_str(), pairs.generated[i].c_str(),
                pairs.references[i].c_str());
}

/// Scores `one` by its config's evaluation.
void score(Scored& one, int64_t batch_size) {
  const auto wrong = evaluation_errors(one.config);
  require<ConfigError>(wrong.empty(), one.path, ": ", wrong.empty() ? "" : wrong[0]);
  const auto measures = held_out_measures(one.config, *one.store, training_counts(one));
  const auto missing = missing_sequences(measures, one.config.evaluation.sequences);
  if (!missing.empty()) log_info("evaluate", words(one.path, ": ", missing));
  one.losses = evaluate(*one.run.network, measures, batch_size, at::kCPU);
  for (size_t k = 0; k < measures.size() && !one.bits_per_byte; ++k) {
    if (!is_generative(one.config.evaluation.objectives[k])) continue;
    const auto part =
        std::find_if(one.losses.begin(), one.losses.end(), [&](const auto& p) { return p.name == measures[k].name; });
    const auto bytes = label_bytes(measures[k].collator, measures[k].sequences, batch_size);
    if (!bytes)
      log_info("evaluate", words(one.tokens,
                                 ": lacks the byte counts of its source, so no bits per byte; prepare the text "
                                 "again with --force"));
    if (!bytes || *bytes == 0) return;
    one.bits_per_byte = part->loss * static_cast<double>(part->count) / std::log(2.0) / static_cast<double>(*bytes);
  }
}

}  // namespace

int run_evaluate(const EvaluateCommand& c) {
  require<ConfigError>(!c.generate || c.runs.size() == 1, "--generate takes a single run; name one");
  std::vector<Scored> runs;
  for (const auto& path : c.runs) {
    auto& one = runs.emplace_back(Scored{.path = path, .run = open_run(chosen_checkpoint(path, c.checkpoint))});
    require<ConfigError>(!one.run.config.objectives.empty(), path,
                         ": has no objective to evaluate; it was imported as a base model without a head");
    auto& tokens = one.run.config.data.tokens;
    tokens = tokens_of_run(one.run.folder, tokens);
  }
  const auto evaluation = common_evaluation(c, runs);
  for (auto& one : runs) {
    one.config = one.run.config;
    one.config.evaluation = evaluation;
  }
  const ScratchFolder scratch;
  const auto texts = readable_texts(c, scratch);
  open_texts(runs, c, texts, scratch);
  if (!c.text.empty()) skip_document_pairs(runs, c.text.front() == "-" ? "standard input" : c.text.front());
  for (auto& one : runs) score(one, c.batch_size);
  std::optional<GeneratedPairs> pairs;
  if (c.generate) pairs = generate_pairs(runs[0].run, *runs[0].store, c, texts, evaluation.sequences);
  const auto measures = pairs ? measures_of(*pairs) : json::object();
  if (c.json) {
    json list = json::array();
    for (const auto& one : runs) {
      list.push_back(to_json(one, c));
      if (list.size() > 1) list.back()["minus_first"] = differences_json(one, runs[0]);
    }
    list[0]["measures"].update(measures);
    json line = runs.size() == 1 ? list[0] : json{{"runs", list}};
    line["evaluation"] = evaluation_json(runs[0].config.evaluation);
    print(line.dump() + "\n");
    return 0;
  }
  if (runs.size() > 1) print_evaluation(runs);
  print_table(runs);
  for (const auto& one : runs) {
    if (!one.bits_per_byte) continue;
    std::printf("%s%.4f bits per byte of the predicted text\n", runs.size() > 1 ? (one.path + ": ").c_str() : "",
                *one.bits_per_byte);
  }
  if (pairs) print_pairs(*pairs, measures);
  return 0;
}

}  // namespace cloze
