#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/paths.h"
#include "cli/report_output.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/json.h"
#include "core/print.h"
#include "study/report/fit_report.h"

namespace cloze {

namespace {

struct FitArguments {
  std::vector<std::string> inputs{}, predict{};
  std::string folder{}, format = "text", plot{};
  SizeCount parameters = SizeCount::all;
  PointColumns columns{};
  FitQuestion question{};
  bool json = false;
};

std::vector<ScalingPoint> points_of(FitArguments& a) {
  const auto& first = a.inputs.front();
  check_points_path(first);
  const auto kind = std::filesystem::path(first).extension().string();
  const auto count = a.parameters;
  const bool is_study = kind == ".yaml" || kind == ".yml", is_folder = std::filesystem::is_directory(first);
  if (is_folder || is_study)
    a.question.counted = count == SizeCount::all ? "N counts all parameters, D the tokens read"
                                                 : "N counts all parameters but the tables of embeddings, D the tokens "
                                                   "read";
  if (is_folder) {
    for (const auto& run : a.inputs) check_whole_run_path(run, RunCount::several);
    return points_of_runs(a.inputs, count);
  }
  require<ConfigError>(a.inputs.size() == 1, "a fit takes one study, one CSV file, or run directories; '", a.inputs[1],
                       "' is one too many");
  if (is_study) return points_of_study(first, a.folder, count);
  if (!a.columns.flops.empty()) a.question.counted = concat("D is ", a.columns.flops, " / 6 N");
  return read_points(first, a.columns);
}

/// `70e9,1.4e12`
std::pair<double, double> size_and_tokens(const std::string& text) {
  char* end = nullptr;
  const double size = std::strtod(text.c_str(), &end);
  const bool comma = *end == ',';
  const double tokens = comma ? std::strtod(end + 1, &end) : 0;
  require<ConfigError>(comma && *end == 0 && size > 0 && tokens > 0, "--predict ", text,
                       " is not a size and its tokens; write them as 70e9,1.4e12");
  return {size, tokens};
}

void add_columns(CLI::App& verb, PointColumns& columns) {
  constexpr const char* group = "Columns of a CSV file";
  verb.add_option("--size", columns.size, "column of the parameters")->capture_default_str()->group(group);
  auto* tokens = verb.add_option("--tokens", columns.tokens, "column of the training tokens");
  tokens->capture_default_str()->group(group);
  verb.add_option("--flops", columns.flops, "column of the training FLOPs, 6 N D, instead of tokens")
      ->excludes(tokens)
      ->group(group);
  verb.add_option("--loss", columns.loss, "column of the held-out loss")->capture_default_str()->group(group);
}

void add_runs(CLI::App& verb, FitArguments& a) {
  constexpr const char* group = "Runs and studies";
  add_choice<SizeCount>(verb, "--parameters", a.parameters, "parameters that are counted")->group(group);
  verb.add_option("--out", a.folder, "folder of the study (default: studies/NAME)")->group(group);
}

void add_questions(CLI::App& verb, FitArguments& a) {
  constexpr const char* group = "Questions";
  verb.add_option(
          "--budget", a.question.budgets,
          "FLOPs whose best size and tokens are printed (repeatable; default: the largest point's, and 10 times "
          "as many)")
      ->allow_extra_args(false)
      ->check(CLI::PositiveNumber)
      ->group(group);
  verb.add_option("--predict", a.predict, "PARAMETERS,TOKENS whose loss is predicted (repeatable)")
      ->allow_extra_args(false)
      ->group(group);
}

void add_method(CLI::App& verb, FitQuestion& question) {
  constexpr const char* group = "Method";
  auto& options = question.options;
  verb.add_option("--huber-delta", options.huber_delta,
                  "residual of log L from which on it counts by its absolute value")
      ->check(CLI::Range(1e-9, 1.0))
      ->capture_default_str()
      ->group(group);
  verb.add_option("--resamples", options.resamples, "draws of the bootstrap; 0: no intervals")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str()
      ->group(group);
  verb.add_option("--seed", options.seed, "seed of the bootstrap")->capture_default_str()->group(group);
  verb.add_option("--confidence", options.confidence, "level of the intervals")
      ->check(CLI::Range(0.5, 0.9999))
      ->capture_default_str()
      ->group(group);
}

void add_output(CLI::App& verb, FitArguments& a) {
  constexpr const char* group = "Output";
  verb.add_option("--plot", a.plot, "write a page with IsoFLOP curves to this HTML file")->group(group);
  verb.add_option("--format", a.format, "format of the output")
      ->check(CLI::IsMember({"text", "csv"}))
      ->capture_default_str()
      ->group(group);
  verb.add_flag("--json", a.json, json_help)->group(group);
}

void fit(FitArguments& a) {
  if (!a.plot.empty()) check_output_file("--plot", a.plot, a.inputs);
  for (const auto& text : a.predict) a.question.sizes.push_back(size_and_tokens(text));
  const auto points = points_of(a);
  const auto report = make_fit_report(points, a.question);
  if (a.json)
    print_data(json_text(to_json(report)) + "\n");
  else if (a.format == "csv")
    print_data(to_csv(report));
  else
    print_text(to_text(report, terminal_columns()));
  if (!a.plot.empty()) write_atomic(a.plot, to_page(report));
}

}  // namespace

void add_fit(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("fit", "fit a scaling law to runs, a study or a table");
  auto a = std::make_shared<FitArguments>();
  verb->add_option("input", a->inputs, "run directories, a study file, or a CSV file")->required();
  add_columns(*verb, a->columns);
  add_runs(*verb, *a);
  add_questions(*verb, *a);
  add_method(*verb, a->question);
  add_output(*verb, *a);
  verb->footer(
      "Examples:\n  cloze fit scaling.yaml --budget 1e18\n"
      "  cloze fit points.csv --size params --flops flops --loss loss --plot fit.html");
  verb->callback([a] { fit(*a); });
}

}  // namespace cloze
