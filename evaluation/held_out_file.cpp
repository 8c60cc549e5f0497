#include "evaluation/held_out_file.h"

#include <algorithm>

#include "run/held_out_record.h"
#include "run/objective_short_form.h"

namespace cloze {

std::string evaluation_protocol(const RunConfig& config, const TokenStore& store) {
  const auto& evaluation = config.evaluation;
  std::string names;
  for (const auto& objective : evaluation.objectives) names += (names.empty() ? "" : " + ") + short_form(objective);
  if (!config.task.name.empty()) names += ", best by " + config.task.metric;
  return concat(names, ", ", evaluation.sequences, " sequences of ", evaluation.max_seq_length, " tokens, packing ",
                evaluation.packing, ", seed ", evaluation.seed, ", tokens ", store.split_fingerprint());
}

std::string held_out_file(int64_t step, const std::string& measured, const std::vector<HeldOut>& losses,
                          const std::vector<Measure>& measures, int64_t batch_size) {
  HeldOutRecord record{.step = step, .measured = measured};
  for (const auto& part : losses) {
    auto& examples = record.losses[part.name];
    for (const auto& sequence : part.sequences) {
      examples.sum.push_back(sequence.sum);
      examples.count.push_back(sequence.count);
    }
    const auto measure = std::ranges::find(measures, part.name, &Measure::name);
    if (measure == measures.end()) continue;
    const auto bytes = sequence_label_bytes(measure->collator, measure->sequences, batch_size);
    const bool covers_text = bytes && std::any_of(bytes->begin(), bytes->end(), [](uint64_t n) { return n > 0; });
    examples.document = sequence_documents(measure->collator, measure->sequences, batch_size);
    if (examples.document.size() != examples.sum.size()) examples.document.clear();
    if (covers_text && bytes->size() == examples.sum.size()) examples.bytes = *bytes;
  }
  record.xxh3 = hash_hex(json_text(nlohmann::json(record.losses)));
  record.seal = seal_of(record);
  return json_text(nlohmann::json(record)) + "\n";
}

}  // namespace cloze
