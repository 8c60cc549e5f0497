#include "tasks/row_check.h"

#include <algorithm>

namespace cloze {

namespace {

bool is_part(int64_t begin, int64_t end, int64_t size) { return begin >= 0 && begin <= end && end <= size; }

bool gold_fits(const TaskItem& item, TaskKind kind, int64_t labels) {
  const auto is_label = [&](int64_t id) { return id >= unknown_label && id < labels; };
  if (std::holds_alternative<NoGold>(item.gold)) return true;
  const auto* one = std::get_if<GoldLabel>(&item.gold);
  const auto* several = std::get_if<GoldLabels>(&item.gold);
  const auto* spans = std::get_if<GoldAnswers>(&item.gold);
  switch (kind) {
    case TaskKind::classification:
      return one && is_label(one->id);
    case TaskKind::multilabel:
      return several && std::ranges::all_of(several->ids, is_label);
    case TaskKind::regression:
      return std::holds_alternative<GoldValue>(item.gold);
    case TaskKind::tagging:
      return several && several->ids.size() == item.words.size() && std::ranges::all_of(several->ids, is_label);
    case TaskKind::choice:
      return one && one->id >= 0 && one->id < std::ssize(item.candidates);
    case TaskKind::spans:
      break;
  }
  const auto is_answer = [&](const AnswerSpan& answer) {
    return answer.begin >= 0 && answer.begin <= std::ssize(item.second) - std::ssize(answer.text);
  };
  return spans && std::ranges::all_of(spans->answers, is_answer);
}

bool labels_fit(const TaskRow& row, TaskKind kind, int64_t labels) {
  const auto is_flag = [](int64_t has) { return has == 0 || has == 1; };
  const auto is_label = [&](int64_t id) { return id == no_label || (id >= 0 && id < labels); };
  if (kind == TaskKind::classification && !is_label(row.label)) return false;
  if (row.labels.empty()) return true;  // of an item whose labels nobody knows, or of another kind
  if (kind == TaskKind::multilabel) return std::ssize(row.labels) == labels && std::ranges::all_of(row.labels, is_flag);
  return kind == TaskKind::tagging && row.labels.size() == row.ids.size() && std::ranges::all_of(row.labels, is_label);
}

bool row_fits(const TaskRow& row, const TaskItem& item, TaskKind kind, int64_t labels) {
  constexpr int32_t types = 3;  // XLNet's, which has most
  const auto size = std::ssize(row.ids);
  const auto is_place = [&](int64_t at) { return at >= 0 && at < size; };
  const auto is_type = [](int32_t type) { return type >= 0 && type < types; };
  const auto is_word = [&](int64_t word) { return word >= -1 && word < std::ssize(item.words); };
  const auto is_context = [&](const std::array<int64_t, 2>& bytes) {
    return bytes == std::array<int64_t, 2>{-1, -1} || is_part(bytes[0], bytes[1], std::ssize(item.second));
  };
  const auto has_one_each = [&](const auto& list) { return list.empty() || std::ssize(list) == size; };
  const bool has_places = is_place(row.class_token) && is_part(row.first_begin, row.first_end, size) &&
                          is_part(row.second_begin, row.second_end, size);
  const bool has_lists = has_one_each(row.segments) && has_one_each(row.words) && has_one_each(row.bytes) &&
                         (kind != TaskKind::spans || std::ssize(row.bytes) == size);
  const bool has_answer = row.start == no_label ? row.end == no_label : is_place(row.start) && is_place(row.end);
  return has_places && has_lists && has_answer && labels_fit(row, kind, labels) &&
         std::ranges::all_of(row.segments, is_type) && std::ranges::all_of(row.words, is_word) &&
         std::ranges::all_of(row.bytes, is_context);
}

}  // namespace

bool rows_fit(const TaskItem& item, std::span<const TaskRow> rows, TaskKind kind, int64_t labels) {
  const bool is_counted = kind == TaskKind::choice ? rows.size() == item.candidates.size() : !rows.empty();
  return is_counted && gold_fits(item, kind, labels) &&
         std::ranges::all_of(rows, [&](const TaskRow& row) { return row_fits(row, item, kind, labels); });
}

}  // namespace cloze
