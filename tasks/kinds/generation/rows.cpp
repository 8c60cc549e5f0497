#include "tasks/kinds/generation/rows.h"

#include <algorithm>

#include "core/error.h"

namespace cloze {

namespace {

/// The tokens of a target with those that begin and end a text. One that is cut keeps its end token where it should.
std::vector<int32_t> target_ids(const TaskRowMaker& maker, const std::string& text, RowCounts& counts) {
  const auto& options = maker.options();
  const auto& row_template = maker.row_template();
  auto ids = maker.tokenizer().encode(text);
  if (row_template.joins_target)
    ids.push_back(row_template.end);
  else
    ids = maker.framed(ids, {}, false).ids;
  const auto all = std::ssize(ids), most = maker.most_target();
  counts.second.add(all, std::min(all, most));
  if (all <= most) return ids;
  const auto end = ids.back();
  ids.resize(static_cast<size_t>(most));
  if (options.end_of_cut) ids.back() = end;
  return ids;
}

}  // namespace

void add_target_row(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                    RowCounts& counts) {
  const auto& row_template = maker.row_template();
  const auto first = rows.size();
  maker.add_text(item, number, [](TaskRow&) {}, rows, counts);
  auto& row = rows.at(first);
  const bool has_end = !row.ids.empty() && row.ids.back() == row_template.end;
  if (row_template.joins_target && !has_end) row.ids.push_back(row_template.end);
  row.gold.form = item.gold.form;
  if (item.gold.is_known()) row.target = target_ids(maker, item.gold.texts.front(), counts);
}

}  // namespace cloze
