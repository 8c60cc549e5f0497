#include "core/error.h"
#include "objectives/next_token.h"
#include "objectives/plm/plm.h"

namespace cloze {

std::shared_ptr<Objective> make_head(const PlmConfig& config, const HeadContext& in) {
  const auto& model = in.base;
  require<ConfigError>(model.is_two_stream(), "objective 'plm' needs a query stream, which model.architecture ",
                       model.architecture,
                       " does not have; choose model kind: ", families_that(&BackboneConfig::is_two_stream));
  return std::make_shared<NextTokenPrediction>(PlmConfig::kind, config, config, model);
}

}  // namespace cloze
