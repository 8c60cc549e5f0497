#pragma once
// The hook of a run, which gets its events.
#include <nlohmann/json.hpp>

#include "run/config/load_config.h"
#include "run/records/hook.h"
#include "train/training.h"

namespace cloze {

/// Hands every event of the run to the command of --hook, as one object of JSON (docs/hooks.md).
class HookEvents final : public Callback {
 public:
  explicit HookEvents(const Training& training) : hook_(training.options.hook) {}

  void begin(Training& training) override {
    if (!hook_.is_set()) return;
    nlohmann::json values;
    for (const auto& entry : entries(training.config))
      if (entry.leaf) values[entry.path] = entry.value;
    training.tell("started", {{"resumed", training.options.resume},
                              {"command", training.options.command_line},
                              {"config", std::move(values)}});
  }
  void hear(const nlohmann::json& event) override {
    if (hook_.is_set()) hook_.tell(event);
  }

 private:
  Hook hook_;
};

}  // namespace cloze
