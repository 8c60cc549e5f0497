#pragma once
// The kinds of tasks that there are, a line each: each has a folder of its name with a function make_NAME().
#include <memory>

#include "tasks/kind.h"

#define CLOZE_TASK_KINDS(each) \
  each(classification) each(multilabel) each(regression) each(tagging) each(spans) each(choice) each(generation)

namespace cloze {

#define CLOZE_DECLARE(kind) std::unique_ptr<TaskKindRules> make_##kind();
CLOZE_TASK_KINDS(CLOZE_DECLARE)
#undef CLOZE_DECLARE

}  // namespace cloze
