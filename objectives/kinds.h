#pragma once
// The objectives: each of a config's list is one of them. Only files that name an objective include this one; others
// know ObjectiveConfig (config.h).
#include <variant>

#include "objectives/config.h"
#include "objectives/clm/clm.h"
#include "objectives/denoising/denoising.h"
#include "objectives/gap_sentences/gap_sentences.h"
#include "objectives/mlm/mlm.h"
#include "objectives/mntp/mntp.h"
#include "objectives/pairs/pairs.h"
#include "objectives/plm/plm.h"
#include "objectives/rtd/rtd.h"
#include "objectives/nsp_sop/nsp_sop.h"
#include "objectives/sbo/sbo.h"
#include "objectives/span_corruption/span_corruption.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

struct ObjectiveVariant
    : std::variant<MlmConfig, NspConfig, SopConfig, RtdConfig, SboConfig, ClmConfig, SpanCorruptionConfig,
                   DenoisingConfig, GapSentencesConfig, PairsConfig, PlmConfig, MntpConfig, ClassificationConfig,
                   MultilabelConfig, RegressionConfig, TaggingConfig, SpansConfig, ChoiceConfig> {
  using variant::variant;
};

}  // namespace cloze
