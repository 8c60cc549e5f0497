#include "core/report/score_json.h"

#include <nlohmann/json.hpp>

#include "core/json.h"

namespace cloze {

nlohmann::json score_json(const Score& score) {
  nlohmann::json fields{{"value", nullptr}, {"count", score.count}, {"ties", score.ties}};
  if (score.is_defined()) fields["value"] = score.value;
  if (score.interval) fields.update({{"low", score.interval->low}, {"high", score.interval->high}});
  return fields;
}

Score score_of(const std::string& metric, const nlohmann::json& fields) {
  Score score{.metric = metric};
  const auto value = value_at(fields, "/value"), low = value_at(fields, "/low"), high = value_at(fields, "/high"),
             count = value_at(fields, "/count"), ties = value_at(fields, "/ties");
  if (value.is_number()) score.value = value.get<double>();
  if (low.is_number() && high.is_number()) score.interval = Bounds{low.get<double>(), high.get<double>()};
  if (count.is_number_integer()) score.count = count.get<int64_t>();
  if (ties.is_number_integer()) score.ties = ties.get<int64_t>();
  return score;
}

}  // namespace cloze
