#pragma once
// The config of a fine-tuning: the numbers of its recipe, the head of its task, and what follows from its rows.
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "objectives/task_heads/task_heads.h"
#include "run/config/config.h"
#include "tasks/rows/prepared_task.h"
#include "tasks/task.h"

namespace cloze {

/// The model of a run as it is fine-tuned: a text of a task continues no other, and filler and end of text are those of
/// the tokenizer.
ModelConfig finetuned_model(const ModelConfig& trained, const Tokenizer& tokenizer);

/// The config by the recipe `like`, else by that of the task file, else by the usual one: of generation T5's. The task
/// is given that recipe and its length of rows, where it has none itself.
///
/// model    as finetuned_model has it
/// returns  the config without weights to begin with and without what follows from the rows
/// Throws ConfigError for a recipe that there is not.
RunConfig take_recipe(Task& task, const std::string& like, const ModelConfig& model);

/// The dropout that a run in `folder` brings for the head of a task: that of its own head of this use, else what came
/// with the imported model that it began with; -1: none.
double brought_dropout(const std::string& folder, const RunConfig& run, const TaskHead& own);

/// Throws ConfigError for overrides of what a fine-tuning takes from its run, its task or its recipe: they would be
/// written down and change nothing; and for keys of the task that are not said to be such. `goes_on`: the run was made
/// before, and its folders may have moved since.
void refuse_unused(const std::vector<std::string>& set, bool goes_on = false);

/// Throws ConfigError for overrides of a task, which settles the rows and the scores of a run as it is made.
void refuse_task_keys(const std::vector<std::string>& set);

/// A config of a fine-tuning with overrides. Throws ConfigError for what no run can have.
RunConfig with_overrides(const RunConfig& config, const std::vector<std::string>& set);

/// The steps in which a fine-tuning trains once on so many examples.
int64_t steps_of_pass(const RunConfig& config, int64_t examples);

/// Fills in what follows from the rows: lengths, and the steps of a pass, after each of which the run is evaluated and
/// saved; a program that drops small batches counts its warm-up in whole steps.
///
/// first  the config with its overrides
void fit_to_rows(RunConfig& config, const PreparedTask& prepared, const RunConfig& first);

}  // namespace cloze
