#include "train/events.h"

#include <filesystem>
#include <utility>

#include "core/log.h"
#include "run/config_io.h"
#include "run/step_folders.h"

namespace cloze {

namespace {

using nlohmann::json;

/// What every event has.
json event_of(const Session& session, const char* kind) {
  std::error_code unknown;  // a working directory that was removed
  const auto& state = session.state;
  return {{"event", kind},
          {"run", std::filesystem::absolute(session.options.run, unknown).lexically_normal().string()},
          {"step", state.step},
          {"tokens", state.tokens},
          {"seconds", state.seconds},
          {"budget_share", used_share(session.config.train.budget, usage(session))}};
}

}  // namespace

void tell_started(Session& session) {
  if (!session.hook.is_set()) return;
  auto event = event_of(session, "started");
  event["resumed"] = session.options.resume;
  event["command"] = session.options.command_line;
  for (const auto& entry : entries(session.config))
    if (entry.leaf) event["config"][entry.path] = entry.value;
  session.hook.tell(event);
}

void tell_evaluated(Session& session) {
  if (!session.hook.is_set()) return;
  auto event = event_of(session, "evaluated");
  event["held_out_loss"] = session.held_out_loss;
  event["held_out"] = to_json(session.held_out);
  event["train"] = session.train_losses;
  session.hook.tell(event);
}

void tell_checkpoint(Session& session) {
  if (!session.hook.is_set()) return;
  auto event = event_of(session, "checkpoint");
  event["best"] = session.state.best_step == session.state.step;
  for (const auto& name : step_folders(session.options.run))
    if (step_of_folder(name) == session.state.step) event["folder"] = name;
  session.hook.tell(event);
}

void tell_finished(Session& session, const PretrainReport& report) {
  if (!session.hook.is_set()) return;
  auto event = event_of(session, "finished");
  event["held_out_loss"] = report.held_out_loss;
  event["best_step"] = report.best_step;
  event["stopped_by"] = report.stopped_by;
  session.hook.tell(event);
}

void tell_failed(Session& session, const std::exception& error) {
  if (!session.hook.is_set()) return;
  const auto* own = dynamic_cast<const Error*>(&error);
  auto event = event_of(session, "failed");
  event["message"] = error.what();
  event["exit_code"] = own ? own->exit_code() : 1;
  session.hook.tell(event);
}

void report_divergence(Session& session, const std::string& warning) {
  if (std::exchange(session.warned.of_divergence, true)) return;
  end_progress();
  const bool stops = session.config.train.on_divergence == OnDivergence::stop;
  if (session.hook.is_set()) {
    auto event = event_of(session, "diverged");
    event["message"] = warning;
    event["stops"] = stops;
    session.hook.tell(event);
  }
  if (!stops) {
    log_warning("train", warning);
    return;
  }
  const auto last = find_checkpoint(session.options.run);
  fail<Diverged>(warning, "; the run ends here, as train.on_divergence says, and its newest checkpoint is ",
                 last.empty() ? "none" : last);
}

}  // namespace cloze
