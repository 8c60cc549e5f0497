#pragma once
// What tests of studies have in common: a small config, and the message of an error.
#include <string>

#include "core/error.h"

namespace cloze {

/// The config that studies and runs of these tests start from.
inline constexpr const char* small_run_yaml = R"(
model: {kind: bert, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64}
objectives: [{kind: mlm}]
train: {batch_size: 4, budget: {steps: 100}}
data: {max_seq_length: 32}
)";

/// The message of the error that a call ends in; empty where it ends well.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace cloze
