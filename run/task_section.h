#pragma once
// The section `task` of a run.
#include <string>

#include "core/config_rule.h"

namespace cloze {

/// The task that a run is fine-tuned on; its rows are those of data.tokens.
struct TaskSection {
  std::string name;  ///< empty: the run is not fine-tuned
  std::string file, like, metric, fingerprint;
};

template <class V>
void describe(V& v, TaskSection& c) {
  v("name", c.name, "the task that the run is fine-tuned on, by `cloze finetune`; empty = none");
  v("file", c.file, "its task file");
  v("like", c.like, "the recipe whose numbers are those of a config that names none");
  v("metric", c.metric, "the figure on the valid part that chooses the best checkpoint");
  v("fingerprint", c.fingerprint, "of its rows, and so of its parts, labels, lengths and cuts, and of the tokenizer");
}

}  // namespace cloze
