#pragma once
// Kernel tests: each instruction set in turn, and a final warning about those that this processor lacks.
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "core/kernels/cpu.h"
#include "core/kernels/kernels.h"
#include "tests/support/catch.h"

/// Prints once, when the program ends, that this processor could not test `what`.
inline void not_tested(const std::string& what) {
  struct Said {
    std::set<std::string> all;
    ~Said() {
      std::string list;
      for (const auto& one : all) list += (list.empty() ? "" : "; ") + one;
      std::printf("warning: not tested on this processor: %s\n", list.c_str());
    }
  };
  static Said said;
  said.all.insert(what);
}

/// The instruction sets that kernels are built for and this processor has; the test fails without any.
inline std::vector<std::string> tested_isas() {
  std::vector<std::string> tested;
  for (const std::string isa : {cloze::base_isa, "avx2", "avx512", "avx512_bf16", "amx"}) {
    if (cloze::kernels::set_isa(isa))
      tested.push_back(isa);
    else
      not_tested("kernels of " + isa);
  }
  cloze::kernels::set_isa(cloze::best_isa());
  REQUIRE_FALSE(tested.empty());
  return tested;
}

/// Selects the kernels of `isa` for its lifetime, then the processor's best again.
struct UseIsa {
  explicit UseIsa(const std::string& isa) { REQUIRE(cloze::kernels::set_isa(isa)); }
  ~UseIsa() { cloze::kernels::set_isa(cloze::best_isa()); }
  UseIsa(const UseIsa&) = delete;
  UseIsa& operator=(const UseIsa&) = delete;
};
