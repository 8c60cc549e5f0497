#include "evaluation/attribution/attribute.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/text.h"
#include "evaluation/attribution/attribution_output.h"
#include "evaluation/attribution/explained_items.h"
#include "evaluation/tasks/item_source.h"
#include "evaluation/tasks/task_runs.h"
#include "tasks/inspect_task.h"

namespace cloze {

namespace {

constexpr size_t items_at_once = 64;

/// Explains the predictions for items, some at a time.
class Attributor {
 public:
  explicit Attributor(const AttributeRequest& command)
      : command_(command),
        opened_(open_task_run(command.run, command.checkpoint, command.task)),
        maker_(row_maker(opened_)),
        baseline_(baseline_id(command.baseline, opened_.run.tokenizer)) {
    require_embeddings(*opened_.run.network);
    for (auto [name, param] : collect_params(*opened_.run.network)) param.set_frozen(true);
  }

  void run() {
    const auto& task = opened_.task.task;
    if (command_.file.empty()) {
      explain({item_of_text(command_.text, task)});
    } else {
      const auto read = ItemSource(task, command_.file).read(items_at_once, command_.skip_bad, [&](TaskSplit& split) {
        explain(split.items);
      });
      for (const auto& note : read.notes) log_info("task", note);
    }
    if (const auto note = truncation_note("items", counts_); !note.empty()) log_info("task", note);
    finish();
  }

 private:
  static TaskRowMaker row_maker(const TaskRun& opened) {
    require_tokenizer(opened.run);
    const auto& task = opened.task.task;
    return {opened.run.tokenizer, special_token_template(opened.run.tokenizer, opened.run.config.model),
            row_options(task.config, task.labels)};
  }

  void explain(const std::vector<TaskItem>& items) {
    std::vector<TaskRow> rows;
    for (size_t i = 0; i < items.size(); ++i) maker_.add(items[i], static_cast<int64_t>(i), rows, counts_);
    auto& network = *opened_.run.network;
    const auto predictions = predict_items(network, opened_.task, items, rows);
    require_finite(predictions, opened_.run.folder);
    if (opened_.task.task.config.kind->generates) rows = with_targets(items, predictions);
    const auto [scores, explained] =
        explained_items(opened_.task, items, rows, predictions, command_.label, opened_.run.tokenizer);
    const ScoredRows in{network, opened_.task.objectives, rows, scores, baseline_};
    const auto made = attributions_of(in, explained, command_);
    const auto faithful = faithfulness_of(in, explained, made, command_.seed);
    for (size_t i = 0; i < made.size(); ++i) {
      means_.add(count_ + explained[i].item, faithful[i]);
      show({explained[i], made[i], faithful[i]});
    }
    count_ += items.size();
    scores_ += made.size();
  }

  /// The rows of items with the texts that are generated for them as targets.
  std::vector<TaskRow> with_targets(std::vector<TaskItem> items, const std::vector<ItemPrediction>& predictions) const {
    std::vector<TaskRow> rows;
    RowCounts uncounted;
    for (size_t i = 0; i < items.size(); ++i) {
      items[i].gold = predictions[i].prediction.answer;
      maker_.add(items[i], static_cast<int64_t>(i), rows, uncounted);
    }
    return rows;
  }

  void show(const ShownScore& shown) {
    if (command_.json) print_data(json_text(json_of(shown, command_.method)) + "\n");
    if (!command_.out.empty()) page_ += html_of(shown, command_.method);
    if (command_.json || !command_.out.empty()) return;
    print_text(text_of(shown, command_.method, has_colours(STDOUT_FILENO), columns) + "\n", /*at_once=*/true);
  }

  void finish() {
    const std::string nothing = opened_.task.task.config.kind->generates ? "the texts that are generated are empty"
                                : command_.label.empty() ? "no word has a tag but O; name a label by --label"
                                                         : command_.label + " is predicted nowhere";
    require<DataError>(scores_ > 0, "nothing is explained: ", nothing);
    if (command_.json)
      print_data(json_text(nlohmann::ordered_json{{"items", count_}, {"faithfulness", means_.json()}}) + "\n");
    if (!command_.out.empty()) {
      const auto& tokenizer = opened_.run.tokenizer;
      write_atomic(command_.out, page_of({.run = command_.run,
                                          .method = command_.method,
                                          .baseline = tokenizer.readable_piece(baseline_),
                                          .items = count_},
                                         page_, means_));
      log_result("attribute", concat(counted(count_, "item"), ", ", words_of(command_.method), " -> ", command_.out));
    }
    if (command_.json || !command_.out.empty()) return;
    print_text(to_text(means_.table(), columns) + "\n" + wrapped("", faithfulness_words, columns, 0));
  }

  static constexpr int64_t columns = 80;
  const AttributeRequest& command_;
  TaskRun opened_;
  TaskRowMaker maker_;
  int64_t baseline_;
  RowCounts counts_{};
  FaithfulnessMeans means_{};
  std::string page_{};
  uint64_t count_ = 0, scores_ = 0;
};

}  // namespace

void attribute(const AttributeRequest& request) { Attributor(request).run(); }

}  // namespace cloze
