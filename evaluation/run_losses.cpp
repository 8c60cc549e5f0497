#include "evaluation/run_losses.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/prepare/prepare.h"
#include "data/prepare/sources.h"
#include "data/reading/spool.h"
#include "data/store/manifest.h"
#include "data/store/read_mixture.h"
#include "run/config/load_config.h"
#include "run/config/evaluation_protocol.h"
#include "run/device.h"
#include "run/moved.h"

namespace cloze {

namespace fs = std::filesystem;

std::vector<std::string> names_of(const EvaluationConfig& evaluation) {
  std::vector<std::string> names;
  for (const auto& objective : evaluation.objectives) names.push_back(short_form(objective));
  return names;
}

std::optional<LossDifference> difference(const EvaluatedRun& one, const HeldOut& a, const EvaluatedRun& first,
                                         const HeldOut& b) {
  if (!same_sequences(one, first) || a.f1) return std::nullopt;  // which tokens are replaced differs between runs
  if (a.sequences.size() != b.sequences.size() || a.count == 0) return std::nullopt;
  auto sequences = a.sequences;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].count != b.sequences[i].count) return std::nullopt;
    sequences[i].sum -= b.sequences[i].sum;
  }
  return LossDifference{a.loss - b.loss, standard_error(sequences)};
}

namespace {

/// The counts of one text.
TrainingCounts counts_of_text(const std::string& tokens, const Tokenizer& tokenizer) {
  if (tokens.empty()) return {.why = "its training tokens are not named"};
  std::error_code error;
  if (!fs::exists(tokens + "/manifest.json", error))
    return {.why = concat("its training tokens, ", tokens, error ? ", cannot be reached" : ", no longer exist")};
  try {
    auto manifest = read_manifest(tokens);
    if (!tokenizer.has_fingerprint(manifest.tokenizer_fingerprint))
      return {.why = concat(tokens, " has another tokenizer")};
    TrainingCounts counts{.counts = std::move(manifest.counts)};
    if (!counts.counts.empty()) counts.counts.resize(static_cast<size_t>(tokenizer.size()));
    return counts;
  } catch (const DataError& e) {
    return {.why = e.what()};
  }
}

}  // namespace

TrainingCounts training_counts(const DataConfig& data, const Tokenizer& tokenizer) {
  if (data.mixture.empty()) return counts_of_text(data.tokens, tokenizer);
  try {
    TrainingCounts all{.counts = std::vector<uint64_t>(static_cast<size_t>(tokenizer.size()))};
    for (const auto& part : read_mixture(data)) {
      const auto counts = counts_of_text(part.tokens, tokenizer);
      if (counts.counts.empty()) return counts;
      add_counts(counts.counts, part.passes, all.counts);
    }
    return all;
  } catch (const DataError& e) {
    return {.why = e.what()};
  }
}

namespace {

/// Keeps the objectives that all runs are scored by, and logs the others.
void keep_common(EvaluationConfig& evaluation, const std::vector<EvaluatedRun>& runs) {
  std::vector<std::vector<std::string>> of_runs;
  for (const auto& one : runs) of_runs.push_back(names_of(resolved_evaluation(one.run.config)));
  const auto first = names_of(evaluation);
  std::erase_if(evaluation.objectives, [&](const ObjectiveConfig& objective) {
    const auto name = short_form(objective);
    for (size_t r = 1; r < runs.size(); ++r) {
      if (contains(of_runs[r], name)) continue;
      log_info("evaluate", concat(name, " is skipped: ", runs[r].path, " is scored by ", listed(of_runs[r])));
      return true;
    }
    return false;
  });
  require<ConfigError>(!evaluation.objectives.empty(), runs[0].path, " is scored by ", listed(first), ", ",
                       runs[1].path, " by ", listed(of_runs[1]),
                       "; evaluate each by itself, or both by one that they have a head for, with --objective");
}

/// Keys of `evaluation` that are of a training.
const std::vector<std::string> keys_of_training{"evaluation.every",       "evaluation.points",
                                                "evaluation.patience",    "evaluation.suites",
                                                "evaluation.suite_every", "evaluation.suite_items"};

/// What a change of a key that is not of `evaluation` was meant to be, or an example.
std::string meant_by_change(const std::string& change) {
  const std::string section = "evaluation.";
  const auto equals = std::min(change.find('='), change.size());
  const auto key = change.substr(0, equals);
  std::vector<std::string> names;
  for (const auto& entry : entries(RunConfig()))
    if (entry.path.starts_with(section) && !contains(keys_of_training, entry.path))
      names.push_back(entry.path.substr(section.size()));
  const auto near = nearest(key.substr(key.rfind('.') + 1), names);
  if (near.empty()) return ", such as --set evaluation.seed=2";
  return concat("; did you mean --set ", section, near, change.substr(equals), "?");
}

/// The evaluation of all runs: that of the first run, with the changes of the request. An objective by which not all
/// runs are scored is left out and logged. Throws ConfigError if none is left.
EvaluationConfig common_evaluation(const EvaluationRequest& c, const std::vector<EvaluatedRun>& runs) {
  bool named = !c.objectives.empty(), sized = false;
  for (const auto& change : c.set) {
    require<ConfigError>(change.rfind("evaluation.", 0) == 0, "--set ", change,
                         ": evaluate accepts keys of `evaluation` only", meant_by_change(change));
    const auto key = change.substr(0, change.find('='));
    const bool is_of_training = contains(keys_of_training, key);
    require<ConfigError>(!is_of_training, "--set ", change,
                         ": says when a run is evaluated while it trains, and changes nothing here; leave it out");
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

/// Removes the objectives whose segment pairs need two documents if the text is a single one, and logs them. `text` is
/// its name. Throws DataError if none is left.
void skip_document_pairs(std::vector<EvaluatedRun>& runs, const std::string& text) {
  const auto has_one = [](const EvaluatedRun& one) { return one.store->num_documents() < 2; };
  if (std::none_of(runs.begin(), runs.end(), has_one)) return;
  auto left = runs[0].config.evaluation.objectives;
  const auto rows = held_out_data(runs[0].config);
  std::vector<std::string> skipped;
  std::erase_if(left, [&](const ObjectiveConfig& objective) {
    if (!needs_documents(row_objectives(objective), rows)) return false;
    skipped.push_back(short_form(objective));
    return true;
  });
  require<DataError>(!left.empty(), text, ": is a single document, and ", listed(skipped),
                     " needs two; separate documents by blank lines");
  for (const auto& name : skipped)
    log_info("evaluate", concat(name, " is skipped: it needs two documents, and ", text,
                                " is a single one; separate documents by blank lines"));
  for (auto& one : runs) one.config.evaluation.objectives = left;
}

EvaluationTexts readable_texts(const EvaluationRequest& c, const ScratchFolder& scratch) {
  EvaluationTexts texts;
  const auto files = find_files(c.text);
  texts.sources = files.files;
  texts.names = name_sources(files);
  if (!c.target.empty()) texts.targets = expand_inputs(c.target);
  name_copies(spool(std::array{&texts.sources, &texts.targets}, scratch.path()), texts.names);
  return texts;
}

/// The texts are pairs of a source and a target.
bool are_pairs(const EvaluationRequest& c) { return !c.target.empty() || !c.columns.empty() || c.format == "pairs"; }

/// The runs' objectives and the texts are both of pairs, or neither is.
void check_format(const EvaluationConfig& evaluation, const EvaluationRequest& c) {
  const bool of_pairs = any_that(evaluation.objectives, &ObjectiveKind::reads_text_pairs);
  require<ConfigError>(c.text.empty() || of_pairs == are_pairs(c),
                       of_pairs ? "this run is trained on pairs; name the targets of --text with --target, or use "
                                  "--format pairs for two columns"
                                : "this run is not trained on pairs; leave out --target and --format pairs");
}

/// Tokens of the texts by the run's tokenizer, in the folder `out`.
void prepare_texts(const EvaluatedRun& one, const EvaluationRequest& c, const EvaluationTexts& texts,
                   const std::string& out) {
  PrepareOptions options;
  options.inputs = texts.sources;
  options.targets = texts.targets;
  options.sources = texts.names;
  options.out = out;
  options.tokenizer = one.run.folder + "/tokenizer";
  options.held_out = 0;
  options.for_scoring = true;
  options.format = are_pairs(c) ? TextFormat::pairs : choice_of_option<TextFormat>("format", c.format);
  options.field = c.field;
  options.columns = c.columns;
  prepare(options);
}

/// Opens `one.tokens`, for the run's tokenizer.
void open_store(EvaluatedRun& one, const std::string& split) {
  one.store.emplace(one.tokens, split);
  if (!one.run.has_tokenizer) return;
  require<ConfigError>(one.store->tokenizer().fingerprint() == one.run.tokenizer.fingerprint(), one.tokens,
                       ": has another tokenizer than the run; prepare it with --tokenizer ", one.run.folder,
                       "/tokenizer");
  one.store = one.store->with_tokenizer(one.run.tokenizer);  // with sentinels of its own
}

/// Both runs are scored on the same text; that their losses per token differ in kind is said.
void check_same_text(const EvaluatedRun& one, const EvaluatedRun& first) {
  const bool same_tokenizer = one.store->tokenizer().fingerprint() == first.store->tokenizer().fingerprint();
  require<ConfigError>(same_sequences(one, first) || !same_tokenizer, one.path, " was trained on other tokens than ",
                       first.path, " (", one.tokens, ", ", first.tokens,
                       "); name the text to score both on with --text or --tokens");
  if (!same_tokenizer)
    log_warning("evaluate", concat(one.path, " has another tokenizer than ", first.path,
                                   ": losses per token cannot be compared, bits per byte can"));
}

/// Opens the text to score on, the same for every run. Throws ConfigError, CheckpointError, DataError.
void open_texts(std::vector<EvaluatedRun>& runs, const EvaluationRequest& c, const EvaluationTexts& texts,
                const ScratchFolder& scratch) {
  check_format(runs[0].config.evaluation, c);
  std::map<std::string, std::string> prepared;  // tokenizer -> folder
  for (auto& one : runs) {
    one.tokens = c.tokens.empty() ? one.run.config.data.tokens : c.tokens;
    if (!c.text.empty()) {
      require<CheckpointError>(one.run.has_tokenizer, one.path,
                               ": has no tokenizer, so it cannot read text; name prepared tokens with --tokens");
      const auto [folder, is_new] =
          prepared.emplace(one.run.tokenizer.fingerprint(), concat(scratch.path(), "/tokens-", prepared.size()));
      one.tokens = folder->second;
      if (is_new) prepare_texts(one, c, texts, one.tokens);
    }
    require<ConfigError>(!one.tokens.empty(), one.path,
                         ": names no prepared tokens; give text with --text, or tokens with --tokens");
    require<DataError>(!c.tokens.empty() || fs::exists(one.tokens), one.path, ": its tokens, ", one.tokens,
                       ", are neither there nor near the run; name their folder with --tokens, or text with --text");
    open_store(one, c.text.empty() ? "valid" : "train");
    check_same_text(one, runs[0]);
  }
}

/// Token counts of the run's training text, for its unigram baseline. Empty if they are unknown; the reason is logged.
std::vector<uint64_t> baseline_counts(const EvaluatedRun& one) {
  auto known = training_counts(one.run.config.data, one.store->tokenizer());
  if (!known.why.empty()) log_info("evaluate", concat(one.path, ": no unigram baseline, because ", known.why));
  return std::move(known.counts);
}

/// The bits per byte of the first of the losses that is of a generative objective; none without byte counts, which is
/// said.
std::optional<double> bits_per_byte(const EvaluatedRun& one, const std::vector<Measure>& measures) {
  for (size_t k = 0; k < measures.size(); ++k) {
    if (!as_kind(one.config.evaluation.objectives[k]).is_generative()) continue;
    const auto part = std::ranges::find(one.losses, measures[k].name, &HeldOut::name);
    if (!std::ranges::all_of(part->sequences, [](const auto& sequence) { return sequence.bytes.has_value(); }))
      log_info("evaluate", concat(one.tokens,
                                  ": lacks the byte counts of its source, so no bits per byte; prepare the text "
                                  "again with --force"));
    return bits_per_byte(*part);
  }
  return {};
}

/// The rows and masks that the evaluation of a run's config is made on.
std::vector<Measure> measures_of_run(const EvaluatedRun& one) {
  const auto wrong = evaluation_errors(one.config);
  require<ConfigError>(wrong.empty(), one.path, ": ", wrong.empty() ? "" : wrong[0]);
  auto measures = held_out_measures(one.config, *one.store, baseline_counts(one));
  const auto missing = missing_sequences(measures, one.config.evaluation.sequences);
  if (!missing.empty()) log_info("evaluate", concat(one.path, ": ", missing));
  return measures;
}

/// Calls `read` for one of all checkpoints of a run, or for a run; false for a checkpoint that the run, which trains,
/// has removed meanwhile.
template <class Read>
bool read_one(const EvaluationRequest& c, const std::string& path, const Read& read) {
  try {
    read();
    return true;
  } catch (const std::exception&) {
    if (!c.all_checkpoints || !was_removed(path)) throw;
  }
  log_info("evaluate", path + ": the run has removed it meanwhile; it is left out");
  return false;
}

/// Scores the runs by their configs' evaluation; checkpoints of one run by the measures of the first, and with the
/// weights of one at a time in memory.
void score(std::vector<EvaluatedRun>& runs, const EvaluationRequest& c) {
  std::vector<Measure> measures;
  for (auto& one : runs) {
    if (measures.empty() || !c.all_checkpoints) measures = measures_of_run(one);
    auto network = one.run.network;
    if (!network && !read_one(c, one.path, [&] { network = open_on_own_device(one.run.checkpoint).network; })) continue;
    one.losses = evaluate(*network, measures, c.batch_size, device_of(*network));
    one.bits_per_byte = bits_per_byte(one, measures);
  }
  std::erase_if(runs, [](const EvaluatedRun& one) { return one.losses.empty(); });
}

/// A run, or a checkpoint of the same run as the `first`, whose weights are not read yet.
LoadedRun open_one(const std::string& path, const EvaluationRequest& c, const std::vector<EvaluatedRun>& first) {
  if (!c.all_checkpoints || first.empty()) return open_chosen(path, c.checkpoint);
  auto run = first.front().run;
  run.checkpoint = chosen_checkpoint(path, c.checkpoint);
  run.network = nullptr;
  return run;
}

/// The runs of the command, or the checkpoints of its only run, with the evaluation that they share.
std::vector<EvaluatedRun> open_runs(const EvaluationRequest& c) {
  std::vector<EvaluatedRun> runs;
  const auto open_all = [&] {
    for (const auto& path : c.all_checkpoints ? all_checkpoints_of(c.runs[0]) : c.runs) {
      EvaluatedRun opened{.path = path, .run = {}};
      if (!read_one(c, path, [&] { opened.run = open_one(path, c, runs); })) continue;
      auto& one = runs.emplace_back(std::move(opened));
      require<ConfigError>(!one.run.config.objectives.empty(), path,
                           ": has no objective to evaluate; it was imported as a base model without a head");
      auto& data = one.run.config.data;
      data = data_of_run(one.run.folder, data);
    }
  };
  for (int looks = 0; runs.empty() && looks < most_looks; ++looks) open_all();
  require<CheckpointError>(!runs.empty(), c.runs[0], ": has removed all checkpoints that were found; try again");
  const auto evaluation = common_evaluation(c, runs);
  for (auto& one : runs) {
    one.config = one.run.config;
    one.config.evaluation = evaluation;
  }
  return runs;
}

}  // namespace

void evaluate_losses(const EvaluationRequest& c) {
  require<ConfigError>(!c.generate || c.runs.size() == 1, "--generate takes a single run; name one");
  auto runs = open_runs(c);
  const ScratchFolder scratch;
  const auto texts = readable_texts(c, scratch);
  open_texts(runs, c, texts, scratch);
  if (!c.text.empty()) skip_document_pairs(runs, c.text.front() == "-" ? "standard input" : c.text.front());
  score(runs, c);
  std::optional<GeneratedPairs> pairs;
  if (c.generate) pairs = generate_pairs(runs[0], c, texts);
  const auto measures = pairs ? measures_of(*pairs) : nlohmann::json::object();
  if (c.json) {
    print_data(json_text(losses_json(runs, c, measures)) + "\n");
    return;
  }
  print_losses(runs);
  if (pairs) print_pairs(*pairs, measures);
}

}  // namespace cloze
