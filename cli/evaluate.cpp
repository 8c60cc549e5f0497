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
#include "tasks/figures/figures_output.h"
#include "tasks/figures/floors.h"
#include "tasks/figures/predictions.h"
#include "tasks/figures/task_metric.h"
#include "tasks/task.h"

namespace cloze {

namespace {

struct TaskFiguresCommand {
  std::string task{}, part = "test", predictions{}, against{}, no_answer{}, out{}, format = "text";
  std::optional<TagScheme> scheme{};  ///< none: that of the task
  double threshold = 1;               ///< of --no-answer, as in SQuAD's program
  bool with_words = false, skip_bad = false, json = false;
};

const TaskPart& part_of(const Task& task, const std::string& name) {
  if (name == "train") return task.train;
  return name == "valid" ? task.valid : task.test;
}

std::string text_of(const std::vector<Table>& tables, const std::string& format) {
  std::string text;
  for (const auto& table : tables) {
    if (!text.empty()) text += "\n";
    text += format == "latex" ? to_latex(table) : format == "markdown" ? to_markdown(table) : to_text(table);
  }
  return text;
}

/// Floors of the items that have a prediction.
void add_floors(const Task& task, const TaskPart& part, const TaskFiguresCommand& command, const PredictionFile& read,
                const MetricOptions& options, TaskFigures& figures) {
  const auto kind = task.config.kind;
  const auto add = [&](Floor floor) {
    auto predictions = floor_predictions(kind, floor, task.train.items, part.items, task.labels);
    for (size_t i = 0; i < predictions.size(); ++i)
      if (read.predictions[i].id.empty()) predictions[i].id.clear();
    add_floor(kind, floor, predictions, part.items, task.labels, options, figures);
  };
  add(Floor::constant);
  if (command.with_words) add(Floor::words);
}

/// --task, and the options that need it.
void add_task_figures(CLI::App& verb, TaskFiguresCommand& c) {
  auto* task = verb.add_option("--task", c.task,
                               "task whose figures are computed, of anybody's predictions: its file, or its name in "
                               "./tasks or $CLOZE_TASKS");
  auto* predictions =
      verb.add_option("--predictions", c.predictions,
                      "predictions for the items: JSON lines, JSON of SQuAD's or BabyLM's form, or lines of labels");
  task->needs(predictions);
  const auto before = verb.get_options().size();
  verb.add_option("--part", c.part, "part of the task that they are for")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
  verb.add_option(
      "--against", c.against,
      "other predictions for the same items, which the first are compared with: McNemar's test, differences");
  verb.add_option_function<std::string>(
          "--floor", [&c](const std::string&) { c.with_words = true; },
          "beside every figure, that of a regression on the words of the training part")
      ->check(CLI::IsMember({"words"}));
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
  verb.add_flag("--skip-bad", c.skip_bad, skip_bad_help);
  verb.add_option("--confusion", c.out, "write the confusion to this SVG file");
  verb.add_option("--table", c.format, "form of the tables")
      ->check(CLI::IsMember({"text", "markdown", "latex"}))
      ->capture_default_str();
  for (size_t i = before; i < verb.get_options().size(); ++i) verb.get_options()[i]->needs(task);
  for (auto* option : verb.get_options())
    if (option == task || option == predictions || option->get_needs().count(task) > 0) option->group("Tasks");
}

/// Refuses what is no task, and no predictions.
void check_task_figures(const TaskFiguresCommand& c) {
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

/// Prints figures of predictions for a part of a task. Throws ConfigError and DataError.
void print_task_figures(const TaskFiguresCommand& c) {
  check_task_figures(c);
  if (!c.out.empty()) check_output_file("--confusion", c.out);
  const auto named = task_file(c.task);
  const auto task = open_task(named.empty() ? config_file(c.task, Declared::task) : named,
                              {.skip_bad = c.skip_bad, .may_lack_train = c.part != "train"});
  const auto kind = task.config.kind;
  require<ConfigError>(c.no_answer.empty() || kind->has_answers, "--no-answer: the task is ", name_of(kind),
                       ", and scores of no answer are of spans; leave it out");
  require<ConfigError>(!c.scheme || kind->has_scheme, "--scheme: the task is ", name_of(kind),
                       ", and a scheme is of tags; leave it out");
  const auto& items = part_of(task, c.part).items;
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
  auto figures = metrics_of(kind, items, task.labels, read.predictions, options);
  add_floors(task, part_of(task, c.part), c, read, options, figures);
  std::optional<PairedFigures> compared;
  if (!c.against.empty()) {
    const auto other = read_predictions(c.against, kind, items, task.labels, "", squad);
    add_note(other);
    auto alike = options;  // the other file has no scores of its own
    alike.no_answer_threshold.reset();
    alike.has_no_answer_scores = false;
    compared = compare_predictions(kind, items, task.labels, read.predictions, other.predictions, alike);
  }
  require<ConfigError>(c.out.empty() || figures.confusion.has_value(), "--confusion: a task of ", name_of(kind),
                       " with ", task.labels.size(), " labels has no confusion to draw; it takes up to ", most_confused,
                       " labels");
  if (!c.out.empty()) write_atomic(c.out, confusion_svg(task.config.task, *figures.confusion));
  if (c.json) {
    auto found = to_json(task.config.task, figures);
    found["notes"] = notes;
    if (compared) found["against"] = to_json(*compared);
    return print_data(json_text(found) + "\n");
  }
  auto tables = tables_of(task.config.task, figures);
  if (compared) tables.push_back(table_of(*compared));
  print_text(text_of(tables, c.format));
  for (const auto& note : notes) log_info("task", note);
}

/// The files to score, and how they are read; returns --text.
CLI::Option* add_texts(CLI::App& verb, EvaluateCommand& command) {
  constexpr const char* group = "Texts";
  auto* text = verb.add_option("--text", command.text,
                               "files to evaluate on, or - for standard input; tokenized with the run's tokenizer");
  text->group(group);
  verb.add_option("--target", command.target, "pairs: target files, aligned line by line with --text")
      ->needs(text)
      ->group(group);
  verb.add_option("--format", command.format, "format of --text")
      ->type_name("TEXT:{auto,text,lines,jsonl,wiki,pairs}")
      ->capture_default_str()
      ->group(group);
  verb.add_option("--field", command.field, "jsonl: key of the text in --text")
      ->needs(text)
      ->default_str(default_field)
      ->group(group);
  verb.add_option("--columns", command.columns,
                  "pairs: NAME,NAME, the source and target columns by the header line of each file of --text; in JSON "
                  "lines, the two keys")
      ->needs(text)
      ->group(group);
  return text;
}

/// An option whose value is one of the choices of `T`.
template <class T, class Set>
CLI::Option* add_choice(CLI::App& verb, const std::string& name, const std::string& help, const Set& set) {
  std::vector<std::string> names;
  for (const auto& one : choices(T{})) names.emplace_back(one.name);
  const auto take = [set](const std::string& text) { set(choice_of<T>(text)); };
  return verb.add_option_function<std::string>(name, take, help)->check(CLI::IsMember(names));
}

/// The suites to answer, and how.
void add_suites(CLI::App& verb, SuiteRequest& c) {
  auto* suite = verb.add_option("--suite", c.names,
                                "suite to answer instead of losses: its file or folder, or its name in ./suites or "
                                "$CLOZE_SUITES (repeatable)");
  suite->allow_extra_args(false);
  const auto before = verb.get_options().size();
  add_choice<ScoringForm>(verb, "--as", "how texts are scored (default: by the run's objective)",
                          [&c](ScoringForm form) { c.form = form; });
  add_choice<Normalisation>(verb, "--normalise", "what scores are divided by", [&c](Normalisation by) {
    c.normalisation = by;
  })->default_str(name_of(Normalisation::sum));
  verb.add_option("--stride", c.stride,
                  "score texts longer than the model in windows, each of which scores so many tokens (default: such "
                  "texts are refused)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  verb.add_option_function<std::string>(
          "--precision", [&c](const std::string& name) { c.precision = choice_of<Precision>(name); },
          "of scores, bf16: states in bf16 where the processor has units for it, about twice as fast; logits stay fp32")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->default_str("fp32");
  verb.add_option("--layer", c.layer,
                  "of embeddings: the layer they are taken from, 0 = the embeddings (default: the last)");
  add_choice<Pooling>(verb, "--pooling", "of embeddings: what stands for a text", [&c](Pooling by) {
    c.pooling = by;
  })->default_str(name_of(Pooling::mean));
  verb.add_option("--limit", c.limit, "score the first N items of each paradigm only, for a quick look");
  verb.add_option("--keep", c.keep, "table (UID, pairID) of the items to keep, such as the filter of BabyLM for BLiMP");
  verb.add_flag("--paradigms", c.paradigms, "show every paradigm, not only phenomena");
  verb.add_option("--cache", c.cache, "of scores: folder that keeps them by the hash of weights and text");
  verb.add_option("--out", c.out, "new folder for results.jsonl, predictions.jsonl, table.md and table.tex");
  verb.add_flag("--fast", c.fast,
                "of --suite babylm: the fast evaluation, which the challenge asks of every checkpoint");
  add_choice<BabylmBackend>(verb, "--backend",
                            "of --suite babylm: how the published program scores the model (default: by the run's "
                            "objective)",
                            [&c](BabylmBackend backend) { c.backend = backend; });
  verb.add_option("--results", c.results,
                  "of --suite babylm: folder for predictions and reports of the published program (default: results)");
  for (size_t i = before; i < verb.get_options().size(); ++i) verb.get_options()[i]->needs(suite);
  for (auto* option : verb.get_options())
    if (const bool is_own = option == suite || option->get_needs().count(suite) > 0; is_own) option->group("Suites");
}

/// Refuses options of losses, which suites do not have.
void exclude_losses(const CLI::App& verb) {
  for (const auto* name : {"--objective", "--set", "--text", "--target", "--format", "--field", "--columns", "--tokens",
                           "--sequences", "--generate", "--batch-size"})
    require<ConfigError>(verb.count("--suite") == 0 || verb.count(name) == 0, "--suite asks questions, and ", name,
                         " is an option of held-out losses; leave one of them out");
}

/// Refuses what is no text, and no prepared text.
void check_texts(const EvaluateCommand& command) {
  for (const auto* texts : {&command.text, &command.target})
    for (const auto& text : *texts) {
      require<DataError>(kind_of_path(text) != PathKind::tokens, text, ": is prepared text; name it by --tokens ",
                         text);
      check_text_path(text);
    }
  if (!command.tokens.empty()) check_tokens_path(command.tokens);
}

/// Refuses options of suites that do not go together, and --all-checkpoints with what takes one checkpoint.
void check_suites(const CLI::App& verb, const EvaluateCommand& command) {
  const auto& c = command.suites;
  require<ConfigError>(c.limit > 0 || verb.count("--limit") == 0, "--limit must be at least 1");
  require<ConfigError>(!command.all_checkpoints || command.runs.size() == 1,
                       "--all-checkpoints takes a single run; name one");
  require<ConfigError>(!command.all_checkpoints || verb.count("--checkpoint") == 0,
                       "--all-checkpoints and --checkpoint exclude each other");
  require<ConfigError>(!command.all_checkpoints || !command.generate,
                       "--generate takes a single checkpoint; leave out --all-checkpoints");
  for (const auto& name : c.names) refuse_declared(name, Declared::nothing, "a suite");
  require<ConfigError>(c.keep.empty() || c.names.size() == 1, "--keep is the table of a single suite; name one");
  require<ConfigError>(c.out.empty() || !std::filesystem::exists(c.out), "--out ", c.out,
                       ": there is such a file or folder; name a new folder");
}

constexpr auto evaluate_footer =
    "Examples:\n  cloze evaluate runs/first --text chapter.txt\n"
    "  cloze evaluate runs/a runs/b --objective mlm:0.15 --objective mlm:0.4\n"
    "  cloze evaluate runs/en-de --generate --num-beams 4\n"
    "  cloze evaluate runs/en-de --text test.en --target test.de --generate\n"
    "  cloze evaluate runs/a runs/b --suite blimp.jsonl.xz --out blimp-of-a-and-b\n"
    "  cloze evaluate runs/a --all-checkpoints\n"
    "  cloze evaluate runs/baby --suite babylm --fast --all-checkpoints\n"
    "  cloze evaluate --task rte.yaml --predictions rte.jsonl\n\n"
    "Several runs are scored on the same text with the same masks, however they were\n"
    "trained. Without --text, sources and references are decoded from prepared\n"
    "tokens, unknown tokens included.";

/// Options of generated targets; losses are computed in batches too.
void add_generation(CLI::App& verb, EvaluateCommand& c) {
  auto* generate = verb.add_flag("--generate", c.generate,
                                 "pairs: generate targets for the held-out sources, and print BLEU, chrF, ROUGE and "
                                 "exact match");
  const auto before = verb.get_options().size();
  add_search_options(verb, c.search, c.batch_size);
  for (size_t i = before; i < verb.get_options().size(); ++i)
    if (auto* option = verb.get_options()[i]; !option->check_name("--batch-size"))
      option->needs(generate);
    else
      option->description("sequences, or texts to generate, per batch")->group("Options");
}

/// Evaluates runs in the engine. Throws ConfigError and DataError for what is no command.
int evaluate_runs(const CLI::App& verb, const EvaluateCommand& command) {
  require<ConfigError>(!command.runs.empty(), "run is required; or --task and --predictions");
  for (const auto& run : command.runs) check_run_path(run, RunCount::several);
  check_texts(command);
  check_search_options(verb, command.search);
  require<ConfigError>((command.sequences > 0 || verb.count("--sequences") == 0) && command.batch_size > 0,
                       "--sequences and --batch-size must be at least 1");
  exclude_losses(verb);
  check_suites(verb, command);
  return run_engine(command);
}

}  // namespace

void add_evaluate(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("evaluate", "compute held-out losses of runs, or answer suites");
  auto command = std::make_shared<EvaluateCommand>();
  auto figures = std::make_shared<TaskFiguresCommand>();
  verb->add_option("run", command->runs, "run directories, or step folders of them");
  add_checkpoint_option(*verb, command->checkpoint);
  verb->add_flag("--all-checkpoints", command->all_checkpoints, "evaluate every checkpoint of a single run");
  verb->add_option("--objective", command->objectives,
                   "objective to score by, KIND[:SHARE][,KEY=VALUE]...: mlm:0.15, mlm,unit=word, clm (repeatable; "
                   "default: the run's evaluation.objectives)")
      ->allow_extra_args(false);
  verb->add_option("--set", command->set, "override an evaluation setting: evaluation.KEY=VALUE (repeatable)")
      ->allow_extra_args(false);
  auto* text = add_texts(*verb, *command);
  verb->add_option("--tokens", command->tokens, "prepared folder, scored on its held-out split (default: the run's)")
      ->excludes(text);
  verb->add_option("--sequences", command->sequences,
                   "number of sequences to score (default: the run's evaluation.sequences)");
  add_generation(*verb, *command);
  add_suites(*verb, command->suites);
  add_task_figures(*verb, *figures);
  verb->add_flag("--json", command->json, json_help);
  verb->footer(evaluate_footer);
  verb->callback([command, figures, verb, &globals] {
    if (!figures->task.empty() || !figures->predictions.empty()) {
      require<ConfigError>(command->runs.empty(), "--predictions are judged without a run; leave out ",
                           command->runs.empty() ? "" : command->runs.front());
      figures->json = command->json;
      return print_task_figures(*figures);
    }
    globals.exit_code = evaluate_runs(*verb, *command);
  });
}

}  // namespace cloze
