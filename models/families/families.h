#pragma once
// The model families: a config's model is one of them. Only files that name a family include this one; others know
// ModelConfig (model_config.h).
#include <variant>

#include "models/families/albert.h"
#include "models/families/bart.h"
#include "models/families/bert.h"
#include "models/families/bigbird.h"
#include "models/families/distilbert.h"
#include "models/families/electra.h"
#include "models/families/gpt2.h"
#include "models/families/longformer.h"
#include "models/families/lstm.h"
#include "models/families/mbart.h"
#include "models/families/modernbert.h"
#include "models/families/pegasus.h"
#include "models/families/performer.h"
#include "models/families/roberta.h"
#include "models/families/t5.h"
#include "models/families/transformer.h"
#include "models/families/xlnet.h"
#include "models/families/model_config.h"

namespace cloze {

struct ModelFamily
    : std::variant<BertConfig, RobertaConfig, AlbertConfig, ElectraConfig, DistilBertConfig, LongformerConfig,
                   BigBirdConfig, PerformerConfig, ModernBertConfig, Gpt2Config, T5Config, BartConfig, MBartConfig,
                   PegasusConfig, VaswaniConfig, XlnetConfig, LstmConfig> {
  using variant::variant;
};

}  // namespace cloze
