#pragma once
// The section `evaluation` of a run.
#include "data/config.h"
#include "objectives/config.h"

namespace cloze {

/// Held-out evaluation, independent of the training options, so that runs can be compared by it.
struct EvaluationConfig {
  int64_t every = 500;
  int64_t points = 0;
  int64_t sequences = 1024;
  int64_t patience = 0;
  int64_t seed = 1;
  int64_t max_seq_length = 0;
  RowPacking packing = RowPacking::document;
  Objectives objectives{};
  std::vector<std::string> suites{};
  int64_t suite_every = 0;
  int64_t suite_items = 0;
};

template <class V>
void describe(V& v, EvaluationConfig& c) {
  v("every", c.every, "steps between evaluations; 0 = only at the end", at_least(0));
  v("points", c.points,
    "evaluations of a run at equal shares of its budget, instead of every so many steps; 0 = as `every` says",
    in_range(0, 1000));
  v("sequences", c.sequences, "held-out sequences in an evaluation", in_range(1, 1e9));
  v("patience", c.patience, "early stopping after this many evaluations without a better loss; 0 = never", at_least(0));
  v.standalone();
  v("seed", c.seed, "seed of the held-out sequences and their masks, independent of train.seed", at_least(0));
  v("max_seq_length", c.max_seq_length, "tokens in a held-out sequence; 0 = data.max_seq_length", in_range(0, 1 << 28));
  v("packing", c.packing,
    "packing of held-out sequences, independent of data.packing; nsp, sop and pairs make their own rows",
    one_of({"document", "full", "doc_sentences", "full_sentences"}));
  v("objectives", c.objectives,
    "objectives to evaluate, each on its own rows; [] = the kinds of `objectives`, each in its standard form: the "
    "defaults of its kind (mlm: 15 % single tokens), except that span_corruption keeps its `corruption` and rtd its "
    "networks; a hybrid of mntp is evaluated as mntp and clm");
  v("suites", c.suites,
    "evaluation suites that the run answers: files, folders, or names in the folder CLOZE_SUITES; [] = none");
  v("suite_every", c.suite_every, "steps between answers to the suites, besides those at the end; 0 = only at the end",
    at_least(0));
  v("suite_items", c.suite_items, "items of each paradigm of minimal pairs and completions that are asked; 0 = all",
    at_least(0));
}

}  // namespace cloze
