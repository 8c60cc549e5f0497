// Files of a run directory, which may come from another machine.
#include "run/records/loss_curve.h"
#include "run/run.h"
#include "tests/fuzz/targets.h"

namespace cloze {

bool fuzz_plot(std::string_view bytes) {
  scratch().write("plot/metrics.jsonl", std::string(bytes));
  return accepts([] { draw_loss(scratch() / "plot", {}, 1); });
}

bool fuzz_state(std::string_view bytes) {
  scratch().write("state/state.json", std::string(bytes));
  return accepts([] { load_state(scratch() / "state", nullptr); });
}

/// The manifest of a checkpoint.
bool fuzz_checkpoint(std::string_view bytes) {
  scratch().write("checkpoint/step-00000001/state.json", "{}\n");
  scratch().write("checkpoint/run.yaml", "model: {kind: bert}\n");
  scratch().write("checkpoint/provenance.json", "{}\n");
  scratch().write("checkpoint/step-00000001/manifest.json", std::string(bytes));
  return accepts([] { verify_run(scratch() / "checkpoint"); });
}

}  // namespace cloze
