#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "data/reading/reader.h"
#include "tasks/scores/scores_output.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/predictions.h"
#include "tasks/scores/task_metric.h"
#include "tasks/task.h"

namespace cloze {

namespace {

/// What is judged without a run: anybody's predictions for a part of a task.
struct PredictionsCommand {
  std::string task{}, part = "test", predictions{}, against{}, no_answer{}, out{}, format = "text";
  std::optional<TagScheme> scheme{};  ///< none: that of the task
  double threshold = 1;               ///< of --no-answer, as in SQuAD's program
  bool with_words = false, skip_bad = false, json = false;
};

const TaskSplit& split_of(const Task& task, const std::string& name) {
  if (name == "train") return task.train;
  return name == "valid" ? task.valid : task.test;
}

std::string formatted(const std::vector<Table>& tables, const std::string& format) {
  std::string text;
  for (const auto& table : tables) {
    if (!text.empty()) text += "\n";
    text += format == "latex" ? to_latex(table) : format == "markdown" ? to_markdown(table) : to_text(table);
  }
  return text;
}

/// Floors of the items that have a prediction.
void add_floors(const Task& task, const TaskSplit& split, const PredictionsCommand& command, const PredictionFile& read,
                const MetricOptions& options, TaskScores& scores) {
  const auto kind = task.config.kind;
  const auto add = [&](Floor floor) {
    auto predictions = floor_predictions(kind, floor, task.train.items, split.items, task.labels);
    for (size_t i = 0; i < predictions.size(); ++i)
      if (read.predictions[i].id.empty()) predictions[i].id.clear();
    add_floor(kind, floor, predictions, split.items, task.labels, options, scores);
  };
  add(Floor::constant);
  if (command.with_words) add(Floor::words);
}

void add_predictions(CLI::App& verb, PredictionsCommand& c) {
  verb.add_option("--task", c.task, "task: file, or name in ./tasks or $CLOZE_TASKS");
  verb.add_option("--predictions", c.predictions,
                  "predictions for its items: JSON lines, JSON of SQuAD's or BabyLM's form, lines of labels")
      ->required();
  verb.add_option("--part", c.part, "part of the task that they are for")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
  verb.add_option("--against", c.against,
                  "other predictions for the same items: McNemar's test, differences of the first to them");
  verb.add_option_function<std::string>(
          "--floor", [&c](const std::string&) { c.with_words = true; },
          "beside every figure, that of a regression on the words of the training part")
      ->check(CLI::IsMember({"words"}));
  verb.add_flag("--skip-bad", c.skip_bad, skip_bad_help);
  verb.add_flag("--json", c.json, json_help);
  add_group(verb, "Output", [&] {
    verb.add_option("--confusion", c.out, "write the confusion to this SVG file");
    verb.add_option("--table", c.format, "form of the tables")
        ->check(CLI::IsMember({"text", "markdown", "latex"}))
        ->capture_default_str();
  });
  add_group(verb, "Spans and tags", [&] {
    auto* no_answer =
        verb.add_option("--no-answer", c.no_answer, "spans: JSON file of no-answer scores, as SQuAD 2.0 has");
    verb.add_option("--no-answer-threshold", c.threshold, "score above which a question gets no answer")
        ->needs(no_answer)
        ->capture_default_str();
    std::string schemes;
    for (const auto& one : choices(TagScheme{}))
      if (*one.words) schemes += (schemes.empty() ? "" : ", ") + std::string(one.name);
    verb.add_option_function<std::string>(
            "--scheme", [&c](const std::string& name) { c.scheme = choice_of<TagScheme>(name); },
            "tagging: scheme of the strict figures: " + schemes)
        ->default_str("that of the task");
  });
}

/// Refuses what is no task, and no predictions.
void check_predictions(const PredictionsCommand& c) {
  for (const auto& file : {c.predictions, c.against}) {
    if (file.empty()) continue;
    refuse_declared(file, Declared::nothing, "a file of predictions");
    require<ConfigError>(kind_of_path(file) != PathKind::run, file, ": is a run, not a file of predictions; name ",
                         file, "/predictions.jsonl");
  }
  require<ConfigError>(!c.task.empty(), "--predictions ", c.predictions,
                       ": name the task whose items these are for: --task TASK.yaml");
  require<ConfigError>(
      !task_file(c.task).empty() || kind_of_path(c.task) != PathKind::run, "--task ", c.task,
      ": is a run, not a task; name the task file, or print the run's own figures with `cloze evaluate ", c.task, "`");
  refuse_declared(c.task, Declared::task, "a task");
}

/// Prints scores of predictions for a part of a task. Throws ConfigError and DataError.
void print_predictions(const PredictionsCommand& c) {
  check_predictions(c);
  if (!c.out.empty()) check_output_file("--confusion", c.out);
  const auto named = task_file(c.task);
  const auto task = open_task(named.empty() ? config_file(c.task, Declared::task) : named,
                              {.skip_bad = c.skip_bad, .may_lack_train = c.part != "train"});
  const auto kind = task.config.kind;
  require<ConfigError>(c.no_answer.empty() || kind->has_answers, "--no-answer: the task is ", name_of(kind),
                       ", and scores of no answer are of spans; leave it out");
  require<ConfigError>(!c.scheme || kind->has_scheme, "--scheme: the task is ", name_of(kind),
                       ", and a scheme is of tags; leave it out");
  const auto& items = split_of(task, c.part).items;
  require<ConfigError>(!items.empty(), c.task, ": has no part ", c.part,
                       ", which is a tenth of the training part; name its file, `data.valid`");
  const auto squad = metric_options(task).squad;
  const auto read = read_predictions(c.predictions, kind, items, task.labels, c.no_answer, squad);
  auto notes = task.notes;
  const auto add_note = [&](const PredictionFile& file) {
    notes.insert(notes.end(), file.notes.begin(), file.notes.end());
  };
  add_note(read);
  auto options = metric_options(task);
  if (c.scheme) options.scheme = *c.scheme;
  options.has_no_answer_scores = read.has_no_answer_scores;
  options.no_answer_order = read.no_answer_order;
  if (!c.no_answer.empty()) options.no_answer_threshold = c.threshold;
  auto scores = metrics_of(kind, items, task.labels, read.predictions, options);
  add_floors(task, split_of(task, c.part), c, read, options, scores);
  std::optional<PairedScores> compared;
  if (!c.against.empty()) {
    const auto other = read_predictions(c.against, kind, items, task.labels, "", squad);
    add_note(other);
    auto alike = options;  // the other file has no scores of its own
    alike.no_answer_threshold.reset();
    alike.has_no_answer_scores = false;
    compared = compare_predictions(kind, items, task.labels, read.predictions, other.predictions, alike);
  }
  require<ConfigError>(c.out.empty() || scores.confusion.has_value(), "--confusion: a task of ", name_of(kind),
                       " with ", task.labels.size(), " labels has no confusion to draw; it takes up to ", most_confused,
                       " labels");
  if (!c.out.empty()) write_atomic(c.out, confusion_svg(task.config.task, *scores.confusion));
  if (c.json) {
    auto document = to_json(task.config.task, scores);
    document["notes"] = notes;
    if (compared) document["against"] = to_json(*compared);
    return print_data(json_text(document) + "\n");
  }
  auto tables = tables_of(task.config.task, scores);
  if (compared) tables.push_back(table_of(*compared));
  print_text(formatted(tables, c.format));
  for (const auto& note : notes) log_info("task", note);
}

/// The runs of a verb, and which of their checkpoints; of `is_all`, or all of a single run.
void add_runs(CLI::App& verb, RunSelection& c, bool is_all = true) {
  verb.add_option("run", c.runs, "run directories, or step folders of them")->required();
  verb.add_flag("--json", c.json, json_help);
  add_group(verb, "Checkpoints", [&] {
    add_checkpoint_option(verb, c.checkpoint);
    if (is_all) verb.add_flag("--all-checkpoints", c.all_checkpoints, "evaluate every checkpoint of a single run");
  });
}

/// By which losses a run is scored, and on how much.
void add_objectives(CLI::App& verb, EvaluationRequest& c) {
  verb.add_option("--set", c.set, "override a setting: evaluation.KEY=VALUE (repeatable)")->allow_extra_args(false);
  verb.add_option("--objective", c.objectives,
                  "objective to score by, as mlm:0.15 or clm (repeatable; default: the run's evaluation.objectives)")
      ->allow_extra_args(false);
  verb.add_option("--sequences", c.sequences, "sequences to score (default: the run's evaluation.sequences)");
}

/// The texts or tokens that are scored instead of the runs' own.
void add_texts(CLI::App& verb, EvaluationRequest& c) {
  add_group(verb, "Texts", [&] {
    auto* text = verb.add_option("--text", c.text, "files to evaluate on, or - for standard input");
    verb.add_option("--target", c.target, "pairs: target files, aligned line by line with --text")->needs(text);
    verb.add_option("--format", c.format, "format of --text")
        ->type_name("TEXT:{auto,text,lines,jsonl,wiki,pairs}")
        ->capture_default_str();
    verb.add_option("--field", c.field, "jsonl: key of the text in --text")->needs(text)->default_str(default_field);
    verb.add_option("--columns", c.columns,
                    "pairs: NAME,NAME, the source and target columns by the header line of each file of --text; in "
                    "JSON lines, the two keys")
        ->needs(text);
    verb.add_option("--tokens", c.tokens, "prepared folder, scored on its held-out split (default: the run's)")
        ->excludes(text);
  });
}

void add_losses(CLI::App& verb, EvaluateCommand& c) {
  add_runs(verb, c);
  add_objectives(verb, c);
  add_texts(verb, c);
  verb.add_option("--batch-size", c.batch_size, "sequences per batch")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
}

void add_generation(CLI::App& verb, EvaluateCommand& c) {
  c.generate = true;
  add_runs(verb, c, /*is_all=*/false);
  add_texts(verb, c);
  add_group(verb, "Losses", [&] { add_objectives(verb, c); });
  verb.add_flag("--generate")->group("");  // which the verb says
  add_search_options(verb, c.search, c.batch_size);
}

/// How texts are scored, for both verbs whose suites are of them.
void add_scores(CLI::App& verb, SuiteRequest& c) {
  add_choice<ScoringForm>(verb, "--as", c.form, "how texts are scored (default: by the run's objective)");
  add_choice<Normalisation>(verb, "--normalise", c.normalisation, "what scores are divided by")
      ->default_str(name_of(Normalisation::sum));
  verb.add_option("--cache", c.cache, "of scores: folder that keeps them by the hash of weights and text");
}

/// What is shown and written.
void add_suite_output(CLI::App& verb, SuiteRequest& c) {
  verb.add_flag("--paradigms", c.paradigms, "show every paradigm, not only phenomena");
  verb.add_option("--out", c.out, "new folder for results.jsonl, predictions.jsonl, table.md and table.tex");
}

void add_suites(CLI::App& verb, EvaluateSuitesCommand& command) {
  auto& c = command.suites;
  add_runs(verb, command);
  verb.add_option("--suite", c.names, "suite: file, folder, or name in ./suites or $CLOZE_SUITES (repeatable)")
      ->required()
      ->allow_extra_args(false);
  add_suite_output(verb, c);
  add_group(verb, "Scores", [&] {
    add_scores(verb, c);
    verb.add_option("--stride", c.stride,
                    "score texts longer than the model in windows, each of which scores so many tokens (default: such "
                    "texts are refused)")
        ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
    add_choice<Precision>(verb, "--precision", c.precision,
                          "of scores, bf16: states in bf16 where the processor has units for it, about twice as fast; "
                          "logits stay fp32")
        ->default_str(name_of(Precision::fp32));
  });
  add_group(verb, "Embeddings", [&] {
    verb.add_option("--layer", c.layer, "the layer they are taken from, 0 = the embeddings (default: the last)");
    add_choice<Pooling>(verb, "--pooling", c.pooling, "what stands for a text")->default_str(name_of(Pooling::mean));
  });
  add_group(verb, "Items", [&] {
    verb.add_option("--limit", c.limit, "score the first N items of each paradigm only, for a quick look");
    verb.add_option("--keep", c.keep,
                    "table (UID, pairID) of the items to keep, such as the filter of BabyLM for BLiMP");
  });
}

void add_babylm_suites(CLI::App& verb, EvaluateSuitesCommand& command) {
  auto& c = command.suites;
  command.of_babylm = true;
  add_runs(verb, command);
  verb.add_option("--suite", c.names, "the evaluation data (default: babylm in ./suites or $CLOZE_SUITES)")
      ->allow_extra_args(false);
  verb.add_flag("--fast", c.fast, "the fast evaluation, which the challenge asks of every checkpoint");
  verb.add_option("--results", c.results,
                  "folder for predictions and reports of the published program (default: results)");
  add_suite_output(verb, c);
  add_group(verb, "Scores", [&] {
    add_choice<BabylmBackend>(verb, "--backend", c.backend,
                              "how the published program scores the model (default: by the run's objective)");
    add_scores(verb, c);
  });
}

void add_tasks(CLI::App& verb, EvaluateTasksCommand& c) { add_runs(verb, c, /*is_all=*/false); }

void check_runs(const CLI::App& verb, const RunSelection& c) {
  for (const auto& run : c.runs) check_run_path(run, RunCount::several);
  require<ConfigError>(!c.all_checkpoints || c.runs.size() == 1, "--all-checkpoints takes a single run; name one");
  require<ConfigError>(!c.all_checkpoints || verb.count("--checkpoint") == 0,
                       "--all-checkpoints and --checkpoint exclude each other");
}

/// Refuses what is no text, and no prepared text.
void check(const CLI::App& verb, EvaluateCommand& c) {
  check_runs(verb, c);
  for (const auto* texts : {&c.text, &c.target})
    for (const auto& text : *texts) {
      require<DataError>(kind_of_path(text) != PathKind::tokens, text, ": is prepared text; name it by --tokens ",
                         text);
      check_text_path(text);
    }
  if (!c.tokens.empty()) check_tokens_path(c.tokens);
  if (c.generate) check_search_options(verb, c.search);
  require<ConfigError>((c.sequences > 0 || verb.count("--sequences") == 0) && c.batch_size > 0,
                       "--sequences and --batch-size must be at least 1");
}

void check(const CLI::App& verb, EvaluateTasksCommand& c) { check_runs(verb, c); }

void check(const CLI::App& verb, EvaluateSuitesCommand& command) {
  auto& c = command.suites;
  check_runs(verb, command);
  if (c.names.empty()) c.names = {"babylm"};
  const bool has_limit = verb.get_option_no_throw("--limit") && verb.count("--limit") > 0;
  require<ConfigError>(c.limit > 0 || !has_limit, "--limit must be at least 1");
  for (const auto& name : c.names) refuse_declared(name, Declared::nothing, "a suite");
  require<ConfigError>(c.keep.empty() || c.names.size() == 1, "--keep is the table of a single suite; name one");
  require<ConfigError>(c.out.empty() || !std::filesystem::exists(c.out), "--out ", c.out,
                       ": there is such a file or folder; name a new folder");
}

/// A verb of `evaluate` whose command goes to the engine.
template <class Command>
void add_inner(CLI::App& evaluate, Globals& globals, const char* name, const char* help,
               void (*add)(CLI::App&, Command&), const char* footer) {
  auto* verb = evaluate.add_subcommand(name, help);
  auto command = std::make_shared<Command>();
  add(*verb, *command);
  verb->footer(footer);
  verb->callback([command, verb, &globals] {
    check(*verb, *command);
    globals.exit_code = run_engine(*command);
  });
}

void add_inner_predictions(CLI::App& evaluate) {
  auto* verb = evaluate.add_subcommand("predictions", "figures of anybody's predictions for a task");
  auto command = std::make_shared<PredictionsCommand>();
  add_predictions(*verb, *command);
  verb->footer(
      "Examples:\n  cloze evaluate predictions --task rte.yaml --predictions rte.jsonl\n"
      "  cloze evaluate predictions --task squad --predictions a.json --against b.json");
  verb->callback([command] { print_predictions(*command); });
}

}  // namespace

void add_evaluate(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("evaluate", "compute held-out losses of runs, or have them answer suites and tasks");
  verb->require_subcommand(0, 1);  // one that is left out is known by the options
  verb->footer(
      "Examples:\n  cloze evaluate runs/a runs/b\n"
      "  cloze evaluate runs/a runs/b --suite blimp.jsonl.xz\n"
      "  cloze evaluate suites --help\n\n"
      "The verb may be left out where the options tell it; of no options it is that of\n"
      "losses, which prints the figures of a run that is fine-tuned.");
  add_inner(*verb, globals, "losses", "held-out losses of runs, on the same text with the same masks", add_losses,
            "Examples:\n  cloze evaluate losses runs/first --text chapter.txt\n"
            "  cloze evaluate losses runs/a runs/b --objective mlm:0.15 --objective mlm:0.4\n"
            "  cloze evaluate losses runs/a --all-checkpoints");
  add_inner(*verb, globals, "generation", "BLEU, chrF, ROUGE and exact match of targets that a run generates",
            add_generation,
            "Examples:\n  cloze evaluate generation runs/en-de --num-beams 4\n"
            "  cloze evaluate generation runs/en-de --text test.en --target test.de\n\n"
            "Without --text, sources and references are decoded from prepared tokens,\n"
            "unknown tokens included.");
  add_inner(*verb, globals, "suites", "answers to suites: minimal pairs, facts, reading times, similarities, ...",
            add_suites,
            "Examples:\n  cloze evaluate suites runs/a runs/b --suite blimp.jsonl.xz --out of-a-and-b\n"
            "  cloze evaluate suites runs/a --suite wug --suite blimp --all-checkpoints");
  add_inner(*verb, globals, "babylm", "the evaluation of the BabyLM Challenge", add_babylm_suites,
            "Examples:\n  cloze evaluate babylm runs/baby --fast --all-checkpoints\n"
            "  cloze evaluate babylm runs/baby --suite evaluation_data --results results");
  add_inner(*verb, globals, "tasks", "figures of fine-tuned runs on the test parts of their tasks", add_tasks,
            "Examples:\n  cloze evaluate tasks runs/a-sst2\n"
            "  cloze evaluate tasks runs/a-sst2 runs/b-sst2\n\n"
            "Two runs of one task have their difference, several tasks of GLUE or SuperGLUE\n"
            "their average.");
  add_inner_predictions(*verb);
}

}  // namespace cloze
