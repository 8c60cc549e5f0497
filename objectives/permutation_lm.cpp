#include <algorithm>

#include "core/error.h"
#include "objectives/expected_rows.h"
#include "objectives/next_token.h"
#include "objectives/permutation_lm.h"

namespace cloze {

std::shared_ptr<Objective> make_plm(const PlmConfig& config, const BackboneConfig& model) {
  require<ConfigError>(model.is_two_stream(), "objective 'plm' needs a query stream, which model.architecture ",
                       model.architecture,
                       " does not have; choose model kind: ", families_that(&BackboneConfig::is_two_stream));
  return std::make_shared<NextTokenPrediction>(PlmConfig::kind, config, model);
}

void expect_rows(const PlmConfig& c, const ObjectiveSetting&, std::vector<RowSizes>& rows) {
  for (auto& row : rows) {
    row.predicted = c.num_predict > 0 ? std::min(row.length, static_cast<double>(c.num_predict)) : row.length / 6;
    row.read = row.predicted;
  }
}

}  // namespace cloze
