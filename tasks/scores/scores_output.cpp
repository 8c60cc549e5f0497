#include "tasks/scores/scores_output.h"

#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/text.h"

namespace cloze {

namespace {

using nlohmann::ordered_json;

constexpr size_t most_shown = 12;

ordered_json or_null(double value) { return std::isnan(value) ? ordered_json() : ordered_json(value); }

/// Adds the ends of the interval, null for none.
void add_interval(ordered_json& to, const Score& score) {
  to["low"] = score.interval ? ordered_json(score.interval->low) : ordered_json();
  to["high"] = score.interval ? ordered_json(score.interval->high) : ordered_json();
}

std::string number_cell(double value) { return std::isnan(value) ? "-" : fixed(value, 4); }

std::string range_cell(const std::optional<Bounds>& interval) {
  return interval ? number_cell(interval->low) + " to " + number_cell(interval->high) : "-";
}

Table score_table(const std::string& task, const std::vector<Score>& scores) {
  Table table{.title = task, .header = columns_of_numbers({"metric", "value", "95 % interval", "n"})};
  if (!scores.empty())
    for (const auto& [name, value] : scores.front().floors) table.header.emplace_back(name, ColumnKind::number);
  for (const auto& score : scores) {
    std::vector<std::string> row{score.metric,
                                 score.is_defined() ? number_cell(score.value) : "undefined: " + score.reason,
                                 range_cell(score.interval), std::to_string(score.count)};
    for (const auto& [name, value] : score.floors) row.push_back(number_cell(value));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table signature_table(const TaskScores& scores) {
  Table table{.title = "Signatures of sacrebleu", .header = {"metric", "signature"}};
  for (const auto& [metric, signature] : scores.signatures) table.rows.push_back({metric, signature});
  return table;
}

Table label_table(const std::vector<LabelMetrics>& labels) {
  Table table{.title = "By label",
              .header = columns_of_numbers({"label", "precision", "recall", "F1", "gold", "predicted"})};
  for (const auto& label : labels)
    table.rows.push_back({label.label, number_cell(label.precision), number_cell(label.recall), number_cell(label.f1),
                          std::to_string(label.gold), std::to_string(label.predicted)});
  return table;
}

Table confusion_table(const Confusion& confusion) {
  Table table{.title = "Confusion: a row for each gold label, a column for each prediction",
              .header = columns_of_numbers({"gold"})};
  for (const auto& label : confusion.labels) table.header.emplace_back(label, ColumnKind::number);
  for (size_t gold = 0; gold < confusion.labels.size(); ++gold) {
    std::vector<std::string> row{confusion.labels[gold]};
    for (const auto count : confusion.counts[gold]) row.push_back(std::to_string(count));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string svg_label(const std::string& label) {
  return escaped_html(width_of(label) > 20 ? cut(label, 19) + "…" : label);
}

}  // namespace

nlohmann::ordered_json to_json(const std::string& task, const TaskScores& scores) {
  ordered_json document{{"task", task}, {"metrics", ordered_json::array()}};
  for (const auto& score : scores.scores) {
    ordered_json one{{"metric", score.metric}, {"value", or_null(score.value)}};
    add_interval(one, score);
    one["count"] = score.count;
    if (!score.is_defined()) one["reason"] = score.reason;
    for (const auto& [name, value] : score.floors) one["floors"][name] = or_null(value);
    document["metrics"].push_back(std::move(one));
  }
  for (const auto& [metric, signature] : scores.signatures) document["signatures"][metric] = signature;
  document["per_label"] = ordered_json::array();
  for (const auto& label : scores.per_label)
    document["per_label"].push_back({{"label", label.label},
                                     {"precision", label.precision},
                                     {"recall", label.recall},
                                     {"f1", label.f1},
                                     {"gold", label.gold},
                                     {"predicted", label.predicted},
                                     {"right", label.right}});
  document["confusion"] = nullptr;
  if (const auto& confusion = scores.confusion)
    document["confusion"] = {{"labels", confusion->labels}, {"counts", confusion->counts}};
  return document;
}

nlohmann::ordered_json to_json(const PairedScores& compared) {
  ordered_json document{{"figures", ordered_json::array()},
                        {"only_first", compared.only_first},
                        {"only_second", compared.only_second},
                        {"mcnemar", compared.mcnemar ? ordered_json(*compared.mcnemar) : ordered_json()}};
  for (const auto& score : compared.scores) {
    ordered_json one{{"metric", score.metric}, {"difference", or_null(score.value)}};
    add_interval(one, score);
    document["figures"].push_back(std::move(one));
  }
  return document;
}

std::vector<Table> tables_of(const std::string& task, const TaskScores& scores) {
  std::vector<Table> tables{score_table(task, scores.scores)};
  if (!scores.signatures.empty()) tables.push_back(signature_table(scores));
  if (!scores.per_label.empty()) tables.push_back(label_table(scores.per_label));
  if (scores.confusion && scores.confusion->labels.size() <= most_shown)
    tables.push_back(confusion_table(*scores.confusion));
  return tables;
}

Table table_of(const PairedScores& compared) {
  Table table{.title = "First less second", .header = columns_of_numbers({"metric", "difference", "95 % interval"})};
  for (const auto& score : compared.scores)
    table.rows.push_back({score.metric, number_cell(score.value), range_cell(score.interval)});
  if (compared.mcnemar)
    table.title += concat(": right alone ", compared.only_first, " and ", compared.only_second,
                          " items, McNemar's exact p = ", digits(*compared.mcnemar, 3));
  return table;
}

std::string confusion_svg(const std::string& title, const Confusion& confusion) {
  const auto count = confusion.labels.size();
  const size_t side = count <= 12 ? 44 : count <= 40 ? 20 : 10, left = 170, top = 60;
  const bool has_numbers = side == 44;
  const auto width = left + count * side + 20, height = top + count * side + 160;
  std::string svg =
      concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"", width,
             "\" height=\"", height, "\">\n<style>svg { font: 12px system-ui, sans-serif; background: ",
             "#fff; } text { fill: #1c1f23; } .light { fill: #fff; }</style>\n<text x=\"10\" y=\"24\">",
             escaped_html(title), "</text>\n<text x=\"10\" y=\"44\">rows: gold, columns: predicted</text>\n");
  for (size_t gold = 0; gold < count; ++gold) {
    const auto& row = confusion.counts[gold];
    const auto total = std::accumulate(row.begin(), row.end(), int64_t{0});
    const auto y = top + gold * side;
    svg += concat("<text x=\"", left - 8, "\" y=\"", y + side / 2 + 4, "\" text-anchor=\"end\">",
                  svg_label(confusion.labels[gold]), "</text>\n<text transform=\"translate(",
                  left + gold * side + side / 2 + 4, " ", top + count * side + 8,
                  ") rotate(-60)\" text-anchor=\"end\">", svg_label(confusion.labels[gold]), "</text>\n");
    for (size_t predicted = 0; predicted < count; ++predicted) {
      const double fraction = total == 0 ? 0 : static_cast<double>(row[predicted]) / static_cast<double>(total);
      const auto x = left + predicted * side;
      svg += concat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", side - 1, "\" height=\"", side - 1,
                    "\" fill=\"#0072b2\" fill-opacity=\"", digits(0.04 + 0.96 * fraction, 3), "\"><title>",
                    row[predicted], "</title></rect>\n");
      if (has_numbers)
        svg += concat("<text x=\"", x + side / 2, "\" y=\"", y + side / 2 + 4, "\" text-anchor=\"middle\"",
                      fraction > 0.5 ? " class=\"light\"" : "", ">", row[predicted], "</text>\n");
    }
  }
  return svg + "</svg>\n";
}

}  // namespace cloze
