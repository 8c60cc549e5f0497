// The answer to a question in a context, or that there is none.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/spelling.h"
#include "core/text.h"
#include "tasks/scores/label_names.h"
#include "tasks/scores/task_scorer.h"
#include "tasks/files/squad_file.h"
#include "tasks/inspect_task.h"
#include "tasks/kinds/answers.h"
#include "tasks/kinds/spans/rows.h"
#include "tasks/task_record.h"

namespace cloze {

TaskScorer answer_scorer(const ScoredItems& scored);
TaskScorer threshold_scorer(const ScoredItems& scored);  // with no-answer scores
bool is_exact_answer(const TaskItem& item, const TaskPrediction& prediction, const ScoredItems& scored);

namespace {

/// Code points before a byte of a text.
int64_t code_points_before(const std::string& text, int64_t byte) {
  return std::count_if(text.begin(), text.begin() + std::min<int64_t>(byte, std::ssize(text)),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

struct Spans final : TaskKindRules {
  Spans()
      : TaskKindRules({.name = "spans",
                       .form = AnswerForm::spans,
                       .head = "spans",
                       .files = {.formats = {TaskFormat::squad},
                                 .lacking = "places of answers; write squad or jsonl",
                                 .lacking_here = "places of answers; write `format: squad` or jsonl",
                                 .keys = {.text = "question", .second = "context", .label = "answers"}},
                       .has_answers = true,
                       .reads_windows = true,
                       .texts = {"question", "context"},
                       .gold_name = "answers",
                       .key = "answer",
                       .floor_name = "no answer"}) {}

  bool read_gold(TaskRecord& record, TaskItem& item) const override {
    const auto& cell = record.label_cell();
    if (!cell.is_list || cell.starts.size() != cell.texts.size())
      fail<DataError>(record.where(), ": '", shortened(record.label_name(0)),
                      "' is no list of answers, [{text, answer_start}]");
    TaskAnswer gold;
    if (!place_answers(item.second, CodePoints(item.second), cell.texts, cell.starts, record.where(), gold,
                       record.misplaced))
      return false;
    item.gold = std::move(gold);
    return true;
  }
  bool gold_fits(const TaskItem& item, int64_t) const override {
    return std::ranges::all_of(item.gold.spans, [&](const AnswerSpan& answer) {
      return answer.begin >= 0 && answer.begin <= std::ssize(item.second) - std::ssize(answer.text);
    });
  }

  /// None has an answer, and too few of the training split have none.
  std::string unjudged(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train) const override {
    const auto reason = lacking_beyond_chance(items, train, is_unanswerable);
    return reason.empty() ? "" : "no question has an answer" + reason;
  }

  void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                RowCounts& counts) const override {
    add_context_rows(maker, item, number, rows, counts);
  }
  bool target_fits(const TaskRow& row, int64_t) const override {
    const auto is_place = [&](int64_t at) { return at >= 0 && at < std::ssize(row.ids); };
    const auto& places = row.gold.labels;
    return row.bytes.size() == row.ids.size() &&
           (places.empty() || (places.size() == 2 && std::ranges::all_of(places, is_place)));
  }

  void predict(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
               const PredictionSetting& setting, ItemPrediction& made) const override {
    std::vector<SpanLogits> sides;
    std::optional<double> best;  // of the window that has the answer, or that gets by best without
    for (size_t r = 0; r < rows.size(); ++r) {
      auto& side = sides.emplace_back();
      for (size_t t = 0; t < rows[r].ids.size(); ++t) {
        side.start.push_back(logits[r].values[2 * t]);
        side.end.push_back(logits[r].values[2 * t + 1]);
      }
      const auto& places = rows[r].gold.labels;
      if (places.empty()) continue;
      const double loss = (log_sum_exp(side.start) - side.start[static_cast<size_t>(places[0])] +
                           log_sum_exp(side.end) - side.end[static_cast<size_t>(places[1])]) /
                          2;
      best = !best || std::isnan(loss) ? loss : std::max(*best, loss);  // one that is no number stays
    }
    made.answer = answer_of(item.second, rows, sides, setting.answers);
    made.prediction.no_answer = made.answer.margin;
    decide_answer(made, setting);
    if (best) made.loss = *best;
    made.count = best ? 1 : 0;
  }
  nlohmann::ordered_json json_of(const ItemPrediction& made, const TaskItem& item, const TaskLabels&) const override {
    const auto text = made.prediction.answer.text();
    nlohmann::ordered_json line{{"id", item.id}, {"answer", text}, {"start", nullptr}, {"end", nullptr}};
    const auto& best = made.answer.n_best;
    const auto place = [&](const AnswerCandidate& one, nlohmann::ordered_json& to) {
      to["start"] = code_points_before(item.second, one.begin);
      to["end"] = code_points_before(item.second, one.end);
    };
    if (!best.empty() && !text.empty()) place(best.front(), line);
    line["score"] = best.empty() ? made.answer.null_score : best.front().score;
    line["no_answer"] = made.prediction.no_answer;
    auto& list = line["n_best"] = nlohmann::ordered_json::array();
    for (const auto& one : best) {
      nlohmann::ordered_json entry{{"answer", one.text}, {"score", one.score}, {"probability", one.probability}};
      place(one, entry);
      list.push_back(std::move(entry));
    }
    return line;
  }
  TaskAnswer read_answer(const nlohmann::json& value, const LabelNames&, const std::string& where) const override {
    require<DataError>(value.is_string(), where, ": ", shown_value(value), " is no answer, which is a text");
    return text_answer(value.get<std::string>());
  }
  std::string shown(const std::string& text) const override { return text.empty() ? "(no answer)" : text; }

  std::vector<TaskScorerMaker> scorers(const ScoredItems& scored) const override {
    if (scored.options->has_no_answer_scores) return {answer_scorer, threshold_scorer};
    return {answer_scorer};
  }
  bool is_right(const TaskItem& item, const TaskPrediction& prediction, const ScoredItems& scored) const override {
    return is_exact_answer(item, prediction, scored);
  }
  void write_target(const TaskRow& row, const TaskItem&, nlohmann::ordered_json& to) const override {
    const auto& places = row.gold.labels;
    to["start"] = label_or_null(places.empty() ? no_label : places[0]);
    to["end"] = label_or_null(places.empty() ? no_label : places[1]);
  }
  std::string target_text(const TaskRow& row, const TaskItem& item, const TaskLabels&) const override {
    const auto& places = row.gold.labels;
    if (places.empty()) return "no known answer";
    const auto begin = row.bytes[static_cast<size_t>(places[0])][0], end = row.bytes[static_cast<size_t>(places[1])][1];
    if (begin < 0) return "no answer here";
    return concat("'", visible(item.second.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin))),
                  "', tokens ", places[0], " to ", places[1]);
  }
  void write_counts(const InspectedSplit& split, nlohmann::ordered_json& to) const override {
    to["items_without_answer"] = split.rows.items_without_answer;
    to["windows_without_answer"] = split.rows.windows_without_answer;
    to["split_answers"] = split.rows.split_answers;
    to["lost_answers"] = split.rows.lost_answers;
    to["answers_without_token"] = split.rows.answers_without_token;
  }
};

}  // namespace

std::unique_ptr<TaskKindRules> make_spans() { return std::make_unique<Spans>(); }

}  // namespace cloze
