#include "run/checkpoints/teacher.h"

#include "models/backbone_config.h"
#include "objectives/task_heads/task_heads.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/run_files.h"

namespace cloze {

namespace {

/// Throws ConfigError for a teacher that cannot read the rows of a run.
void check_rows(const RunConfig& config, const RunConfig& teacher) {
  const auto longest = backbone_of(teacher.model).max_input_length();
  require<ConfigError>(config.data.max_seq_length <= longest, "distil.teacher ", config.distil.teacher, ": reads ",
                       longest, " tokens at most, and data.max_seq_length is ", config.data.max_seq_length,
                       "; shorten the rows, or name another teacher");
  for (const auto& own : config.objectives)
    for (const auto& its : teacher.objectives) {
      const auto *head = task_head_of(own), *taught = task_head_of(its);
      if (!head || !taught || head->name() != taught->name()) continue;
      require<ConfigError>(head->labels == taught->labels, "distil.teacher ", config.distil.teacher,
                           ": has the labels ", listed(taught->labels), ", and this run ", listed(head->labels),
                           ", in this order; fine-tune the teacher on the same task");
    }
}

}  // namespace

BaseRecord teacher_of(const RunConfig& config) {
  if (!config.distil.is_on()) return {};
  const auto& path = config.distil.teacher;
  const auto checkpoint = is_step_folder(path) ? path : find_best_checkpoint(run_directory_of(path)).folder;
  require<CheckpointError>(!checkpoint.empty(), "distil.teacher ", path, ": has no valid checkpoint; train it first");
  return {.checkpoint = checkpoint, .weights = weights_fingerprint(checkpoint)};
}

void give_teacher(const std::string& checkpoint, const RunConfig& config, const Tokenizer& tokenizer,
                  Network& network) {
  require_intact(checkpoint);
  const auto teacher = open_run(checkpoint);
  require<ConfigError>(
      teacher.has_tokenizer, "distil.teacher ", config.distil.teacher,
      ": has no tokenizer, so that it is not known to read the tokens of this run; import it with one");
  require<ConfigError>(teacher.tokenizer.fingerprint() == tokenizer.fingerprint(), "distil.teacher ",
                       config.distil.teacher, ": reads another tokenizer than ", config.data.tokens,
                       ", so that its tokens are others; prepare the text with its own: cloze prepare ... --tokenizer ",
                       teacher.folder, "/tokenizer");
  check_rows(config, teacher.config);
  network.learn_from(config.distil, teacher.network);
}

std::optional<RunConfig> teachers_config(const RunConfig& config) {
  if (!config.distil.is_on()) return {};
  return decode<RunConfig>(load_run_config(run_directory_of(config.distil.teacher) + "/run.yaml"));
}

void give_teachers_shape(const RunConfig& config, Network& network) {
  const auto teacher = teachers_config(config);
  if (!teacher) return;
  check_rows(config, *teacher);
  const auto shape = std::make_shared<Network>(teacher->model, teacher->objectives);
  initialize(collect_params(*shape), backbone_of(teacher->model).initializer_range, /*truncated=*/false, Rng(1));
  network.learn_from(config.distil, shape);
}

}  // namespace cloze
