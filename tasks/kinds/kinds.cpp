#include "tasks/kinds/kinds.h"

#include <algorithm>

#include "core/config/config_rule.h"
#include "core/text.h"

namespace cloze {

namespace {

std::vector<std::unique_ptr<TaskKindRules>>& all_task_kinds() {
  static auto kinds = [] {
    std::vector<std::unique_ptr<TaskKindRules>> all;
#define CLOZE_ADD(kind) all.push_back(make_##kind());
    CLOZE_TASK_KINDS(CLOZE_ADD)
#undef CLOZE_ADD
    return all;
  }();
  return kinds;
}

}  // namespace

AnyTaskKind::AnyTaskKind() : rules_(all_task_kinds().front().get()) {}

AnyTaskKind::AnyTaskKind(const std::string& name) {
  const auto& kinds = all_task_kinds();
  const auto at = std::ranges::find(kinds, name, [](const auto& kind) { return kind->name; });
  require<ConfigError>(at != kinds.end(), "'", name, "' is no kind of task; write one of ", listed(task_kind_names()));
  rules_ = at->get();
}

std::vector<std::string> task_kind_names() {
  std::vector<std::string> names;
  for (const auto& kind : all_task_kinds()) names.emplace_back(kind->name);
  return names;
}

void add_task_kind(std::unique_ptr<TaskKindRules> kind) { all_task_kinds().push_back(std::move(kind)); }

}  // namespace cloze
