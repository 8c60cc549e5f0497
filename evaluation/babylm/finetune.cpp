#include "evaluation/babylm/finetune.h"

#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/log.h"
#include "core/process.h"
#include "core/text.h"
#include "evaluation/babylm/results.h"
#include "run/checkpoints/checksums.h"
#include "run/checkpoints/chosen_checkpoint.h"
#include "run/config/config.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "study/execution/process.h"
#include "study/measures/task_value.h"
#include "tasks/scores/scores.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

constexpr int64_t published_seed = 42;
constexpr const char* recipe = "babylm-2026";

/// A text in single quotes of YAML.
std::string in_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string file_of(const BabylmGlueTask& task, const std::string& part) {
  return concat(task.name, ".", part, ".jsonl");
}

/// The folder of the tasks' files: `data`, or where the published layout has it below. Throws DataError without them.
std::string folder_of_tasks(const std::string& data) {
  for (const auto* below : {"", "glue_filtered", "full_eval/glue_filtered"}) {
    auto folder = fs::absolute(fs::path(data) / below).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    std::vector<std::string> missing;
    for (const auto& task : babylm_finetuned)
      for (const auto* part : {"train", "valid"})
        if (!fs::exists(folder / file_of(task, part))) missing.push_back(file_of(task, part));
    if (missing.empty()) return folder.string();
    const bool has_some = missing.size() < 2 * babylm_finetuned.size();
    require<DataError>(!has_some, folder.string(), ": has no ", listed(missing),
                       "; complete the folder from the evaluation data of the challenge");
  }
  fail<DataError>(data, ": has no ", file_of(babylm_finetuned[0], "train"),
                  " and no other file of the tasks; name the folder glue_filtered of the challenge's evaluation data");
}

/// One fine-tuning of a task.
struct BabylmTuning {
  const BabylmGlueTask& task;
  std::string name;  ///< of its folder: published, published-left, seed-42
  int64_t seed;
  std::vector<std::string> set;  ///< overrides of the recipe
};

BabylmTuning published_tuning(const BabylmGlueTask& task, PaddingSide padding) {
  const std::string chosen_on_test = "task.data.valid=test";
  if (padding == PaddingSide::right) return {task, "published", published_seed, {chosen_on_test}};
  return {task, "published-left", published_seed, {chosen_on_test, "objectives.0.head=babylm-left"}};
}

BabylmTuning own_tuning(const BabylmGlueTask& task, int64_t seed) {
  return {task, concat("seed-", seed), seed, {"objectives.0.head=babylm-pooled"}};
}

/// What a finished run predicts for the published valid part.
struct BabylmTuned {
  BabylmScores scores{};
  std::vector<int64_t> labels{};
  double majority = 0;
};

/// Accuracy of the most frequent label.
double majority_of(const std::vector<TaskItem>& items, int64_t labels) {
  std::vector<int64_t> counts(static_cast<size_t>(labels));
  for (const auto& item : items)
    if (item.gold.label >= 0) ++counts.at(static_cast<size_t>(item.gold.label));
  return static_cast<double>(*std::max_element(counts.begin(), counts.end())) / static_cast<double>(items.size());
}

BabylmTuned read_tuned(const BabylmGlueTask& task, const std::string& run) {
  const auto [prepared, items, predictions] = read_judged_test(run);
  const auto& config = prepared.task.config;
  const auto& labels = prepared.task.labels;
  const AnyTaskKind kind = "classification";
  require<DataError>(config.task == task.name && config.kind == kind && labels.size() == task.labels && !items.empty(),
                     run, ": is fine-tuned on another task than ", task.name,
                     " of the challenge; name another folder with --run");
  BabylmTuned tuned{.majority = majority_of(items, labels.size())};
  for (const auto& one : predictions) tuned.labels.push_back(one.answer.label);
  const TaskScores scores{.scores = values_of(kind, items, labels, predictions)};
  const auto add = [&](const char* metric) {
    const auto* score = score_of(scores, metric);
    tuned.scores.emplace_back(metric, score->is_defined() ? score->value : 0);  // undefined is 0 there, too
  };
  add("accuracy");
  if (task.labels == 2) add("f1"), add("mcc");
  return tuned;
}

class BabylmTuner {
 public:
  explicit BabylmTuner(const BabylmFinetuneRequest& request) : request_(request) {
    data_ = folder_of_tasks(request.data);
    const auto run = run_directory_of(request.run);
    const auto model = babylm_model_name(run);
    folder_ = request.folder.empty() ? "runs/" + model + "-babylm" : request.folder;
    results_.path = (fs::path(request.results) / model / "main" / "finetune").string();
    results_.weights["main"] = weights_fingerprint(request.run);
    is_decoder_ = backbone_of(decode<RunConfig>(load_run_config(run + "/run.yaml")).model).is_decoder();
    for (const auto& task : babylm_finetuned) keep(task_file(task), babylm_task_file(task, data_), "other data");
    keep_request();
  }

  BabylmFinetuning finetune() {
    check_items();
    BabylmFinetuning finetuning{.results = results_.path};
    for (const auto& task : babylm_finetuned) finetuning.tasks.push_back(published(task));
    for (size_t t = 0; t < finetuning.tasks.size(); ++t)
      for (int64_t s = 0; s < request_.seeds; ++s)
        finetuning.tasks[t].own.push_back(tuned(own_tuning(babylm_finetuned[t], published_seed + s)).scores);
    finetuning.notes = notes(finetuning);
    return finetuning;
  }

 private:
  std::string task_file(const BabylmGlueTask& task) const { return concat(folder_, "/", task.name, ".yaml"); }

  /// Throws DataError for a damaged item of any task, hours before its turn would come.
  void check_items() const {
    const std::string of_task = "task.";
    TaskOptions options;
    for (const auto& one : request_.set)
      if (one.starts_with(of_task)) options.overrides.push_back(one.substr(of_task.size()));
    for (const auto& task : babylm_finetuned) open_task(task_file(task), options);
  }

  /// False while nothing was trained in the folder, as after a command that was mistyped.
  bool has_runs() const {
    for (const auto& task : babylm_finetuned) {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(concat(folder_, "/", task.name), none))
        if (fs::exists(entry.path() / "run.yaml")) return true;
    }
    return false;
  }

  /// What all fine-tunings of the folder have in common, apart from the names of the files of the data.
  nlohmann::json noted_request() const {
    const auto run = fs::absolute(request_.run + "/").lexically_normal().parent_path().string();
    const auto weights = chosen_checkpoint(request_.run, CheckpointChoice::best) + "/manifest.json";
    std::string items;
    for (const auto& task : babylm_finetuned)
      for (const auto* part : {"train", "valid"}) items += file_hash(data_ + "/" + file_of(task, part));
    return {{"run", run}, {"set", request_.set}, {"weights", file_hash(weights)}, {"items", hash_hex(items)}};
  }

  /// Writes the request, or finds it there, with runs. Throws ConfigError for another one.
  void keep_request() const {
    const auto file = folder_ + "/request.json";
    auto wanted = noted_request();
    const auto text = json_text(wanted) + "\n";
    if (!fs::exists(file) || !has_runs()) return write(file, text);
    const auto request = parse_json(read_text(file));
    for (const auto* key : {"weights", "items"})
      if (request.is_object() && !request.contains(key)) wanted.erase(key);  // of a version that did not note them
    require_same(request == wanted, file, "another run, of other weights or items, or of other settings");
  }

  /// Writes a file, or finds it there, with runs. Throws ConfigError for another one, which is of `what`.
  void keep(const std::string& file, const std::string& text, const char* what) const {
    if (!fs::exists(file) || !has_runs()) return write(file, text);
    require_same(read_text(file) == text, file, what);
  }

  static void require_same(bool is_same, const std::string& file, const char* what) {
    require<ConfigError>(is_same, file, ": is of ", what,
                         ", and so are the runs beside it; name another folder with --run");
  }

  /// Writes a file in the folder of the runs.
  void write(const std::string& file, const std::string& text) const {
    std::error_code fault;
    fs::create_directories(folder_, fault);
    require<Error>(!fault, folder_, ": cannot be created (", fault.message(), ")");
    write_atomic(file, text);
  }

  BabylmFinetuned published(const BabylmGlueTask& task) const {
    const auto done = tuned(published_tuning(task, request_.padding));
    write_finetuning(results_, task.name, done.scores, done.labels);
    const auto other = [&](int64_t label) { return label != done.labels.front(); };
    return {.task = task.name,
            .majority = done.majority,
            .published = done.scores,
            .is_constant = std::none_of(done.labels.begin(), done.labels.end(), other)};
  }

  /// Completes a fine-tuning, and reads it.
  BabylmTuned tuned(const BabylmTuning& tuning) const {
    const auto of_task = concat(folder_, "/", tuning.task.name), run = of_task + "/" + tuning.name;
    for (const auto& folder : {of_task, run})
      require<ConfigError>(!fs::is_symlink(folder), folder,
                           ": is a link, through which another folder would be changed; put a folder of its own there");
    if (!fs::exists(run + "/summary.json")) train(tuning, run);
    const auto done = read_tuned(tuning.task, run);
    log_info("babylm",
             concat(tuning.task.name, ", ", tuning.name, ": accuracy ", fixed(done.scores.front().second, 4)));
    return done;
  }

  void train(const BabylmTuning& tuning, const std::string& run) const {
    const auto log = run + ".log";
    log_info("babylm", concat(tuning.task.name, ", ", tuning.name, " is fine-tuned; its log is ", log));
    fs::create_directories(fs::path(run).parent_path());
    const auto child = start_process(command_of(tuning, run), log, /*inherited=*/-1);
    int status = 0;
    waitpid(child, &status, 0);
    const auto failure = failure_of(status, log);
    require<Error>(failure.empty(), run, ": ", failure, "; the same command goes on from there, and the log is ", log);
  }

  std::vector<std::string> command_of(const BabylmTuning& tuning, const std::string& run) const {
    if (run_folder(run) == RunFolder::saved) return {program_path(), "pretrain", "--run", run, "--resume"};
    std::vector<std::string> command{program_path(), "finetune", request_.run, task_file(tuning.task),
                                     "--like",       recipe,     "--run",      run};
    const auto set = [&](const std::string& value) { command.insert(command.end(), {"--set", value}); };
    set(concat("train.seed=", tuning.seed));
    for (const auto* values : {&tuning.set, &request_.set})
      for (const auto& value : *values) set(value);
    return command;
  }

  std::vector<std::string> notes(const BabylmFinetuning& finetuning) const {
    std::vector<std::string> all{"the published program chooses the epoch on the items that its figures are of"};
    if (is_decoder_)
      all.emplace_back(
          "the published program reads the first token of a text, at which a decoder has read nothing else (issue 38 "
          "of its repository of 2025), and with --causal --take_final it stops; our figures read the last token");
    std::vector<std::string> constant;
    for (const auto& task : finetuning.tasks)
      if (task.is_constant) constant.push_back(task.task);
    if (!constant.empty()) all.push_back("as published, every item has the same label: " + listed(constant));
    return all;
  }

  const BabylmFinetuneRequest& request_;
  std::string data_, folder_;
  ResultsFolder results_;
  bool is_decoder_ = false;
};

double mean_accuracy(const std::vector<BabylmScores>& seeds) {
  const auto add = [](double sum, const BabylmScores& one) { return sum + one.front().second; };
  return std::accumulate(seeds.begin(), seeds.end(), 0.0, add) / static_cast<double>(seeds.size());
}

std::string percent_cell(double fraction) { return fixed(100 * fraction, 2); }

/// The accuracies of all seeds: `61.10, 59.80`.
std::string of_each_seed(const std::vector<BabylmScores>& seeds) {
  std::vector<std::string> cells;
  for (const auto& one : seeds) cells.push_back(percent_cell(one.front().second));
  return listed(cells);
}

nlohmann::json json_of_scores(const BabylmScores& scores) {
  auto document = nlohmann::json::object();
  for (const auto& [metric, value] : scores) document[metric] = value;
  return document;
}

}  // namespace

std::string babylm_task_file(const BabylmGlueTask& task, const std::string& data) {
  std::string labels;
  for (int label = 0; label < task.labels; ++label)
    labels += concat(label > 0 ? ", " : "", "\"", label, "\": \"", label, "\"");
  const std::string metric = task.metric;
  const auto file = [&](const char* part) { return in_quotes(data + "/" + file_of(task, part)); };
  return concat(
      "# ", task.name, " of the BabyLM Challenge.\ntask: ", task.name,
      "\nkind: classification\ndata:\n  train: ", file("train"), "\n  test: ", file("valid"),
      "\n  text: ", in_quotes(task.text), "\n  second: ", in_quotes(task.second), "\n  label: label\nlabels: {", labels,
      "}\nmetric: ", metric == "accuracy" ? "accuracy" : "[" + metric + ", accuracy]", "\nlike: ", recipe, "\n");
}

BabylmFinetuning finetune_babylm(const BabylmFinetuneRequest& request) {
  require<ConfigError>(request.seeds >= 0, "--seeds is ", request.seeds,
                       "; give the number of fine-tunings by our own rules, or 0 for none");
  return BabylmTuner(request).finetune();
}

Table table_of(const BabylmFinetuning& finetuning) {
  Table table{.title = "Accuracy on the valid parts of BabyLM's tasks, in percent"};
  table.header = columns_of_numbers({"task", "majority", "published program", "our rules", "each seed"});
  double majority = 0, published = 0, own = 0;
  const auto count = static_cast<double>(finetuning.tasks.size());
  for (const auto& task : finetuning.tasks) {
    const bool has_own = !task.own.empty();
    const double mean = has_own ? mean_accuracy(task.own) : 0;
    majority += task.majority / count;
    published += task.published.front().second / count;
    own += mean / count;
    table.rows.push_back({task.task, percent_cell(task.majority), percent_cell(task.published.front().second),
                          has_own ? percent_cell(mean) : "", task.own.size() > 1 ? of_each_seed(task.own) : ""});
  }
  const bool has_own = !finetuning.tasks.empty() && !finetuning.tasks[0].own.empty();
  table.rows.push_back({"mean", percent_cell(majority), percent_cell(published), has_own ? percent_cell(own) : "", ""});
  drop_empty_columns(table);
  return table;
}

nlohmann::json to_json(const BabylmFinetuning& finetuning) {
  auto tasks = nlohmann::json::array();
  for (const auto& task : finetuning.tasks) {
    auto own = nlohmann::json::array();
    for (const auto& seed : task.own) own.push_back(json_of_scores(seed));
    tasks.push_back({{"task", task.task},
                     {"majority", task.majority},
                     {"published", json_of_scores(task.published)},
                     {"constant", task.is_constant},
                     {"own", own}});
  }
  return {{"results", finetuning.results}, {"tasks", tasks}, {"notes", finetuning.notes}};
}

}  // namespace cloze
