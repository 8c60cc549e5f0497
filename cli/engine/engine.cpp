#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "evaluation/babylm/evaluate.h"
#include "cli/command.h"
#include "cli/engine/parts.h"
#include "cli/engine/together.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/kernels/cpu.h"
#include "core/log.h"
#include "train/inspection/benchmark.h"
#include "train/inspection/describe.h"
#include "train/inspection/scaling.h"
#include "core/text.h"
#include "evaluation/run_losses.h"
#include "inference/generation/fill.h"
#include "inference/generation/generate.h"
#include "train/inspection/inspect.h"
#include "interchange/interchange.h"
#include "interchange/peft.h"
#include "run/config/load_config.h"
#include "run/moved.h"
#include "run/process.h"
#include "inference/scoring/passage_lines.h"
#include "evaluation/suites/driver.h"
#include "evaluation/attribution/attribute.h"
#include "evaluation/tasks/task_runs.h"
#include "train/tasks/finetune.h"
#include "train/warnings.h"
#include "inference/views/view.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string percent(double part, double total) { return fixed(total > 0 ? 100 * part / total : 0, 1) + " %"; }

/// `runs/a: accuracy 0.8291 on the test part of sst2, by the best step, 630; predictions in runs/a/predictions.jsonl`
std::string task_words(const PretrainCommand& c, const PretrainReport& r) {
  const auto metric = r.task["metric"].get<std::string>();
  const auto value = value_at(r.task, ("/test/" + metric + "/value").c_str());
  const bool is_defined = value.is_number() && std::isfinite(value.get<double>());
  const auto shown = is_defined ? fixed(value.get<double>(), 4) : "undefined";
  return concat(c.run, ": ", metric, " ", shown, " on the test part of ", c.config.task.name, ", by ",
                r.best_step > 0 ? concat("the best step, ", r.best_step) : "the last step",
                r.task["learned"] == true ? "" : "; did not learn", "; predictions in ", c.run, "/predictions.jsonl");
}

json json_of(const PretrainCommand& c, const PretrainReport& r) {
  return {{"run", c.run},
          {"steps", r.steps},
          {"tokens", r.tokens},
          {"seconds", r.seconds},
          {"tokens_per_second", r.tokens_per_second},
          {"held_out_loss", r.held_out_loss},
          {"held_out", to_json(r.held_out)},
          {"best_step", r.best_step},
          {"unigram_loss", r.unigram_loss},
          {"unigram_accuracy", r.unigram_accuracy},
          {"stopped_by", r.stopped_by},
          {"task", r.task}};
}

/// Logs what a training took, and where its time went.
void log_work(const PretrainReport& r) {
  const auto& l = r.time_breakdown;
  log_info("train", concat(thousands(static_cast<uint64_t>(r.steps)), r.steps == 1 ? " step, " : " steps, ",
                           thousands(static_cast<uint64_t>(r.tokens)), " tokens in ", duration(r.seconds), ", ",
                           thousands(static_cast<uint64_t>(r.tokens_per_second)), " tok/s; stopped by ", r.stopped_by));
  log_info("train",
           concat("time: forward ", percent(l.forward, l.seconds), ", backward ", percent(l.backward, l.seconds),
                  ", optimizer ", percent(l.optimizer, l.seconds), ", data wait ", percent(l.data_wait, l.seconds),
                  ", other ", percent(l.other, l.seconds), "; in addition, evaluation ", duration(l.evaluation),
                  ", checkpoints ", duration(l.checkpoint)));
}

/// `runs/a: held-out loss 2.1234 at step 900; best held-out loss at step 800; curve in runs/a/loss.svg`
std::string loss_words(const PretrainCommand& c, const PretrainReport& r) {
  const auto loss = std::isfinite(r.held_out_loss)
                        ? concat("held-out loss ", fixed(r.held_out_loss, 4), " at step ", r.steps, "; ")
                        : "";
  const auto best = r.best_step > 0 ? concat("best held-out loss at step ", r.best_step) : "no best held-out loss";
  return concat(c.run, ": ", loss, best, "; curve in ", c.run, "/loss.svg");
}

int train(const PretrainCommand& c, const TrainingParts& parts, Communicator& processes) {
  const auto r = pretrain(c.config,
                          {.run = c.run,
                           .resume = c.resume,
                           .overwrite_config = c.allow_config_change,
                           .branch_from = c.branch_from,
                           .command_line = c.command_line,
                           .hook = c.hook},
                          parts, processes);
  if (!processes.is_first()) return 0;
  if (c.json) {
    print_data(json_text(json_of(c, r)) + "\n");
    return 0;
  }
  log_work(r);
  if (r.had_finished)
    log_result("train", concat(c.run, ": had finished at step ", r.steps, "; raise train.budget to train it further"));
  log_result("train", r.task.is_null() ? loss_words(c, r) : task_words(c, r));
  return 0;
}

int run(const PretrainCommand& c) { return train(c, parts_of_run(c.config), alone()); }
int run(const TogetherCommand& c) { return run_together(c, train); }

/// As `generate`; a text that a signal stops ends its line, on which a terminal shows ^C.
std::vector<std::vector<Generated>> generated(const LoadedRun& run, const std::vector<std::string>& texts,
                                              const GenerateOptions& options) {
  try {
    return generate(run, texts, options);
  } catch (const Interrupted&) {
    if (options.emit)
      print_text("\n", true);
    else if (isatty(STDERR_FILENO) == 1)
      std::fputs("\n", stderr);
    throw;
  }
}

int run(const GenerateCommand& c) {
  check_search(c.search);
  const auto opened = open_chosen(c.run, c.checkpoint);
  GenerateOptions options{.search = c.search, .batch_size = c.batch_size};
  const bool streams = !c.json && c.texts.size() == 1 && c.search.num_beams == 1 && c.search.num_return_sequences == 1;
  if (streams) {
    options.emit = [](const std::string& text) { print_text(text, true); };
  }
  const auto all = generated(opened, c.texts, options);
  if (streams) print_text("\n");
  const bool line_by_line = c.texts.size() > 1 || c.search.num_return_sequences > 1;
  uint64_t multiline = 0;  // texts that contain line breaks
  for (size_t i = 0; i < all.size() && !streams; ++i) {
    if (c.json) {
      json list = json::array();
      for (const auto& one : all[i])
        list.push_back({{"text", one.continuation}, {"ids", one.ids}, {"score", one.score}});
      print_data(
          json_text(json{{"prompt", c.texts[i]}, {"prompt_ids", all[i].front().prompt_ids}, {"generated", list}}) +
          "\n");
      continue;
    }
    for (const auto& one : all[i]) {
      auto line = one.text;
      const auto is_end = [](char byte) { return byte == '\n' || byte == '\r'; };
      multiline += line_by_line && std::any_of(line.begin(), line.end(), is_end);
      if (line_by_line) std::replace_if(line.begin(), line.end(), is_end, ' ');
      print_text(line + "\n");
    }
  }
  if (multiline > 0)
    log_warning("generate", concat(multiline, multiline == 1 ? " text contains" : " texts contain",
                                   " line breaks, printed as spaces to keep one text per line; --json keeps them"));
  return 0;
}

/// Refuses what fine-tuned runs, which are judged by their tasks, do not have.
void refuse_loss_options(const EvaluateCommand& c) {
  const auto& tuned = *std::ranges::find_if(c.runs, is_fine_tuned);
  for (const auto& [is_given, option] : {std::pair{!c.text.empty(), "--text"},
                                         {!c.tokens.empty(), "--tokens"},
                                         {!c.objectives.empty(), "--objective"},
                                         {!c.set.empty(), "--set"},
                                         {c.generate, "--generate"},
                                         {c.sequences > 0, "--sequences"},
                                         {c.all_checkpoints, "--all-checkpoints"}})
    require<ConfigError>(!is_given, tuned, ": is fine-tuned on a task, whose test part it is judged on; leave out ",
                         option);
  const auto other = std::ranges::find_if_not(c.runs, is_fine_tuned);
  require<ConfigError>(other == c.runs.end(), other == c.runs.end() ? "" : *other, ": is not fine-tuned, and ", tuned,
                       " is; evaluate them by commands of their own");
}

int run(const EvaluateCommand& c) {
  const bool of_tasks = std::ranges::any_of(c.runs, is_fine_tuned);
  of_tasks ? refuse_loss_options(c) : check_search(c.search);
  of_tasks ? evaluate_tasks(c) : evaluate_losses(c);
  return 0;
}
int run(const EvaluateTasksCommand& c) {
  evaluate_tasks(c);
  return 0;
}
int run(const EvaluateSuitesCommand& c) {
  const bool of_babylm = c.of_babylm || std::ranges::any_of(c.suites.names, names_babylm_data);
  return of_babylm ? evaluate_babylm(c, c.suites) : evaluate_suites(c, c.suites);
}
int run(const PredictCommand& c) {
  predict(c);
  return 0;
}
int run(const AttributeCommand& c) {
  attribute(c);
  return 0;
}
int run(const ScoreCommand& c) { return run_score(c); }
int run(const CollateCommand& c) {
  const auto collation = collate_babylm(c);
  for (const auto& fault : collation.faults) log_warning("babylm", fault);
  print_data(collation.file + "\n");
  return 0;
}

int run(const BabylmFinetuneCommand& c) {
  const auto report = finetune_babylm(c);
  if (c.json) {
    print_data(json_text(to_json(report)) + "\n");
    return 0;
  }
  print_text(to_text(table_of(report)) + "\n");
  for (const auto& note : report.notes) print_report(concat("Note: ", note, ".\n"), 0);
  return 0;
}

/// Prints the most probable completions of all blanks together.
void print_completions(const LoadedRun& opened, const std::string& text, const FillCommand& c) {
  json list = json::array();
  for (const auto& [filled, score] : fill_spans(opened, text, c.top)) {
    if (c.json)
      list.push_back({{"text", filled}, {"score", score}});
    else
      print_text(filled + "\n");
  }
  if (c.json) print_data(json_text(json{{"text", text}, {"filled", list}}) + "\n");
}

/// What shows the words that were filled in: bold on a terminal, else brackets.
FilledMarks filled_marks() {
  if (has_colours(STDOUT_FILENO)) return {"\033[1m", "\033[0m"};
  return {"[", "]"};
}

/// Prints the text with the best token in each blank, and the candidates of each.
void print_candidates(const LoadedRun& opened, const std::string& text, const FillCommand& c) {
  const auto blanks = fill(opened, text, c.top);
  if (c.json) {
    json list = json::array();
    for (const auto& blank : blanks) {
      json candidates = json::array();
      for (const auto& one : blank)
        candidates.push_back(
            {{"id", one.id}, {"piece", one.token}, {"word", one.word}, {"probability", one.probability}});
      list.push_back(candidates);
    }
    print_data(json_text(json{{"text", text}, {"blanks", list}}) + "\n");
    return;
  }
  std::vector<MaskPrediction> best;
  for (const auto& blank : blanks) best.push_back(blank.front());
  print_text(filled_text(opened.tokenizer, text, best, filled_marks()) + "\n");
  for (size_t i = 0; i < blanks.size(); ++i) {
    std::string line = blanks.size() > 1 ? "  " + std::to_string(i + 1) + ": " : "  ";
    for (const auto& one : blanks[i]) line += one.word + " " + fixed(100 * one.probability, 1) + "%  ";
    print_text(line + "\n");
  }
}

int run(const FillCommand& c) {
  const auto opened = open_chosen(c.run, c.checkpoint);
  const auto print_filled = fills_by_generating(opened) ? print_completions : print_candidates;
  for (size_t i = 0; i < c.texts.size(); ++i) {
    try {
      print_filled(opened, c.texts[i], c);
    } catch (const FillError& e) {
      fail<ConfigError>(c.locations.at(i), e.what());
    }
  }
  return 0;
}

int run(const ViewCommand& c) {
  const auto file = read_passages(c.file);
  std::vector<std::string> texts;
  for (const auto& passage : file.passages) texts.push_back(passage.text());
  const auto opened = open_chosen(c.run, c.checkpoint);
  TrainingCounts known;
  if (opened.has_tokenizer) known = training_counts(data_of_run(opened.folder, opened.config.data), opened.tokenizer);
  if (!known.why.empty()) log_info("view", concat(c.run, ": tokens are counted in these texts, because ", known.why));
  const auto view = with_lines(
      file, [&] { return view_of(opened, texts, {.sentence = c.sentence, .training_counts = known.counts}); });
  write_atomic(c.out, to_html(view));
  if (c.json)
    print_data(json_text(to_json(view)) + "\n");
  else
    log_result("view", concat(view.texts, view.texts == 1 ? " text, " : " texts, ", view.calibration.count,
                              view.calibration.count == 1 ? " token" : " tokens", ", calibration error ",
                              fixed(view.calibration.error, 4), " -> ", c.out));
  return 0;
}

int run(const ImportCommand& c) {
  const auto r =
      c.base.empty() ? import_huggingface(c.folder, c.out, c.generator) : import_peft(c.folder, c.base, c.out);
  log_result("import", concat(r.architecture, ": ", r.tensors, " tensors, ",
                              thousands(static_cast<uint64_t>(r.parameters)), " parameters -> ", c.out));
  for (const auto& name : r.ignored) log_info("import", "not used: " + name);
  for (const auto& name : r.fresh) log_info("import", "not in the file, newly initialized: " + name);
  return 0;
}

int run_revisions(const ExportCommand& c, const std::string& main_checkpoint) {
  const auto names = export_revisions(c.run, main_checkpoint, c.out, c.part, c.force);
  if (c.json)
    print_data(json_text(json{{"out", c.out}, {"to", c.to}, {"revisions", names}}) + "\n");
  else
    log_result("export", concat(c.run, " -> ", c.out, " (", names.size(), " model folders: ", listed(names), ")"));
  return 0;
}

int say_exported(const ExportCommand& c, const char* files) {
  if (c.json)
    print_data(json_text(json{{"out", c.out}, {"to", c.to}}) + "\n");
  else
    log_result("export", concat(c.run, " -> ", c.out, " (", files, ")"));
  return 0;
}

int export_of(const ExportCommand& c, const std::string& checkpoint) {
  if (c.revisions) return run_revisions(c, checkpoint);
  if (c.to == "huggingface") {
    export_huggingface(checkpoint, c.out, c.part, c.force);
    return say_exported(c,
                        "config.json, model.safetensors, the tokenizer if the run has one, and README.md, a model card "
                        "to complete");
  }
  if (c.to == "peft") {
    export_peft(checkpoint, c.out, c.force);
    return say_exported(c, "adapter_config.json, adapter_model.safetensors");
  }
  const auto r = export_torchscript(checkpoint, c.out, c.dtype, c.program, c.part, c.force);
  if (c.json) {
    print_data(json_text(json{{"out", r.path},
                              {"to", c.to},
                              {"dtype", c.dtype},
                              {"passed", r.passed},
                              {"tolerance", r.tolerance},
                              {"largest_error", r.largest_error},
                              {"shapes", r.shapes}}) +
               "\n");
    return 0;
  }
  log_result("export", concat(r.path, ": loaded in a new process and run at shapes ", listed(r.shapes)));
  for (const auto& [name, error] : r.largest_error) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1e", error);
    log_info("export", concat("  ", name, ": max difference ", text));
  }
  log_info("export", concat("receipt in ", r.path, ".receipt.json"));
  return 0;
}

int run(const ExportCommand& c) {
  return read_checkpoint([&] { return chosen_checkpoint(c.run, c.checkpoint); },
                         [&](const std::string& checkpoint) { return export_of(c, checkpoint); });
}

/// A row of `verify parity`, with the note that it may have.
std::string parity_line(const ParityRow& row, size_t name_width) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%10.2e  of %.0e", row.error, row.tolerance);
  const auto note = row.note.empty() ? "" : "  " + row.note;
  return concat(row.passed ? "ok   " : "FAIL ", padded(row.name, name_width), " ", numbers, note, "\n");
}

/// Columns for the names of `verify parity`: as many as a terminal has besides the numbers.
size_t parity_name_width() {
  constexpr size_t widest = 70, of_numbers = 28;
  const size_t columns = terminal_columns(STDOUT_FILENO, widest + of_numbers);
  return std::clamp<size_t>(columns - std::min(columns, of_numbers), 20, widest);
}

int run(const VerifyParityCommand& c) {
  const auto rows = verify_parity(c.folder);
  const size_t name_width = parity_name_width();
  bool passed = true;
  json list = json::array();
  for (const auto& row : rows) {
    passed = passed && row.passed;
    if (c.json)
      list.push_back({{"name", row.name},
                      {"error", row.error},
                      {"tolerance", row.tolerance},
                      {"passed", row.passed},
                      {"note", row.note}});
    else
      print_report(parity_line(row, name_width), 5);
  }
  if (c.json)
    print_data(json_text(json{{"passed", passed}, {"tensors", list}}) + "\n");
  else
    print_text(concat(c.folder, ": ", rows.size(), " tensors ", passed ? "agree\n" : "compared, some differ\n"));
  return passed ? 0 : 1;
}

int run(const VerifyRunCommand& c) {
  verify_run(c.run);
  if (is_fine_tuned(c.run)) verify_task(c.run);
  return 0;
}

int run(const RunTorchScriptCommand& c) {
  run_torchscript(c.script, c.cases, c.out);
  return 0;
}

int run(const DescribeCommand& c) {
  const Cluster cluster{.processes = c.processes, .hosts = c.hosts};
  const bool is_shared = c.processes > 0;
  const auto config = is_shared ? config_on(cluster, c.config) : c.config;
  const auto d = describe_run(config);
  auto document = to_json(d);
  auto text = to_text(d) + "\n";
  if (is_shared) {
    const auto scaling = scaling_of(config, d, cluster);
    document["scaling"] = to_json(scaling);
    text += to_text(scaling);
  }
  if (c.json)
    print_data(json_text(document) + "\n");
  else
    print_report(text, 11);
  return 0;
}

/// Prints what was found in the rows of a config; `name` is empty for the only one, whose rows are printed too.
void print_inspection(const std::string& name, const RunConfig& config, const Inspection& inspection) {
  if (name.empty())
    print_report(to_text(inspection, has_colours(STDOUT_FILENO)), 11);
  else
    print_report(name + "\n\n" + counts_text(inspection) + "\n" + checks_text(inspection) + "\n", 11);
  for (const auto& line : deviations(config)) print_text("differs from the preset: " + line + "\n");
}

int run(const InspectCommand& c) {
  if (!c.picture.empty()) check_picture(c.configs.front().objectives, c.picture);
  std::vector<InspectedConfig> inspected;
  bool passed = true;
  for (size_t i = 0; i < c.configs.size(); ++i) {
    const auto& config = c.configs[i];
    if (const auto few = few_masked_warning(config.objectives); !few.empty()) log_warning("inspect", few);
    const auto& inspection =
        inspected
            .emplace_back(c.names[i], config, inspect_objective(config, c.examples, c.sequences, {}, !c.page.empty()))
            .inspection;
    if (!c.json) print_inspection(c.configs.size() > 1 ? c.names[i] : "", config, inspection);
    passed = passed && std::ranges::all_of(inspection.checks, &RuleCheck::passed);
  }
  if (c.json) print_data(json_text(to_json(inspected.front().inspection)) + "\n");
  std::fflush(stdout);
  if (!c.picture.empty()) draw_lengths(inspected.front().inspection, c.picture);
  if (!c.page.empty()) {
    write_atomic(c.page, to_html(inspected));
    log_result("inspect", concat(counted(inspected.size(), "config"), " -> ", c.page));
  }
  return passed ? 0 : 1;
}

int run(const BenchmarkCommand& c) {
  const auto r = benchmark(c.config, {c.steps, c.seconds, c.plain, c.steps_only});
  print_report(to_text(r) + "\n", 11);
  if (c.json) print_data(json_text(to_json(r)) + "\n");
  return 0;
}

/// Throws ConfigError where CLOZE_ISA names what this processor does not have.
void check_isa() {
  const char* isa = std::getenv("CLOZE_ISA");
  const auto used = best_isa();
  require<ConfigError>(isa == nullptr || isa == used, "CLOZE_ISA=", isa ? isa : "",
                       ": is no instruction set of this processor; name one of ", base_isa,
                       ", avx2, avx512, avx512_bf16 and amx, up to ", used, ", or unset it");
}

}  // namespace

}  // namespace cloze

extern "C" __attribute__((visibility("default"))) int cloze_run(const cloze::Command& command, cloze::LogLevel level,
                                                                cloze::Interrupts& of_program) {
  // The engine is a library with its own log and its own copy of the signal handling.
  cloze::set_log_level(level);
  cloze::share_interrupts(of_program);
  cloze::check_isa();
  const bool has_own_threads = std::holds_alternative<cloze::PretrainCommand>(command) ||
                               std::holds_alternative<cloze::TogetherCommand>(command) ||
                               std::holds_alternative<cloze::BenchmarkCommand>(command);  // train.threads
  if (!has_own_threads) cloze::configure_threads(0);
  return std::visit([](const auto& c) { return cloze::run(c); }, command);
}
