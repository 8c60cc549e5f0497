#include "evaluation/suites/suite_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "core/contains.h"
#include "core/error.h"
#include "core/json.h"
#include "core/log.h"
#include "core/report/score_json.h"
#include "core/report/significance.h"
#include "core/text.h"
#include "run/records/suite_units.h"

namespace cloze {

namespace {

using nlohmann::json;

const char* name_of(SuiteLevel level) {
  switch (level) {
    case SuiteLevel::suite:
      return "suite";
    case SuiteLevel::phenomenon:
      return "phenomenon";
    case SuiteLevel::paradigm:
      break;
  }
  return "paradigm";
}

/// A score without its value: a row of a table.
struct ScoreKey {
  std::string suite;
  SuiteLevel level;
  std::string group, metric;
  bool operator==(const ScoreKey&) const = default;
};

const Score* find(const CheckpointResults& answers, const ScoreKey& key) {
  for (const auto& result : answers.results)
    for (const auto& one : result.scores)
      if (ScoreKey{result.suite, one.level, one.group, one.metric} == key) return &one;
  return nullptr;
}

bool has_level(const SuiteResult& result, SuiteLevel level) {
  return std::any_of(result.scores.begin(), result.scores.end(), [&](const auto& f) { return f.level == level; });
}

/// Whether a score repeats that of its suite: the only group of its level, or a mean of items like that of paradigms.
bool repeats(const Score& score, const SuiteResult& result) {
  const auto alike = [&](const Score& other) { return other.level == score.level && other.metric == score.metric; };
  if (score.level != SuiteLevel::suite) return std::count_if(result.scores.begin(), result.scores.end(), alike) == 1;
  return std::any_of(result.scores.begin(), result.scores.end(), [&](const Score& other) {
    return other.level == score.level && score.metric == "micro_" + other.metric &&
           std::abs(other.value - score.value) < 1e-12;
  });
}

bool is_shown(const Score& score, const SuiteResult& result, SuiteDetail detail) {
  if (repeats(score, result)) return false;
  switch (detail) {
    case SuiteDetail::suites:
      return score.level == SuiteLevel::suite;
    case SuiteDetail::phenomena:
      return score.level != SuiteLevel::paradigm || !has_level(result, SuiteLevel::phenomenon);
    case SuiteDetail::paradigms:
      break;
  }
  return true;
}

/// The rows of all runs, in the order of suites and of their scores.
std::vector<ScoreKey> keys_of(std::span<const CheckpointResults> answers, SuiteDetail detail) {
  std::vector<std::string> suites;
  for (const auto& one : answers)
    for (const auto& result : one.results)
      if (!contains(suites, result.suite)) suites.push_back(result.suite);
  std::vector<ScoreKey> keys;
  for (const auto& suite : suites)
    for (const auto& one : answers)
      for (const auto& result : one.results)
        for (const auto& score : result.scores) {
          const ScoreKey key{suite, score.level, score.group, score.metric};
          if (result.suite == suite && is_shown(score, result, detail) && !contains(keys, key)) keys.push_back(key);
        }
  return keys;
}

/// The official number; a dash where the published program has none.
std::string official_cell(const Score& score) {
  return std::isnan(*score.official) ? "-" : score_cell(*score.official, score.metric);
}

/// A group with its suite, indented below it.
std::string group_words(const ScoreKey& key) { return key.level == SuiteLevel::suite ? key.suite : "  " + key.group; }

std::vector<std::string> single_run_cells(const Score& score) {
  return {score_cell(score.value, score.metric), interval_cell(score), score.official ? official_cell(score) : "",
          score.ties > 0 ? thousands(static_cast<uint64_t>(score.ties)) : "",
          thousands(static_cast<uint64_t>(score.count))};
}

/// Columns as rows, and rows as columns.
Table transposed(const Table& table) {
  Table turned{.title = table.title, .header = {table.header[0]}};
  for (size_t k = 1; k < table.header.size(); ++k) turned.rows.push_back({table.header[k].name});
  for (const auto& row : table.rows) {
    turned.header.emplace_back(row[0], ColumnKind::number);
    for (size_t k = 1; k < row.size(); ++k) turned.rows[k - 1].push_back(row[k]);
  }
  return turned;
}

/// The parts of a path between slashes.
std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path).lexically_normal())
    if (!part.empty()) parts.push_back(part.string());
  return parts;
}

/// The official number in brackets; empty where it does not differ in print.
std::string in_brackets(const Score& score) {
  if (!score.official) return "";
  const auto official = official_cell(score);
  return official == score_cell(score.value, score.metric) ? "" : " (" + official + ")";
}

/// `intervals`: the interval follows the value.
std::string several_runs_cell(const Score* score, bool intervals) {
  if (score == nullptr) return "-";
  const auto interval = intervals ? interval_cell(*score) : "";
  return score_cell(score->value, score->metric) + in_brackets(*score) + (interval.empty() ? "" : " ") + interval;
}

Table table_of_run(const CheckpointResults& answers, SuiteDetail detail) {
  Table table{.title = concat("Suites evaluated on ", answers.run),
              .header = columns_of_numbers({"suite", "metric", "value", "95 % interval", "official", "ties", "items"})};
  for (const auto& key : keys_of({&answers, 1}, detail)) {
    auto& row = table.rows.emplace_back(std::vector{group_words(key), metric_words(key.metric)});
    std::ranges::move(single_run_cells(*find(answers, key)), std::back_inserter(row));
  }
  drop_empty_columns(table);
  return table;
}

/// `intervals`: each cell has the interval after the value.
Table table_of_several(std::span<const CheckpointResults> answers, SuiteDetail detail, bool intervals) {
  Table table{.title = "Suites", .header = columns_of_numbers({"suite", "metric"})};
  for (const auto& name : short_names(answers)) table.header.emplace_back(name, ColumnKind::number);
  bool has_interval = false;
  for (const auto& key : keys_of(answers, detail)) {
    auto& row = table.rows.emplace_back(std::vector{group_words(key), metric_words(key.metric)});
    for (const auto& one : answers) {
      const auto* score = find(one, key);
      row.push_back(several_runs_cell(score, intervals));
      has_interval = has_interval || (intervals && score != nullptr && score->interval);
    }
  }
  if (has_interval) table.title += ", with 95 % intervals";
  return table;
}

/// `intervals`: cells have them after their values.
Table checkpoint_table(std::span<const CheckpointResults> answers, SuiteDetail detail, bool intervals) {
  Table table{.title = concat("Suites evaluated on the checkpoints of ", answers.empty() ? "" : answers[0].run),
              .header = columns_of_numbers({"step", "words", "revision"})};
  const auto keys = keys_of(answers, detail);
  for (const auto& key : keys) {
    const auto group = key.level == SuiteLevel::suite ? "" : " " + key.group;
    table.header.emplace_back(concat(key.suite, group, " ", metric_words(key.metric)), ColumnKind::number);
  }
  for (const auto& one : answers) {
    std::string revisions;
    for (const auto& name : one.revisions) revisions += (revisions.empty() ? "" : ", ") + name;
    auto& row =
        table.rows.emplace_back(std::vector{thousands(static_cast<uint64_t>(one.step)),
                                            one.words ? thousands(static_cast<uint64_t>(*one.words)) : "", revisions});
    for (const auto& key : keys) row.push_back(several_runs_cell(find(one, key), intervals));
  }
  drop_empty_columns(table);
  if (width_of(table) <= 80) return table;
  const auto turned = transposed(table);
  return width_of(turned) < width_of(table) ? turned : table;
}

/// Adds what is known of a checkpoint besides its step.
void add_progress(json& object, const CheckpointResults& answers) {
  if (answers.words) object["words"] = *answers.words;
  if (!answers.revisions.empty()) object["revisions"] = answers.revisions;
}

/// What is said of the answers of runs to suites; without suites: of the runs.
struct Note {
  std::vector<std::string> suites{};
  std::string text{};
  std::vector<std::string> runs{};
};

/// Adds a run to the note that says the same of the same suites.
void add_run(std::vector<Note>& notes, const Note& note, const std::string& run) {
  const auto is_same = [&](const Note& one) { return one.text == note.text && one.suites == note.suites; };
  auto at = std::find_if(notes.begin(), notes.end(), is_same);
  if (at == notes.end()) at = notes.insert(at, note);
  if (!contains(at->runs, run)) at->runs.push_back(run);
}

/// The notes with those that say the same of several suites as one.
std::vector<Note> with_suites_together(const std::vector<Note>& notes) {
  std::vector<Note> together;
  for (const auto& note : notes) {
    const auto is_same = [&](const Note& one) { return one.text == note.text && one.runs == note.runs; };
    const auto at = std::find_if(together.begin(), together.end(), is_same);
    if (at == together.end())
      together.push_back(note);
    else
      at->suites.insert(at->suites.end(), note.suites.begin(), note.suites.end());
  }
  return together;
}

}  // namespace

std::vector<std::string> short_names(std::span<const CheckpointResults> answers) {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> paths;
  for (const auto& one : answers) {
    names.push_back(one.run);
    paths.push_back(parts_of(one.run));
  }
  const auto all = [&](const auto& is) { return std::all_of(paths.begin(), paths.end(), is); };
  if (all([&](const auto& path) { return path == paths[0]; })) return names;
  const auto is_long = [](const auto& path) { return path.size() > 1; };
  while (all(is_long) && all([&](const auto& path) { return path.front() == paths[0].front(); }))
    for (auto& path : paths) path.erase(path.begin());
  while (all(is_long) && all([&](const auto& path) { return path.back() == paths[0].back(); }))
    for (auto& path : paths) path.pop_back();
  for (size_t i = 0; i < paths.size(); ++i) {
    names[i].clear();
    for (const auto& part : paths[i]) names[i] += (names[i].empty() || names[i] == "/" ? "" : "/") + part;
  }
  return names;
}

Table table_of_runs(std::span<const CheckpointResults> answers, SuiteDetail detail, size_t columns) {
  if (answers.size() == 1) return table_of_run(answers[0], detail);
  const auto table = table_of_several(answers, detail, /*intervals=*/true);
  return width_of(table) <= columns ? table : table_of_several(answers, detail, /*intervals=*/false);
}

Table table_of_checkpoints(std::span<const CheckpointResults> answers, SuiteDetail detail, size_t columns) {
  const auto table = checkpoint_table(answers, detail, /*intervals=*/true);
  return width_of(table) <= columns ? table : checkpoint_table(answers, detail, /*intervals=*/false);
}

std::string note_of_brackets(std::span<const CheckpointResults> answers, SuiteDetail detail) {
  for (const auto& key : keys_of(answers, detail))
    for (const auto& one : answers)
      if (const auto* score = find(one, key); score != nullptr && !in_brackets(*score).empty())
        return "a number in round brackets is the official one, by the rules of the suite's published program, where "
               "it differs";
  return "";
}

std::vector<std::string> notes_of(std::span<const CheckpointResults> answers) {
  const auto names = short_names(answers);
  std::vector<Note> of_suites;
  for (size_t i = 0; i < answers.size(); ++i) {
    for (const auto& result : answers[i].results) {
      add_run(of_suites, {.suites = {result.suite}, .text = "scored by " + result.scored_by}, names[i]);
      for (const auto& note : result.notes) add_run(of_suites, {.suites = {result.suite}, .text = note}, names[i]);
    }
    for (const auto& reason : answers[i].skipped) add_run(of_suites, {.text = reason}, names[i]);
  }
  std::vector<std::string> notes;
  for (const auto& note : with_suites_together(of_suites)) {
    const auto suites = note.suites.empty() ? "" : listed(note.suites) + ": ";
    notes.push_back((answers.size() > 1 ? listed(note.runs) + ": " : "") + suites + note.text);
  }
  return notes;
}

json to_json(const Score& score) {
  auto document = score_json(score);
  document.update({{"level", name_of(score.level)}, {"metric", score.metric}});
  if (!score.group.empty()) document["group"] = score.group;
  if (score.official) document["official"] = *score.official;
  return document;
}

json to_json(const CheckpointResults& answers) {
  json suites = json::array();
  for (const auto& result : answers.results) {
    json scores = json::array();
    for (const auto& score : result.scores) scores.push_back(to_json(score));
    suites.push_back(
        {{"suite", result.suite}, {"scored_by", result.scored_by}, {"figures", scores}, {"notes", result.notes}});
  }
  json document{{"run", answers.run},
                {"checkpoint", answers.checkpoint},
                {"step", answers.step},
                {"suites", suites},
                {"unanswered", answers.skipped}};
  add_progress(document, answers);
  return document;
}

std::string results_lines(std::span<const CheckpointResults> answers) {
  std::string lines;
  for (const auto& one : answers)
    for (const auto& result : one.results)
      for (const auto& score : result.scores) {
        auto line = to_json(score);
        line["run"] = one.run;
        line["checkpoint"] = one.checkpoint;
        line["step"] = one.step;
        add_progress(line, one);
        line["suite"] = result.suite;
        line["scored_by"] = result.scored_by;
        lines += json_text(line) + "\n";
      }
  return lines;
}

std::string prediction_lines(const CheckpointResults& answers, const SuiteResult& result) {
  return result.items.lines({{"run", answers.run}, {"step", answers.step}, {"suite", result.suite}});
}

SuitePredictions::SuitePredictions(std::initializer_list<nlohmann::json> items) {
  for (const auto& item : items) push_back(item);
}

void SuitePredictions::push_back(const nlohmann::json& item) { lines_.push_back(json_text(item)); }

std::string SuitePredictions::lines(const nlohmann::json& identity) const {
  const auto first = json_text(identity);
  std::string all;
  for (const auto& line : lines_) {
    all.append(first, 0, first.size() - 1);  // without its brace
    all += ',';
    all.append(line, 1);
    all += '\n';
  }
  return all;
}

namespace {

using nlohmann::json;

/// What two runs made of one item.
struct ItemPair {
  std::string cluster;
  double first = 0, second = 0;
};

std::vector<ItemPair> pairs_of(const ProportionItems& first, const ProportionItems& second) {
  std::unordered_map<std::string, double> credits;
  for (const auto& item : second.items) credits.emplace(item.item, item.credit);
  std::vector<ItemPair> pairs;
  for (const auto& item : first.items)
    if (const auto other = credits.find(item.item); other != credits.end())
      pairs.push_back({.cluster = item.cluster, .first = item.credit, .second = other->second});
  return pairs;
}

struct ClusteredSum {
  double sum = 0, weight = 0;
};

/// The difference and its interval; an item of a mean over clusters weighs the less, the more items its cluster has.
void add_difference(const std::vector<ItemPair>& pairs, bool is_of_clusters, SuiteComparison& compared) {
  std::map<std::string, double> sizes;
  for (const auto& pair : pairs) ++sizes[pair.cluster];
  std::map<std::string, ClusteredSum> clusters;
  std::vector<double> sums, weights, cluster_sums, cluster_weights;
  for (const auto& pair : pairs) {
    const double weight = is_of_clusters ? 1 / sizes[pair.cluster] : 1;
    weights.push_back(weight);
    sums.push_back(weight * (pair.first - pair.second));
    clusters[pair.cluster].sum += sums.back();
    clusters[pair.cluster].weight += weight;
  }
  for (const auto& [name, cluster] : clusters) {
    cluster_sums.push_back(cluster.sum);
    cluster_weights.push_back(cluster.weight);
  }
  const auto of_items = clustered_mean(sums, weights), of_clusters = clustered_mean(cluster_sums, cluster_weights);
  compared.difference = of_clusters.value;
  if (!of_items.interval) return;
  const auto bounds = of_clusters.interval.value_or(*of_items.interval);
  const auto widest =
      difference_bounds({std::min(bounds.low, of_items.interval->low), std::max(bounds.high, of_items.interval->high)},
                        std::ssize(pairs));
  compared.interval = Bounds{std::max(-1.0, widest.low), std::min(1.0, widest.high)};
}

const Score* proportion_score(const SuiteResult& result) {
  const auto is_proportion = [&](const Score& score) {
    return score.level == SuiteLevel::suite && score.metric == result.proportions.front().metric;
  };
  const auto at = std::ranges::find_if(result.scores, is_proportion);
  return at == result.scores.end() ? nullptr : &*at;
}

std::optional<SuiteComparison> compare_results(const SuiteResult& first, const SuiteResult& second) {
  if (first.proportions.empty() || second.proportions.empty()) return std::nullopt;
  const auto &proportion = first.proportions.front(), &other_proportion = second.proportions.front();
  if (proportion.metric != other_proportion.metric) return std::nullopt;
  const auto *score = proportion_score(first), *other = proportion_score(second);
  const auto pairs = pairs_of(proportion, other_proportion);
  if (score == nullptr || other == nullptr || pairs.empty()) return std::nullopt;
  SuiteComparison compared{.suite = first.suite, .metric = score->metric, .first = *score, .second = *other};
  compared.items = static_cast<int64_t>(pairs.size());
  add_difference(pairs, proportion.is_of_clusters, compared);
  for (const auto& pair : pairs) {
    compared.only_first += pair.first == 1 && pair.second < 1;
    compared.only_second += pair.second == 1 && pair.first < 1;
  }
  compared.mcnemar = mcnemar_p(compared.only_first, compared.only_second);
  return compared;
}

std::string points(double difference) { return fixed(100 * difference, 2, /*sign=*/true); }

json value_json(const Score& score) {
  json value{{"value", score.value}, {"low", nullptr}, {"high", nullptr}};
  if (score.interval) value.update({{"low", score.interval->low}, {"high", score.interval->high}});
  return value;
}

}  // namespace

std::vector<SuiteComparison> compare_runs(const CheckpointResults& first, const CheckpointResults& second) {
  std::vector<SuiteComparison> all;
  std::vector<double> p;
  for (const auto& result : first.results) {
    const auto other = std::ranges::find(second.results, result.suite, &SuiteResult::suite);
    if (other == second.results.end()) continue;
    if (const auto compared = compare_results(result, *other)) {
      all.push_back(*compared);
      p.push_back(compared->mcnemar);
    }
  }
  const auto corrected = holm(p);
  for (size_t i = 0; i < all.size(); ++i) all[i].holm = corrected[i];
  return all;
}

Table table_of(std::span<const SuiteComparison> compared, const std::string& first, const std::string& second) {
  // On a narrow terminal the values go, which the table of runs has too.
  const auto number = [](const std::string& name, int rank) { return TableColumn(name, ColumnKind::number, rank); };
  Table table{
      .title = concat(first, " less ", second),
      .header = {"suite", number(first, 2), number(second, 2), number("difference", 0), number("95 % interval", 0),
                 number("only first right", 1), number("only second", 1), number("McNemar's p", 0)}};
  if (compared.size() > 1) table.header.push_back(number("Holm", 0));
  for (const auto& one : compared) {
    auto& row = table.rows.emplace_back(
        std::vector{concat(one.suite, " ", metric_words(one.metric)), value_cell(one.first), value_cell(one.second),
                    points(one.difference),
                    one.interval ? concat("[", points(one.interval->low), ", ", points(one.interval->high), "]") : "",
                    thousands(static_cast<uint64_t>(one.only_first)), thousands(static_cast<uint64_t>(one.only_second)),
                    digits(one.mcnemar, 2)});
    if (compared.size() > 1) row.push_back(digits(one.holm, 2));
  }
  return table;
}

json to_json(const SuiteComparison& compared) {
  json document{{"suite", compared.suite},
                {"metric", compared.metric},
                {"first", value_json(compared.first)},
                {"second", value_json(compared.second)},
                {"difference", compared.difference},
                {"low", nullptr},
                {"high", nullptr},
                {"items", compared.items},
                {"only_first", compared.only_first},
                {"only_second", compared.only_second},
                {"mcnemar", compared.mcnemar},
                {"mcnemar_holm", compared.holm}};
  if (compared.interval) {
    document["low"] = compared.interval->low;
    document["high"] = compared.interval->high;
  }
  return document;
}

}  // namespace cloze
