// The same bits for any number of threads, and the same steps with plain operators.
#include <ATen/Parallel.h>

#include "core/tensor/ops.h"
#include "core/tensor/safetensors.h"
#include "tests/support/families.h"
#include "tests/support/runs.h"

using namespace cloze;

namespace {

constexpr const char* last = "/step-00000004/weights.safetensors";

/// The gradient norm of every step of a run.
std::vector<double> norms_of(const std::string& run) {
  std::vector<double> norms;
  for (const auto& row : metrics(run))
    if (row.contains("grad_norm")) norms.push_back(row["grad_norm"].get<double>());
  return norms;
}

/// The largest difference between two files of weights, and the largest weight.
std::pair<double, double> difference(const std::string& a, const std::string& b) {
  const auto one = SafeTensors::open(a), two = SafeTensors::open(b);
  double worst = 0, largest = 0;
  for (const auto& name : one.names()) {
    worst = std::max(worst, (one.get(name) - two.get(name)).abs().max().item<double>());
    largest = std::max(largest, one.get(name).abs().max().item<double>());
  }
  return {worst, largest};
}

}  // namespace

TEST_CASE("every family gives the same bits with one, two, three and five threads, in fp32 and in bf16",
          "[train][determinism]") {
  TempDir dir;
  const auto base = tiny_run(dir, 4);
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_family()) {
    for (const std::string precision : {"fp32", "bf16"}) {
      INFO(family.name << " in " << precision);
      auto config = run_of(family, base, marked);
      config.train.precision = choice_of<Precision>(precision);
      const auto name = [&](int threads) { return dir / (family.name + precision + std::to_string(threads)); };
      for (const int threads : {1, 2, 3, 5}) {
        config.train.threads = threads;
        pretrain(config, {.run = name(threads)});
      }
      for (const int threads : {2, 3, 5}) CHECK(same_files(name(1) + last, name(threads) + last));
    }
  }
  at::set_num_threads(2);
}

TEST_CASE(
    "every family takes the same steps with plain operators, which other devices use, including dropout masks and "
    "recomputed blocks",
    "[train][plain]") {
  TempDir dir;
  auto base = tiny_run(dir, 4);
  base.train.precision = Precision::fp32;
  base.schedule.warmup = 0;
  std::get<AdamW>(base.optimizer.rule).epsilon = 1e-3;  // gradients that are zero up to rounding must not make steps
  base.optimizer.learning_rate = 1e-3;
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_family()) {
    INFO(family.name);
    auto config = run_of(family, base, marked);
    const auto name = [&](const char* kind) { return dir / (family.name + kind); };
    pretrain(config, {.run = name("-fused")});
    set_fused(false);
    pretrain(config, {.run = name("-plain")});
    config.train.gradient_checkpointing = true;
    pretrain(config, {.run = name("-recomputed")});
    set_fused(true);
    const auto [by_kernels, largest] = difference(name("-plain") + last, name("-fused") + last);
    const auto [by_recomputing, same] = difference(name("-plain") + last, name("-recomputed") + last);
    CHECK(by_kernels < 2e-4 * largest);
    CHECK(by_recomputing < 2e-5 * same);
    auto without = run_of(family, base, marked);
    backbone_of(without.model).hidden_dropout_prob = 0;
    pretrain(without, {.run = name("-without")});
    if (backbone_of(config.model).hidden_dropout_prob > 0)
      CHECK(difference(name("-without") + last, name("-fused") + last).first >
            4e-4 * largest);  // dropout has an effect
  }
}

TEST_CASE("every family has the gradient norms of its kernels with plain operators, whose fixed parameters gather none",
          "[train][plain]") {
  TempDir dir;
  auto base = tiny_run(dir, 5);
  base.train.precision = Precision::fp32;
  base.schedule.warmup = 0;
  std::get<AdamW>(base.optimizer.rule).epsilon = 1e-3;  // as above
  base.optimizer.learning_rate = 1e-3;
  const auto marked = prepare_marked(dir);
  for (const auto& family : every_family()) {
    INFO(family.name);
    const auto config = run_of(family, base, marked);
    pretrain(config, {.run = dir / (family.name + "-fused")});
    set_fused(false);
    pretrain(config, {.run = dir / (family.name + "-plain")});
    set_fused(true);
    const auto fused = norms_of(dir / (family.name + "-fused")), plain = norms_of(dir / (family.name + "-plain"));
    REQUIRE(fused.size() == 5);
    REQUIRE(plain.size() == 5);
    for (size_t step = 0; step < 5; ++step) CHECK(plain[step] == Approx(fused[step]).epsilon(1e-4));
  }
}
