#include "study/report/fit_report.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "data/reading/line_reader.h"
#include "data/reading/table_reader.h"
#include "data/reading/text_lines.h"
#include "run/config/load_config.h"
#include "study/execution/runs.h"
#include "study/search/stages.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t most_file_bytes = uint64_t{64} << 20;

/// The index of a column. `option` names it on the command line.
size_t column_of(const std::string& path, const std::vector<std::string>& head, const std::string& name,
                 const char* option) {
  const auto found = std::find(head.begin(), head.end(), name);
  const auto near = did_you_mean(name, head);
  require<DataError>(found != head.end(), path, ": has no column '", name, "'", near, near.empty() ? "; " : " ",
                     "its columns are ", listed(head), "; name one with ", option);
  return static_cast<size_t>(found - head.begin());
}

/// Refuses a text, whose first line names none of the columns of a table.
void check_is_table(const std::string& path, const std::vector<std::string>& head,
                    const std::vector<std::string>& wanted) {
  const auto has_column = [&](const auto& name) { return contains(head, name); };
  require<DataError>(fs::path(path).extension() == ".csv" || std::any_of(wanted.begin(), wanted.end(), has_column),
                     path, ": is not a table of runs, whose first line would name the columns ", listed(wanted),
                     "; give a CSV file, a study or runs that are finished");
}

double positive_cell(const std::string& where, const std::string& column, const std::string& cell) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  require<DataError>(!cell.empty() && *end == 0 && std::isfinite(value), where, ": ", column, " is '", cell,
                     "', which is not a number");
  require<DataError>(value > 0, where, ": ", column, " is ", cell, "; it must be above 0");
  return value;
}

/// Elements of a tensor, from its entry in the header of a weight file.
double elements_of(const json& tensor, const std::string& path, const std::string& run) {
  const auto shape = tensor.is_object() ? tensor.value("shape", json()) : json();
  const auto is_size = [](const json& axis) { return axis.is_number_unsigned(); };
  require<DataError>(shape.is_array() && std::all_of(shape.begin(), shape.end(), is_size), path,
                     ": is damaged; `cloze verify run ", run, "` says more");
  double size = 1;
  for (const auto& axis : shape) size *= axis.get<double>();
  return size;
}

/// Parameters of a checkpoint, from the header of its weights: 8 bytes with the length of a JSON text, and that text.
/// Read here, since studies are made without LibTorch, which SafeTensors needs.
double parameters_of(const std::string& run, SizeCount count) {
  const auto path = run + "/" +
                    std::string(without_white_space_around(read_text(run + "/latest", 4096).substr(0, 13))) +
                    "/weights.safetensors";
  std::ifstream in;
  std::error_code unknown;
  if (fs::is_regular_file(path, unknown)) in.open(path, std::ios::binary);
  uint64_t length = 0;
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  require<DataError>(in && length < most_file_bytes, path,
                     ": cannot be read; the size of a run is counted from its weights");
  std::string header(length, ' ');
  in.read(header.data(), static_cast<std::streamsize>(length));
  const auto tensors = parse_json(header);
  require<DataError>(in && tensors.is_object(), path, ": is damaged; `cloze verify run ", run, "` says more");
  double total = 0;
  for (const auto& [name, tensor] : tensors.items()) {
    const bool is_table = name.find(".embeddings.") != std::string::npos && name.find(".norm.") == std::string::npos;
    if (name == "__metadata__" || (is_table && count == SizeCount::non_embedding)) continue;
    total += elements_of(tensor, path, run);
  }
  return total;
}

/// The evaluations at the ends of the decays of wsd_s, all but the last: each after the step in which a budget ended.
std::vector<CurvePoint> ends_of_decays(const ScheduleConfig& schedule, const std::vector<CurvePoint>& curve) {
  std::vector<CurvePoint> ends;
  const auto* repeated = part_in<WsdSSchedule>(schedule.shape);
  if (!repeated) return ends;
  for (int64_t k = repeated->decays - 1; k >= 1; --k) {
    const double budget = std::pow(0.5, static_cast<double>(k));
    const auto end = std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& point) {
      const double steps_beyond = point.step * (point.fraction - budget) / point.fraction;
      return steps_beyond > -1e-6 && steps_beyond < 1 - 1e-6;
    });
    if (end != curve.end()) ends.push_back(*end);
  }
  return ends;
}

/// Adds the points of a run: at the end of each decay, and its last one.
void add_points(std::vector<ScalingPoint>& points, const std::vector<CurvePoint>& earlier, const ScalingPoint& last) {
  for (const auto& end : earlier) {
    const auto tokens = end.tokens;
    const auto name = concat(last.name, " at ", with_prefix(tokens), " tokens");
    points.push_back({last.size, tokens, end.loss, name, last.changed, last.name});
  }
  points.push_back(last);
  points.back().run = last.name;
}

json fields_of(const std::string& path) {
  require<DataError>(fs::exists(path), path, ": is missing; give runs that are finished");
  const auto fields = parse_json(read_text(path, most_file_bytes));
  require<DataError>(fields.is_object(), path, ": is damaged");
  return fields;
}

}  // namespace

std::vector<ScalingPoint> read_points(const std::string& path, const PointColumns& columns) {
  LineReader lines(path, LoneReturn::ends_if_no_feeds, most_file_bytes);
  TableRows rows(path, {.separator = ','});
  const auto next = [&] {
    std::vector<std::string> cells;
    for (std::string_view line; cells.empty() && lines.next(line);)
      if ((rows.is_open() || !is_blank(line)) && rows.add(line, lines.number))
        for (const auto cell : rows.cells()) cells.emplace_back(without_white_space_around(cell));
    rows.end();
    return cells;
  };
  const auto head = next();
  require<DataError>(!head.empty(), path, ": is empty; its first line names the columns");
  const bool by_flops = !columns.flops.empty();
  const auto& amount = by_flops ? columns.flops : columns.tokens;
  check_is_table(path, head, {columns.size, amount, columns.loss});
  const auto size = column_of(path, head, columns.size, "--size"),
             second = column_of(path, head, amount, by_flops ? "--flops" : "--tokens or --flops"),
             loss = column_of(path, head, columns.loss, "--loss");
  std::vector<ScalingPoint> points;
  for (auto cells = next(); !cells.empty(); cells = next()) {
    require<DataError>(cells.size() == head.size(), rows.where(), ": has ", cells.size(), " cells, the first line has ",
                       head.size());
    auto& point = points.emplace_back(ScalingPoint{.name = rows.where()});
    point.size = positive_cell(point.name, columns.size, cells[size]);
    point.tokens = positive_cell(point.name, amount, cells[second]) / (by_flops ? 6 * point.size : 1);
    point.loss = positive_cell(point.name, columns.loss, cells[loss]);
  }
  return points;
}

std::vector<ScalingPoint> points_of_runs(const std::vector<std::string>& runs, SizeCount count) {
  std::vector<ScalingPoint> points;
  std::string measured;
  for (const auto& run : runs) {
    const auto summary = fields_of(run + "/summary.json"), held_out = fields_of(run + "/held_out.json");
    const auto field = held_out.value("measured", json());
    require<DataError>(field.is_string(), run, "/held_out.json: is damaged; resume the run, which writes it again");
    const auto how = field.get<std::string>();
    require<DataError>(points.empty() || how == measured, run, " and ", runs[0],
                       ": were scored differently, so that their losses cannot be compared: by ", how, ", and by ",
                       measured, "; give all runs the same tokens and the same `evaluation`");
    measured = how;
    const auto loss = summary.value("held_out_loss", json()), tokens = summary.value("tokens", json());
    require<DataError>(loss.is_number() && loss.get<double>() > 0 && tokens.is_number() && tokens.get<double>() > 0,
                       run, "/summary.json: has no held-out loss; give runs that are finished");
    const auto config = decode<RunConfig>(load_run_config(run + "/run.yaml"));
    const auto earlier =
        ends_of_decays(config.schedule, read_curve(run, LossMetric{.name = ""}, config.evaluation.points));
    add_points(points, earlier, {parameters_of(run, count), tokens, loss, run, read_provenance(run).changed});
  }
  return points;
}

std::vector<ScalingPoint> points_of_study(const std::string& file, const std::string& folder, SizeCount count) {
  const auto plan = make_stages(file, folder).compared();
  require<ConfigError>(
      std::holds_alternative<LossMetric>(plan.metric), file, ": is decided by ", metric_name(plan),
      ", and the law is one of held-out losses; give the runs of a study with `metric: {objective: ...}`");
  require<ConfigError>(plan.study.probe_head.share == 0, file,
                       ": has a 'probe_head', and the loss of a new head on a network that stays as it is does not "
                       "follow the law of trained networks; fit runs that were scored by their own heads");
  std::vector<ScalingPoint> points;
  for (const auto& run : plan.runs) {
    const auto result = finished_result(plan, run);
    if (!result) continue;
    add_points(points, ends_of_decays(run.config.schedule, read_curve(plan, run)),
               {.size = parameters_of(result->folder, count),
                .tokens = result->tokens,
                .loss = result->value,
                .name = run.name(),
                .changed = read_provenance(result->folder).changed});
  }
  require<DataError>(!points.empty(), plan.folder, ": has no finished runs; train them with `cloze study run ", file,
                     "`");
  return points;
}

}  // namespace cloze
