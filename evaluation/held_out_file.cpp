#include "evaluation/held_out_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fingerprint.h"
#include "core/json.h"
#include "run/objective_short_form.h"

namespace cloze {

using nlohmann::json;

std::string evaluation_protocol(const RunConfig& config, const TokenStore& store) {
  const auto& evaluation = config.evaluation;
  std::string names;
  for (const auto& objective : evaluation.objectives) names += (names.empty() ? "" : " + ") + short_form(objective);
  if (!config.task.name.empty()) names += ", best by " + config.task.metric;
  return words(names, ", ", evaluation.sequences, " sequences of ", evaluation.max_seq_length, " tokens, packing ",
               evaluation.packing, ", seed ", evaluation.seed, ", tokens ", store.fingerprint());
}

std::string held_out_file(int64_t step, const std::string& measured, const std::vector<HeldOut>& losses,
                          const std::vector<Measure>& measures, int64_t batch_size) {
  json all = json::object();
  for (const auto& part : losses) {
    std::vector<double> sums, counts;
    for (const auto& sequence : part.sequences) {
      sums.push_back(sequence.sum);
      counts.push_back(sequence.count);
    }
    all[part.name] = {{"sum", sums}, {"count", counts}};
    const auto measure =
        std::find_if(measures.begin(), measures.end(), [&](const Measure& m) { return m.name == part.name; });
    if (measure == measures.end()) continue;
    const auto bytes = sequence_label_bytes(measure->collator, measure->sequences, batch_size);
    const bool covers_text = bytes && std::any_of(bytes->begin(), bytes->end(), [](uint64_t n) { return n > 0; });
    if (covers_text && bytes->size() == sums.size()) all[part.name]["bytes"] = *bytes;
  }
  const auto text = json_text(all);
  const json file{{"step", step}, {"measured", measured}, {"losses", all}, {"xxh3", hash_hex(text)}};
  return json_text(file) + "\n";
}

}  // namespace cloze
