#include "cli/engine/evaluation_output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/engine/common_evaluation.h"
#include "cli/engine/loss_difference.h"
#include "cli/engine/parts.h"
#include "core/log.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string with_error(double value, const std::optional<double>& error) {
  return number(value, 4) + (error ? " +- " + number(*error, 4) : "");
}

/// Prints which text several runs were scored on.
void print_evaluation(const std::vector<EvaluatedRun>& runs) {
  const auto& evaluation = runs[0].config.evaluation;
  const bool same =
      std::all_of(runs.begin(), runs.end(), [&](const EvaluatedRun& one) { return same_sequences(one, runs[0]); });
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
void print_part(const std::vector<EvaluatedRun>& runs, const HeldOut& first) {
  struct Line {
    const EvaluatedRun& run;
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

void print_table(const std::vector<EvaluatedRun>& runs) {
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

json to_json(const EvaluatedRun& one, const EvaluateCommand& c) {
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

json differences_json(const EvaluatedRun& one, const EvaluatedRun& first) {
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

}  // namespace

void print_losses(const std::vector<EvaluatedRun>& runs) {
  if (runs.size() > 1) print_evaluation(runs);
  print_table(runs);
  for (const auto& one : runs) {
    if (!one.bits_per_byte) continue;
    std::printf("%s%.4f bits per byte of the predicted text\n", runs.size() > 1 ? (one.path + ": ").c_str() : "",
                *one.bits_per_byte);
  }
}

json losses_json(const std::vector<EvaluatedRun>& runs, const EvaluateCommand& c, const json& measures) {
  json list = json::array();
  for (const auto& one : runs) {
    list.push_back(to_json(one, c));
    if (list.size() > 1) list.back()["minus_first"] = differences_json(one, runs[0]);
  }
  list[0]["measures"].update(measures);
  json found = runs.size() == 1 ? list[0] : json{{"runs", list}};
  found["evaluation"] = evaluation_json(runs[0].config.evaluation);
  return found;
}

}  // namespace cloze
