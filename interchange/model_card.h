#pragma once
// The model card of an export: the README.md that a hub shows.
#include <string>

#include "run/run.h"

namespace cloze {

/// The card of a checkpoint, as Markdown below the lines of YAML that a hub reads: how it is loaded, data, budget,
/// held-out losses and answers to suites of its step with their intervals, command, versions, and what nobody
/// evaluated. Licence, language and what the text is are left to fill in. All of it comes from the records of the run;
/// one that is missing or damaged is reported as not recorded, and no text of a record is Markdown or YAML.
///
/// name          of the model
/// architecture  the class of transformers: `BertForMaskedLM`
/// Throws Error for a record that cannot be read.
/// Source: Mitchell et al. 2019, arXiv 1810.03993; the keys of huggingface.co/docs/hub/model-cards.
std::string model_card(const LoadedRun& run, const std::string& name, const std::string& architecture);

}  // namespace cloze
