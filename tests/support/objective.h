#pragma once
// Objectives by their YAML, for tests that need one of many kinds and none of its rules.
#include <string>

#include "run/config/load_config.h"

/// `{kind: mlm, mlm_probability: 0.3}` as an objective.
inline cloze::ObjectiveConfig objective(const std::string& yaml) {
  const auto tree = cloze::ConfigTree::parse("objectives: [" + yaml + "]", "objective.yaml");
  return cloze::decode<cloze::RunConfig>(tree).objectives.at(0);
}
