#include <nlohmann/json.hpp>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/json.h"
#include "core/print.h"
#include "data/tokenizer.h"
#include "models/backbone_config.h"
#include "models/families/model_config.h"
#include "run/config/load_config.h"
#include "run/run_tokenizer.h"
#include "tasks/inspect_task.h"

namespace cloze {

namespace {

struct InspectTaskOptions {
  std::string source, task;
  std::vector<std::string> set{};
  int64_t examples = 3;
  bool skip_bad = false, json = false;
};

/// Who reads the texts of a task.
struct TaskReader {
  Tokenizer tokenizer;
  SpecialTokenTemplate row_template;
  Rng order;
};

TaskReader reader_of(RunConfig config, const Tokenizer& tokenizer) {
  auto& model = backbone_of(config.model);  // a config that has not been trained has the ids of its family's defaults
  model.pad_token_id = tokenizer.special().filler();
  model.eos_token_id = tokenizer.special().sep;
  return {tokenizer, special_token_template(tokenizer, config.model),
          Rng(rng_of(config.train, RandomStream::order).key("train"))};
}

/// The reader that a path names: a run or its step folder, a config with prepared text, prepared text or a tokenizer.
TaskReader open_reader(const InspectTaskOptions& options) {
  const auto kind = kind_of_path(options.source);
  const bool is_run = kind == PathKind::run || kind == PathKind::step;
  const bool is_config = kind == PathKind::file || kind == PathKind::absent;
  require<ConfigError>(is_config || options.set.empty(), "--set is of a config, and ", options.source,
                       " is none; leave it out");
  if (is_run) {
    const auto run = kind == PathKind::step ? run_of_step(options.source) : options.source;
    const auto tokenizer = open_run_tokenizer(run);
    require<CheckpointError>(tokenizer.has_value(), run, ": ", no_tokenizer(run));
    require_run_config(run);
    // unchecked: an imported network without a head, which cannot go on as it is, reads the task all the same
    return reader_of(decode<RunConfig>(load_run_config(run + "/run.yaml")), *tokenizer);
  }
  if (is_config) {
    const auto config = read_config(options.source, options.set);
    require<ConfigError>(!config.data.tokens.empty(), options.source,
                         ": has no 'data.tokens', whose tokenizer reads the task; add --set data.tokens=FOLDER");
    check_tokens_path(config.data.tokens);
    return reader_of(config, Tokenizer::open(tokenizer_of(config.data.tokens)));
  }
  check_tokenizer_path(options.source);
  const auto tokenizer = Tokenizer::open(tokenizer_of(options.source));
  return {tokenizer, special_token_template(tokenizer), Rng(Rng(1).key("train"))};
}

}  // namespace

void add_inspect_task(CLI::App& inspect) {
  auto* verb = inspect.add_subcommand("task", "show the labels and lengths of a task, what is cut, and training rows");
  auto options = std::make_shared<InspectTaskOptions>();
  verb->add_option("run", options->source, "run, config with data.tokens, prepared text or tokenizer")->required();
  verb->add_option("task", options->task, "task file (YAML), or the name of a ready task: sst2")->required();
  verb->add_option("--set", options->set, set_help)->allow_extra_args(false);
  verb->add_option("--examples", options->examples, "examples to show, in the order of training")
      ->capture_default_str();
  verb->add_flag("--skip-bad", options->skip_bad, skip_bad_help);
  verb->add_flag("--json", options->json, json_help);
  verb->footer("Example:\n  cloze inspect task runs/wiki sst2.yaml --examples 5");
  verb->callback([=] {
    const auto reader = open_reader(*options);
    auto file = task_file(options->task);
    if (file.empty()) check_task_name(options->task, /*is_task=*/true);
    check_task_file(file.empty() ? options->task : file);
    if (file.empty()) file = config_file(options->task, Declared::task);
    const auto task = open_task(file, {.skip_bad = options->skip_bad});
    const TaskRowMaker maker(reader.tokenizer, reader.row_template, row_options(task.config, task.labels));
    const auto inspection = inspect_task(task, maker, reader.order, options->examples);
    if (options->json)
      print_data(json_text(to_json(inspection, task)) + "\n");
    else
      print_text(inspection_report(inspection, task, reader.tokenizer));
  });
}

}  // namespace cloze
