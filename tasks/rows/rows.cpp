// Rows of whole texts and of candidates.
#include "tasks/rows/rows.h"

#include <algorithm>

#include "core/error.h"

namespace cloze {

namespace {

void count_row(RowCounts& counts, const TaskRow& row) {
  ++counts.rows;
  if (counts.lengths.size() <= row.ids.size()) counts.lengths.resize(row.ids.size() + 1);
  ++counts.lengths[row.ids.size()];
}

/// The tokens of a text that a row keeps of them.
std::vector<int32_t> truncated(const std::vector<int32_t>& ids, int64_t kept, const Truncation& truncation) {
  const auto* both_ends = std::get_if<HeadTailTruncation>(&truncation);
  const auto front = both_ends ? std::min(kept, both_ends->head_tail) : kept;
  std::vector<int32_t> left(ids.begin(), ids.begin() + front);
  left.insert(left.end(), ids.end() - (kept - front), ids.end());
  return left;
}

}  // namespace

TaskRowMaker::TaskRowMaker(const Tokenizer& tokenizer, const SpecialTokenTemplate& row_template,
                           const RowOptions& options)
    : tokenizer_(tokenizer),
      row_template_(row_template),
      options_(options),
      max_length_(options.max_length > 0 ? std::min(options.max_length, row_template.max_length)
                                         : row_template.max_length) {
  if (options.kind->generates) make_room_for_target();
  require<ConfigError>(room(true) >= 2, "a row of ", max_length_, " tokens has no room for two texts beside ",
                       row_template.special_tokens(true), " special tokens; raise max_length");
}

/// Of a decoder, whose positions source, end token and target share.
void TaskRowMaker::make_room_for_target() {
  if (!row_template_.joins_target) return;
  require<ConfigError>(row_template_.end >= 0,
                       "a decoder tells a source from its target by the token that ends a text, ",
                       "and the tokenizer has none; prepare the text again with --special-tokens");
  const auto left = row_template_.max_length - std::max(most_target(), options_.most_new) - 1;
  require<ConfigError>(left >= 4, "the model has ", row_template_.max_length, " positions, of which a target takes ",
                       std::max(most_target(), options_.most_new), ", so that none are left for a source; lower ",
                       "max_target and decoding.max_new_tokens");
  max_length_ = std::min(max_length_, left);
}

int64_t TaskRowMaker::most_target() const {
  const auto longest = row_template_.joins_target ? row_template_.max_length / 2 : row_template_.max_length;
  return options_.max_target > 0 ? std::min(options_.max_target, longest) : longest;
}

int64_t TaskRowMaker::length_of(const TaskRow& row) const {
  const auto source = std::ssize(row.ids), target = std::ssize(row.target);
  return row_template_.joins_target ? source + target : std::max(source, target);
}

TaskRow TaskRowMaker::framed(std::span<const int32_t> first, std::span<const int32_t> second, bool is_pair) const {
  TaskRow row;
  auto& ids = row.ids;
  ids.reserve(first.size() + second.size() + static_cast<size_t>(row_template_.special_tokens(is_pair)));
  const auto at = [&] { return static_cast<int64_t>(ids.size()); };
  const auto append = [&](std::span<const int32_t> tokens) { ids.insert(ids.end(), tokens.begin(), tokens.end()); };
  append(row_template_.before);
  row.first_begin = at();
  append(first);
  row.first_end = at();
  if (is_pair) append(row_template_.between);
  row.second_begin = at();
  append(second);
  row.second_end = at();
  append(row_template_.after);
  if (row_template_.has_segments) {
    row.segments.assign(ids.size(), 0);
    if (is_pair) std::fill(row.segments.begin() + row.second_begin, row.segments.end(), 1);
    if (row_template_.last_segment_is_own) row.segments.back() = 2;
  }
  row.class_token = position_of(row_template_.class_place, at());
  return row;
}

void TaskRowMaker::add(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const {
  const auto before = rows.size();
  try {
    options_.kind->add_rows(*this, item, number, rows, counts);
  } catch (const TooManyWindows& fault) {
    fail<DataError>("item ", item.id, " (line ", item.line, "): ", fault.what());
  }
  ++counts.items;
  counts.items_in_windows += rows.back().window > 0;
  for (size_t i = before; i < rows.size(); ++i) {
    require<DataError>(!rows[i].ids.empty(), "item ", item.id, " (line ", item.line,
                       ") has no tokens, and this family adds none around a text; remove it, or add words to it with a "
                       "template");
    count_row(counts, rows[i]);
  }
}

void TaskRowMaker::add_text(const TaskItem& item, int64_t number, const std::function<void(TaskRow&)>& set_target,
                            std::vector<TaskRow>& rows, RowCounts& counts) const {
  const auto first = tokenizer_.encode(item.text);
  const auto second = item.is_pair ? tokenizer_.encode(item.second) : std::vector<int32_t>{};
  const auto first_size = static_cast<int64_t>(first.size()), second_size = static_cast<int64_t>(second.size());
  const auto places = room(item.is_pair);
  const auto add_row = [&](std::span<const int32_t> a, std::span<const int32_t> b, int64_t window) {
    auto row = framed(a, b, item.is_pair);
    row.item = number;
    row.window = window;
    set_target(row);
    rows.push_back(std::move(row));
  };
  const auto count = [&](int64_t kept_first, int64_t kept_second) {
    counts.first.add(first_size, kept_first);
    if (item.is_pair) counts.second.add(second_size, kept_second);
  };
  if (!std::holds_alternative<Windows>(options_.truncation) || first_size + second_size <= places) {
    const auto [a, b] = kept_tokens(options_.truncation, first_size, second_size, places);
    add_row(truncated(first, a, options_.truncation), truncated(second, b, options_.truncation), 0);
    return count(a, b);
  }
  const bool first_is_longer = first_size >= second_size;
  const auto& longer = first_is_longer ? first : second;
  const auto& shorter = first_is_longer ? second : first;
  const auto kept = std::min(static_cast<int64_t>(shorter.size()), places / 2);
  const auto kept_shorter = std::span(shorter).first(static_cast<size_t>(kept));
  int64_t window = 0;
  for (const auto& part : stride_windows(static_cast<int64_t>(longer.size()), places - kept,
                                         step_of(options_.truncation, places - kept))) {
    const auto seen = std::span(longer).subspan(static_cast<size_t>(part.begin), static_cast<size_t>(part.size()));
    add_row(first_is_longer ? seen : kept_shorter, first_is_longer ? kept_shorter : seen, window++);
  }
  count(first_is_longer ? first_size : kept, first_is_longer ? kept : second_size);
}

void TaskRowMaker::add_candidates(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                                  RowCounts& counts) const {
  require<DataError>(!item.candidates.empty(), "item ", item.id, " (line ", item.line,
                     ") has no candidates, of which one is to be chosen; give it some, or remove it");
  const auto premise = tokenizer_.encode(item.text);
  std::vector<std::vector<int32_t>> candidates;
  int64_t longest = 0;
  for (const auto& candidate : item.candidates) {
    candidates.push_back(tokenizer_.encode(item.second.empty() ? candidate : item.second + " " + candidate));
    longest = std::max(longest, static_cast<int64_t>(candidates.back().size()));
  }
  const auto size = static_cast<int64_t>(premise.size());
  const auto kept = kept_tokens(options_.truncation, size, longest, room(true));
  const auto shared = truncated(premise, kept[0], options_.truncation);
  const auto right = item.gold.is_known() ? item.gold.label : unknown_label;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto all = static_cast<int64_t>(candidates[i].size()), left = std::min(all, kept[1]);
    auto row = framed(shared, truncated(candidates[i], left, options_.truncation), true);
    row.item = number;
    row.candidate = static_cast<int64_t>(i);
    if (right >= 0) row.gold = label_answer(right == row.candidate);
    rows.push_back(std::move(row));
    counts.second.add(all, left);
  }
  counts.first.add(size, kept[0]);
}

std::vector<RowGroup> row_groups(AnyTaskKind kind, std::span<const TaskRow> rows) {
  std::vector<RowGroup> groups;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (kind->reads_windows || i == 0 || rows[i].item != rows[i - 1].item)
      groups.push_back({i, 1});
    else
      ++groups.back().count;
  }
  return groups;
}

}  // namespace cloze
