// The verb `evaluate`.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/engine/common_evaluation.h"
#include "cli/engine/evaluation_output.h"
#include "cli/engine/generated_pairs.h"
#include "cli/engine/parts.h"
#include "cli/engine/training_counts.h"
#include "core/json.h"
#include "core/log.h"
#include "run/moved.h"

namespace cloze {

namespace {

using nlohmann::json;

/// Token counts of the run's training text, for its unigram baseline. Empty if they are unknown; the reason is logged.
std::vector<uint64_t> baseline_counts(const EvaluatedRun& one) {
  auto known = training_counts(one.run.config.data.tokens, one.store->tokenizer());
  if (!known.why.empty()) log_info("evaluate", words(one.path, ": no unigram baseline, because ", known.why));
  return std::move(known.counts);
}

/// The bits per byte of the first of the losses that is of a generative objective; none without byte counts, which is
/// said.
std::optional<double> bits_per_byte(const EvaluatedRun& one, const std::vector<Measure>& measures, int64_t batch_size) {
  for (size_t k = 0; k < measures.size(); ++k) {
    if (!as_kind(one.config.evaluation.objectives[k]).is_generative()) continue;
    const auto part =
        std::find_if(one.losses.begin(), one.losses.end(), [&](const auto& p) { return p.name == measures[k].name; });
    const auto bytes = label_bytes(measures[k].collator, measures[k].sequences, batch_size);
    if (!bytes)
      log_info("evaluate", words(one.tokens,
                                 ": lacks the byte counts of its source, so no bits per byte; prepare the text "
                                 "again with --force"));
    if (!bytes || *bytes == 0) return {};
    return part->loss * static_cast<double>(part->count) / std::log(2.0) / static_cast<double>(*bytes);
  }
  return {};
}

/// The rows and masks that the evaluation of a run's config is made on.
std::vector<Measure> measures_of_run(const EvaluatedRun& one) {
  const auto wrong = evaluation_errors(one.config);
  require<ConfigError>(wrong.empty(), one.path, ": ", wrong.empty() ? "" : wrong[0]);
  auto measures = held_out_measures(one.config, *one.store, baseline_counts(one));
  const auto missing = missing_sequences(measures, one.config.evaluation.sequences);
  if (!missing.empty()) log_info("evaluate", words(one.path, ": ", missing));
  return measures;
}

/// Scores the runs by their configs' evaluation; checkpoints of one run by the measures of the first, and with the
/// weights of one at a time in memory.
void score(std::vector<EvaluatedRun>& runs, const EvaluateCommand& c) {
  std::vector<Measure> measures;
  for (auto& one : runs) {
    if (measures.empty() || !c.suites.all_checkpoints) measures = measures_of_run(one);
    const auto network = one.run.network ? one.run.network : open_run(one.run.checkpoint).network;
    one.losses = evaluate(*network, measures, c.batch_size, at::kCPU);
    one.bits_per_byte = bits_per_byte(one, measures, c.batch_size);
  }
}

/// A run, or a checkpoint of the same run as the `first`, whose weights are not read yet.
LoadedRun open_one(const std::string& path, const EvaluateCommand& c, const std::vector<EvaluatedRun>& first) {
  if (!c.suites.all_checkpoints || first.empty()) return open_chosen(path, c.checkpoint);
  auto run = first.front().run;
  run.checkpoint = chosen_checkpoint(path, c.checkpoint);
  run.network = nullptr;
  return run;
}

/// The runs of the command, or the checkpoints of its only run, with the evaluation that they share.
std::vector<EvaluatedRun> open_runs(const EvaluateCommand& c) {
  std::vector<EvaluatedRun> runs;
  for (const auto& path : c.suites.all_checkpoints ? all_checkpoints_of(c.runs[0]) : c.runs) {
    auto& one = runs.emplace_back(EvaluatedRun{.path = path, .run = open_one(path, c, runs)});
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
  return runs;
}

}  // namespace

int run_evaluate(const EvaluateCommand& c) {
  require<ConfigError>(!c.generate || c.runs.size() == 1, "--generate takes a single run; name one");
  check_search(c.search);
  auto runs = open_runs(c);
  const ScratchFolder scratch;
  const auto texts = readable_texts(c, scratch);
  open_texts(runs, c, texts, scratch);
  if (!c.text.empty()) skip_document_pairs(runs, c.text.front() == "-" ? "standard input" : c.text.front());
  score(runs, c);
  std::optional<GeneratedPairs> pairs;
  if (c.generate) pairs = generate_pairs(runs[0], c, texts, runs[0].config.evaluation.sequences);
  const auto measures = pairs ? measures_of(*pairs) : json::object();
  if (c.json) {
    print_data(json_text(losses_json(runs, c, measures)) + "\n");
    return 0;
  }
  print_losses(runs);
  if (pairs) print_pairs(*pairs, measures);
  return 0;
}

}  // namespace cloze
