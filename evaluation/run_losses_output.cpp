#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "core/print.h"
#include "core/report/table.h"
#include "core/text.h"
#include "evaluation/run_losses.h"
#include "evaluation/source_losses.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string with_error(double value, const std::optional<double>& error) {
  return fixed(value, 4) + (error ? " +- " + fixed(*error, 4) : "");
}

/// Prints which text several runs were scored on.
void print_evaluation(const std::vector<EvaluatedRun>& runs) {
  const auto& evaluation = runs[0].config.evaluation;
  const bool same =
      std::all_of(runs.begin(), runs.end(), [&](const EvaluatedRun& one) { return same_sequences(one, runs[0]); });
  const auto sequences = thousands(static_cast<uint64_t>(evaluation.sequences)),
             length = thousands(static_cast<uint64_t>(evaluation.max_seq_length));
  const auto text = same ? concat("each on the same sequences, at most ", sequences, " of up to ", length,
                                  " tokens, with the same masks")
                         : concat("each on its own tokens of the text, at most ", sequences, " sequences of up to ",
                                  length, " tokens");
  print_text(concat(text, " (seed ", evaluation.seed, ")\n"));
}

/// The name of a source; of a long one its end.
std::string source_cell(const std::string& name) {
  constexpr size_t most = 32;
  const auto width = width_of(name);
  return width > most ? "…" + name.substr(cut(name, width - most + 1).size()) : name;
}

/// A table of losses, whose last columns are there where a loss has them.
class LossTable {
 public:
  /// `first` heads the names.
  explicit LossTable(const std::string& first)
      : table_{.header = columns_of_numbers({first, "loss", "+-", "perplexity", "accuracy", "predictions", "documents",
                                             "bits/byte", "F1", "vs. first"})} {
    table_.header[6].rank = 2;
    table_.header[3].rank = 1;
  }

  void add(const std::string& name, const HeldOut& part, const std::optional<LossDifference>& gap = {}) {
    const auto error = part.standard_error ? fixed(*part.standard_error, 4) : "";
    add_row(name, part.loss, error, part.accuracy, part.count);
    if (!part.sources.empty()) add_extent(part);
    if (part.f1) table_.rows.back()[8] = fixed(*part.f1, 4);
    if (gap) table_.rows.back()[9] = with_error(gap->mean, gap->standard_error);
  }
  /// `difference_of`: that of the source of this number from the first run
  template <class Difference>
  void add_sources(const std::string& indent, const HeldOut& part, const Difference& difference_of) {
    constexpr size_t most = 20;
    for (size_t s = 0; s < std::min(most, part.sources.size()); ++s) {
      const auto& source = part.sources[s];
      add(indent + source_cell(source.name), source, difference_of(s));
      add_extent(source);
    }
    if (part.sources.size() <= most) return;
    table_.rows.emplace_back(table_.header.size());
    table_.rows.back()[0] = concat(indent, part.sources.size() - most, " more: --json");
  }
  void add_baseline(const HeldOut& part) {
    if (part.baseline)
      add_row("  " + part.baseline->name, part.baseline->loss, "", part.baseline->accuracy, part.count);
  }
  void print() {
    drop_empty_columns(table_);
    print_text(to_text(table_, terminal_columns(STDOUT_FILENO, std::numeric_limits<size_t>::max())));
  }

 private:
  /// What sources are compared by.
  void add_extent(const HeldOut& part) {
    table_.rows.back()[6] = thousands(scored_documents(part));
    if (const auto bits = bits_per_byte(part)) table_.rows.back()[7] = fixed(*bits, 4);
  }

  void add_row(const std::string& name, double loss, const std::string& error, std::optional<double> accuracy,
               int64_t count) {
    table_.rows.push_back({name, fixed(loss, 4), error, fixed(std::exp(loss), 2),
                           accuracy ? fixed(100 * *accuracy, 2) + "%" : "", thousands(static_cast<uint64_t>(count)), "",
                           "", "", ""});
  }

  Table table_;
};

/// Prints one part of the losses for all runs; a baseline that differs between runs is printed below each.
void print_part(const std::vector<EvaluatedRun>& runs, const HeldOut& first) {
  const auto is_this = [&](const HeldOut& part) { return part.name == first.name; };
  const bool one_baseline = std::all_of(runs.begin(), runs.end(), [&](const EvaluatedRun& one) {
    return std::all_of(one.losses.begin(), one.losses.end(),
                       [&](const HeldOut& part) { return !is_this(part) || part.baseline == first.baseline; });
  });
  LossTable table(first.name);
  for (const auto& one : runs)
    for (const auto& part : one.losses) {
      if (!is_this(part)) continue;
      const auto gap = &part == &first ? std::nullopt : difference(one, part, runs[0], first);
      table.add("  " + one.path, part, gap);
      table.add_sources("    ", part, [&](size_t s) {
        return gap ? difference(one, part.sources[s], runs[0], first.sources[s]) : std::nullopt;
      });
      if (!one_baseline) table.add_baseline(part);
    }
  if (one_baseline) table.add_baseline(first);
  table.print();
}

void print_table(const std::vector<EvaluatedRun>& runs) {
  const auto& first = runs[0].losses;
  if (runs.size() > 1) {
    for (const auto& part : first) print_part(runs, part);
    return;
  }
  LossTable table("");
  for (const auto& part : first) {
    table.add(part.name, part);
    table.add_baseline(part);
    table.add_sources("  ", part, [](size_t) { return std::optional<LossDifference>(); });
  }
  table.print();
}

json evaluation_json(const EvaluationConfig& e) {
  return {{"objectives", names_of(e)},
          {"seed", e.seed},
          {"sequences", e.sequences},
          {"max_seq_length", e.max_seq_length},
          {"packing", name_of(e.packing)}};
}

json to_json(const EvaluatedRun& one, const EvaluationRequest& c) {
  uint64_t sequences = 0;
  for (const auto& part : one.losses) sequences = std::max<uint64_t>(sequences, part.sequences.size());
  json document{{"run", one.path},
                {"checkpoint", one.run.checkpoint},
                {"sequences", sequences},
                {"held_out", to_json(one.losses)},
                {"measures", json::object()}};
  document[c.text.empty() ? "tokens" : "text"] = c.text.empty() ? json(one.tokens) : json(c.text);
  for (const auto& part : one.losses)
    if (part.baseline && part.baseline->name == "unigram" && !document.contains("unigram"))
      document["unigram"] = {{"loss", part.baseline->loss}, {"accuracy", part.baseline->accuracy}};
  if (one.bits_per_byte) document["measures"]["bits_per_byte"] = *one.bits_per_byte;
  return document;
}

json to_json(const LossDifference& gap) {
  json document{{"mean", gap.mean}};
  if (gap.standard_error) document["standard_error"] = *gap.standard_error;
  return document;
}

json differences_json(const EvaluatedRun& one, const EvaluatedRun& first) {
  json document = json::object();
  for (const auto& part : one.losses)
    for (const auto& other : first.losses) {
      const auto gap = part.name == other.name ? difference(one, part, first, other) : std::nullopt;
      if (!gap) continue;
      document[part.name] = to_json(*gap);
      for (size_t s = 0; s < part.sources.size(); ++s)
        if (const auto own = difference(one, part.sources[s], first, other.sources[s]))
          document[part.name]["sources"][part.sources[s].name] = to_json(*own);
    }
  return document;
}

}  // namespace

void print_losses(const std::vector<EvaluatedRun>& runs) {
  if (runs.size() > 1) print_evaluation(runs);
  print_table(runs);
  for (const auto& one : runs) {
    if (!one.bits_per_byte) continue;
    print_text(concat(runs.size() > 1 ? one.path + ": " : "", fixed(*one.bits_per_byte, 4),
                      " bits per byte of the predicted text\n"));
  }
}

json losses_json(const std::vector<EvaluatedRun>& runs, const EvaluationRequest& c, const json& measures) {
  json list = json::array();
  for (const auto& one : runs) {
    list.push_back(to_json(one, c));
    if (list.size() > 1) list.back()["minus_first"] = differences_json(one, runs[0]);
  }
  list[0]["measures"].update(measures);
  json document = runs.size() == 1 ? list[0] : json{{"runs", list}};
  document["evaluation"] = evaluation_json(runs[0].config.evaluation);
  return document;
}

}  // namespace cloze
