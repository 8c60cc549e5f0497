#include "cli/paths.h"
#include "cli/report_output.h"
#include "cli/verbs.h"
#include "study/report/report.h"

namespace cloze {

void add_report(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("report", "compare runs made by hand, as a table or a page");
  auto question = std::make_shared<RunsQuestion>();
  auto options = std::make_shared<ReportOptions>();
  verb->add_option("run", question->folders, "run directories")->required();
  verb->add_option(
      "--metric", question->metric,
      "held-out loss to compare by, of fine-tuned runs a figure of their task (default: the first that all runs "
      "have, and the figure that chose their best steps)");
  verb->add_option(
      "--baseline", question->baseline,
      "arm that the others are compared with: its name, or one of its runs (default: that of the first run)");
  add_choice<LossUnit>(*verb, "--unit", question->unit,
                       "unit of the loss; bits_per_byte for runs with different tokenizers");
  verb->add_option("--better-by", question->better_by,
                   "smallest difference that matters, in the unit, for verdicts of being tied")
      ->check(CLI::NonNegativeNumber);
  add_report_options(*verb, *options, "--out,--output");
  verb->footer(
      "Examples:\n  cloze report runs/a-1 runs/a-2 runs/b-1 runs/b-2\n"
      "  cloze report runs/* --metric mlm --out report.html\n\n"
      "Runs whose configs are equal but for the seed are an arm; arms are compared by\n"
      "pairs of one seed.");
  verb->callback([=] {
    for (const auto& folder : question->folders) check_whole_run_path(folder, RunCount::several);
    put_report(report_of_runs(*question), *options, "report.html");
  });
}

}  // namespace cloze
