#include "train/inspection/benchmark.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "train/inspection/describe.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "core/tensor/matmul.h"
#include "evaluation/evaluate.h"
#include "finetune/labelled_rows.h"
#include "objectives/collator.h"
#include "objectives/generative_rows.h"
#include "train/loader.h"
#include "optimizers/optimizer.h"
#include "run/checkpoints/base.h"
#include "run/checkpoints/teacher.h"
#include "run/device.h"
#include "run/memory.h"
#include "run/training_rows.h"
#include "run/process.h"
#include "train/stepper.h"

namespace cloze {

namespace {

/// Of LibTorch's products of square matrices on a GPU, the largest of which take about a millisecond.
double gpu_gemm_gflops(at::ScalarType type, at::Device device) {
  constexpr int products = 10;
  constexpr int64_t smallest = 1024, largest = 8192;
  constexpr double long_enough = 1e-3;  // [s], of a product beside its launch
  double rate = 0, seconds = 0;
  for (int64_t size = smallest; size <= largest && seconds < long_enough; size *= 2) {
    const auto a = at::randn({size, size}, at::kFloat).to(device, type);  // the clock of a GPU depends on the numbers
    at::mm(a, a);
    wait_for(device);
    const auto start = Clock::now();
    for (int i = 0; i < products; ++i) at::mm(a, a);
    wait_for(device);
    seconds = seconds_since(start) / products;
    rate = std::max(rate, 2 * std::pow(static_cast<double>(size), 3) / seconds / 1e9);
  }
  return rate;
}

double gemm_gflops(at::ScalarType type, at::Device device) {
  if (!device.is_cpu()) return gpu_gemm_gflops(type, device);
  const auto a = at::ones({2048, 768}, at::kFloat).mul(0.37).to(type);
  const auto b = at::ones({2304, 768}, at::kFloat).mul(0.21).to(type);
  matmul_nt(a, b);
  const auto start = Clock::now();
  int n = 0;
  for (; seconds_since(start) < 0.3; ++n) matmul_nt(a, b);
  return 2.0 * 2048 * 768 * 2304 * n / seconds_since(start) / 1e9;
}

/// The length of the targets that the objective makes of the longest text, rounded up to a multiple of 8; 0 for a
/// model that reads them as one text.
int64_t synthetic_target_length(const RunConfig& config) {
  if (!backbone_of(config.model).is_encoder_decoder()) return 0;
  const auto expected = std::max<int64_t>(1, std::llround(expected_rows(config).at(0).target_length));
  return std::min<int64_t>(config.data.max_seq_length, (expected + 7) / 8 * 8);
}

/// A synthetic batch for a generative model. All tokens of the targets are predicted.
Batch synthetic_generative_batch(const RunConfig& config, uint64_t number) {
  const auto& model = backbone_of(config.model);
  const int64_t rows = config.train.batch_size, length = config.data.max_seq_length;
  Stream stream = Rng(7).stream("made up", 0, number);
  const auto draw = [&](int64_t columns) {
    auto ids = at::empty({rows, columns}, at::kLong);
    for (int64_t i = 0; i < ids.numel(); ++i)
      ids.data_ptr<int64_t>()[i] = static_cast<int64_t>(stream.below(static_cast<uint64_t>(model.vocab_size)));
    return ids;
  };
  const int64_t target_length = synthetic_target_length(config);
  Batch batch;
  batch.input_ids = draw(length);
  if (target_length > 0) batch.decoder_input_ids = draw(target_length);
  const int64_t labels = target_length > 0 ? target_length : length;
  batch.positions = at::arange(rows * labels, at::kLong);
  batch.labels = draw(labels).flatten();
  batch.tokens = rows * (length + target_length);
  return batch;
}

/// Adds a permutation: a sixth of the positions are targets, each attending to half of the others on average.
void add_synthetic_order(Batch& batch) {
  const int64_t rows = batch.input_ids.size(0), length = batch.input_ids.size(1);
  const int64_t targets = std::max<int64_t>(1, length / 6);
  const auto rank = at::arange(length, at::kLong).mul(7).remainder(length);
  batch.visible = rank.unsqueeze(1).gt(rank.unsqueeze(0)).unsqueeze(0).repeat({rows, 1, 1});
  batch.target_positions = at::arange(targets, at::kLong).mul(6).unsqueeze(0).repeat({rows, 1});
  batch.positions = at::arange(rows * targets, at::kLong);
  batch.labels = batch.input_ids.gather(1, batch.target_positions).flatten();
  batch.token_type_ids.zero_();
}

/// A synthetic batch: ids by Zipf's law, two segments of equal length per row, 15 % of the tokens masked.
Batch synthetic_batch(const RunConfig& config, uint64_t number) {
  if (generative_of(config.objectives)) return synthetic_generative_batch(config, number);
  const auto& model = backbone_of(config.model);
  const int64_t rows = config.train.batch_size, length = config.data.max_seq_length, vocab = model.vocab_size,
                first_word = std::min<int64_t>(5, vocab - 1);
  Stream stream = Rng(7).stream("made up", 0, number);
  Batch batch;
  batch.input_ids = at::empty({rows, length}, at::kLong);
  batch.token_type_ids = at::zeros({rows, length}, at::kLong);
  auto* ids = batch.input_ids.data_ptr<int64_t>();
  auto* types = batch.token_type_ids.data_ptr<int64_t>();
  std::vector<int64_t> positions, labels;
  const double words = static_cast<double>(vocab - first_word);
  for (int64_t i = 0; i < rows * length; ++i) {
    const int64_t position = i % length;
    ids[i] = first_word +
             std::min<int64_t>(static_cast<int64_t>(2.7 * (std::exp(stream.uniform() * std::log1p(words / 2.7)) - 1)),
                               vocab - first_word - 1);
    if (position >= length / 2 && model.type_vocab_size > 1) types[i] = 1;
    if (position == 0 || position == length - 1 || !stream.bernoulli(0.15)) continue;
    positions.push_back(i);
    labels.push_back(ids[i]);
    if (stream.bernoulli(0.8)) ids[i] = first_word - 1;
  }
  batch.tokens = rows * length;
  if (model.is_two_stream()) {
    add_synthetic_order(batch);
    return batch;
  }
  batch.positions = at::tensor(positions, at::kLong);
  batch.labels = at::tensor(labels, at::kLong);
  const auto prefix =
      std::llround(expected_rows(config).at(0).prefix);  // of a decoder's masked rows, which it reads whole
  if (prefix > 0) batch.prefix = at::full({rows}, prefix, at::kLong);
  batch.pair_label = at::arange(rows, at::kLong).remainder(2);
  return batch;
}

/// Sequences per second of a collator in this thread.
double collation_rate(const Collator& collator, int64_t rows) {
  uint64_t n = 0;
  const auto start = Clock::now();
  for (; seconds_since(start) < 0.5; ++n) collator.batch(n * static_cast<uint64_t>(rows), rows);
  return static_cast<double>(n) * static_cast<double>(rows) / seconds_since(start);
}

double quantile(std::vector<double> values, double at = 0.5) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

/// The rows of the text that the config names; without one, a null collator for synthetic rows.
struct Text {
  std::unique_ptr<Collator> collator{};
  double row_tokens = 0;  ///< mean length of a row
};

/// Fills in the vocabulary's size where the config leaves it open.
Text open_text(RunConfig& config) {
  auto& vocab_size = backbone_of(config.model).vocab_size;
  if (config.data.tokens.empty()) {
    if (vocab_size == 0) vocab_size = 30522;
    return {.row_tokens = static_cast<double>(config.data.max_seq_length)};
  }
  const auto store = open_tokens(config, "train");
  if (vocab_size == 0) vocab_size = store.tokenizer().size();
  auto collator = std::make_unique<Collator>(rows_of_run(config, store));
  const double row_tokens = static_cast<double>(store.num_tokens()) / static_cast<double>(collator->size());
  return {.collator = std::move(collator), .row_tokens = row_tokens};
}

std::shared_ptr<Network> initial_network(const RunConfig& config) {
  const auto& model = backbone_of(config.model);
  auto network = std::make_shared<Network>(config.model, config.objectives);
  keep_base(config, *network);
  give_teachers_shape(config, *network);
  initialize(collect_params(*network), model.initializer_range, is_truncated(model.initializer),
             rng_of(config.train, RandomStream::init));
  return network;
}

void add_gemm_throughput(const BenchmarkOptions& options, at::Device device, BenchmarkResult& r) {
  if (options.steps_only) return;
  r.gemm_fp32 += gemm_gflops(at::kFloat, device) / 2;
  r.gemm_bf16 += gemm_gflops(at::kBFloat16, device) / 2;
}

/// What the timed steps took, in seconds but for `times`, and what they did.
struct Timed {
  std::vector<double> times{};  ///< ms of each step
  double seconds = 0, data_wait = 0;
  double tokens = 0, predicted_tokens = 0, flops = 0;
  double first_loss = 0, last_loss = 0;
};

/// Runs three steps to warm up, then times at least three.
Timed time_steps(const RunConfig& config, Stepper& stepper, Loader& loader, const BenchmarkOptions& options) {
  constexpr int64_t warm_up = 3;
  Timed timed;
  auto start = Clock::now();
  const auto goes_on = [&](int64_t step) { return step <= 2 || seconds_since(start) < options.seconds; };
  for (int64_t step = -warm_up; step < options.steps && goes_on(step); ++step) {
    if (step == 0) {
      stepper.time_breakdown = {};
      start = Clock::now();
      timed = {};
    }
    const auto begin = Clock::now();
    OwnBatches batches{.of_step = config.train.accumulation};
    for (int64_t i = 0; i < batches.of_step; ++i) batches.micro_batches.push_back(loader.next());
    timed.data_wait += seconds_since(begin);
    const int64_t number = step + warm_up;
    const double rate = config.optimizer.learning_rate * std::min(1.0, static_cast<double>(number + 1) / 100);
    const auto result = stepper.step(batches, number, rate);
    timed.times.push_back(1000 * seconds_since(begin));
    if (step <= 0) timed.first_loss = result.loss;
    timed.last_loss = result.loss;
    timed.tokens += static_cast<double>(result.tokens);
    timed.predicted_tokens += static_cast<double>(result.predicted_tokens);
    timed.flops += result.flops;
  }
  timed.seconds = seconds_since(start);
  return timed;
}

/// The seconds of the parts of a step.
TimeBreakdown parts_of_step(const TimeBreakdown& time_breakdown, size_t steps) {
  const auto n = static_cast<double>(steps);
  return {.forward = time_breakdown.forward / n,
          .backward = time_breakdown.backward / n,
          .optimizer = time_breakdown.optimizer / n};
}

/// The same on a GPU, whose work has to be waited for: of three more steps.
TimeBreakdown parts_of_gpu_step(const RunConfig& config, Stepper& stepper, Loader& loader) {
  stepper.wait_for_parts();
  const auto timed = time_steps(config, stepper, loader, {.steps = 3});
  return parts_of_step(stepper.time_breakdown, timed.times.size());
}

void add_steps(const Timed& timed, const TimeBreakdown& parts, Precision precision, BenchmarkResult& r) {
  const auto n = static_cast<double>(timed.times.size());
  r.steps = static_cast<int64_t>(timed.times.size());
  r.ms_per_step = quantile(timed.times);
  r.ms_low = quantile(timed.times, 0.25);
  r.ms_high = quantile(timed.times, 0.75);
  r.tokens_per_second = timed.tokens / n / (r.ms_per_step / 1000);
  r.tokens_per_step = timed.tokens / n;
  r.predicted_tokens_per_step = timed.predicted_tokens / n;
  r.gflop_per_step = timed.flops / n / 1e9;
  const double limit = precision == Precision::bf16 ? std::max(r.gemm_fp32, r.gemm_bf16) : r.gemm_fp32;
  if (limit > 0) r.mfu = r.gflop_per_step / (r.ms_per_step / 1000) / limit;
  r.data_wait = 1000 * timed.data_wait / n;
  r.forward = 1000 * parts.forward;
  r.backward = 1000 * parts.backward;
  r.optimizer = 1000 * parts.optimizer;
  r.other = std::max(0.0, 1000 * timed.seconds / n - r.data_wait - r.forward - r.backward - r.optimizer);
  r.first_loss = timed.first_loss;
  r.last_loss = timed.last_loss;
}

/// The fraction of the cores that other processes left between the two times; 1 where there are fewer cores than
/// threads, which wait for each other in every run.
double share_left(const CoreTime& before, const CoreTime& after) {
  return at::get_num_threads() <= usable_cores() ? share_of_cores(before, after) : 1;
}

/// Adds what a step takes without other processes. Where these came and went, it is the median that they do not touch.
void add_undisturbed(const Timed& timed, const CoreTime& before, const CoreTime& after, BenchmarkResult& r) {
  const double fraction = share_left(before, after);
  r.ms_undisturbed = std::min(r.ms_per_step, 1000 * timed.seconds * fraction / static_cast<double>(r.steps));
}

void add_suite_costs(const LoadedRun& run, const std::vector<Suite>& suites, BenchmarkResult& r) {
  const auto before = core_time();
  r.suite_costs = suite_costs(run, suites);
  const double fraction = share_left(before, core_time());
  for (auto& [name, cost] : r.suite_costs) cost.seconds *= fraction;
}

/// The documents of the held-out rows that a measure scores.
std::set<uint64_t> documents_of(const Measure& measure, int64_t batch_size) {
  std::set<uint64_t> documents;
  const auto available = std::min(measure.sequences, static_cast<int64_t>(measure.collator.size()));
  for (int64_t first = 0; first < available; first += batch_size) {
    std::vector<RowDraws> rows;
    measure.collator.batch(static_cast<uint64_t>(first), std::min(batch_size, available - first), &rows);
    for (const auto& row : rows) documents.insert(row.document);
  }
  return documents;
}

void add_text(const Collator& collator, const RunConfig& config, const BenchmarkOptions& options, BenchmarkResult& r) {
  if (!options.steps_only) r.collation = collation_rate(collator, config.train.batch_size);
  r.sequences_per_epoch = collator.size();
  r.words_per_epoch = collator.store().train_words().value_or(0);
  const TokenStore held_out(config.data.tokens, "valid");
  r.held_out_tokens = held_out.num_tokens();
  if (!config.task.name.empty()) return;
  const auto measures = held_out_measures(config, held_out, /*train_counts=*/{});
  if (measures.empty()) return;
  r.scored_documents = documents_of(measures.front(), config.train.batch_size);
}

/// The network, as the run that answers suites.
LoadedRun run_of(const RunConfig& config, const Collator& collator, const std::shared_ptr<Network>& network) {
  return {.folder = "the model",
          .checkpoint = {},
          .config = config,
          .tokenizer = collator.store().tokenizer(),
          .has_tokenizer = true,
          .network = network};
}

}  // namespace

BenchmarkResult benchmark(const RunConfig& run_config, const BenchmarkOptions& options) {
  require<ConfigError>(options.steps > 0, "--steps is ", options.steps, ", must be at least 1");
  require<ConfigError>(options.seconds > 0, "--seconds is ", options.seconds, ", must be above 0");
  RunConfig config = config_of_phase(run_config, 0);
  const auto suites = suites_of(config);
  configure_threads(config.train.threads);
  std::optional<PlainScope> plain;
  if (options.plain) plain.emplace();
  const auto text = open_text(config);
  const auto& collator = text.collator;
  const auto device = device_of(config.train.device);
  const auto machine = memory_for(config);
  require_memory(config, text.row_tokens, machine);
  warn_of_memory(config, text.row_tokens, machine);
  const auto network = initial_network(config);
  Stepper stepper(config, *network);
  const int64_t rows = config.train.batch_size;
  Loader loader(
      [&](uint64_t n) {
        return collator ? collator->step_batches(n * static_cast<uint64_t>(rows), rows)
                        : std::vector{synthetic_batch(config, n)};
      },
      0, config.train.workers);
  BenchmarkResult r;
  for (const auto& suite : suites) r.suite_metrics[suite.name] = suite_metrics(suite);
  r.data = collator ? collator->store().folder() : "synthetic tokens";
  r.precision = stepper.precision_description() + (use_fused(at::empty({0})) ? "" : ", plain operators");
  add_gemm_throughput(options, device, r);
  if (!device.is_cpu()) reset_peak_memory(device);  // of those products
  const auto before = core_time();
  const auto timed = time_steps(config, stepper, loader, options);
  if (!device.is_cpu()) r.peak_gpu_mb = peak_memory(device) / 1e6;
  const auto after = core_time();
  if (const auto warning = shared_cores_warning(before, after); !warning.empty()) log_warning("threads", warning);
  add_gemm_throughput(options, device, r);
  const auto parts = device.is_cpu() ? parts_of_step(stepper.time_breakdown, timed.times.size())
                                     : parts_of_gpu_step(config, stepper, loader);
  add_steps(timed, parts, config.train.precision, r);
  add_undisturbed(timed, before, after, r);
  if (collator) add_suite_costs(run_of(config, *collator, network), suites, r);
  r.share_of_cores = share_left({}, core_time());
  r.peak_rss_mb = peak_memory() / 1e6;
  r.parameters = stepper.parameters();
  r.checkpoint_bytes = stepper.checkpoint_bytes();
  if (collator) add_text(*collator, config, options, r);
  return r;
}

std::string to_text(const BenchmarkResult& r) {
  char limit[160] = "", text[1200];
  if (r.gemm_fp32 > 0)
    std::snprintf(limit, sizeof limit, "limit      GEMM throughput: fp32 %.0f, bf16 %.0f GFLOP/s; MFU %.1f %%\n",
                  r.gemm_fp32, r.gemm_bf16, 100 * r.mfu);
  const std::string of_gpu =
      r.peak_gpu_mb > 0 ? concat(", ", std::llround(r.peak_gpu_mb), " MB of the GPU") : std::string();
  std::snprintf(text, sizeof text,
                "%s, %s\n"
                "step       %.1f ms (quartiles %.1f to %.1f, %ld steps)\n"
                "rate       %s tokens/s, %.1f GFLOP per step\n"
                "%s"
                "memory     %.0f MB peak%s\n"
                "time       data wait %.1f ms, forward %.1f, backward %.1f, optimizer %.1f, other %.1f\n"
                "loss       first %.4f, last %.4f",
                r.data.c_str(), r.precision.c_str(), r.ms_per_step, r.ms_low, r.ms_high, static_cast<long>(r.steps),
                thousands(static_cast<uint64_t>(r.tokens_per_second)).c_str(), r.gflop_per_step, limit, r.peak_rss_mb,
                of_gpu.c_str(), r.data_wait, r.forward, r.backward, r.optimizer, r.other, r.first_loss, r.last_loss);
  std::string report = text;
  for (const auto& [name, cost] : r.suite_costs)
    report += concat("\nsuite      ", name, ": ", duration(cost.seconds), ", ", with_prefix(cost.flops), "FLOPs");
  if (r.collation == 0) return report;
  return concat(report, "\ncollation  ", thousands(static_cast<uint64_t>(r.collation)), " sequences/s in one thread");
}

nlohmann::json to_json(const BenchmarkResult& r) {
  nlohmann::json all{{"data", r.data},
                     {"precision", r.precision},
                     {"steps", r.steps},
                     {"ms_per_step", r.ms_per_step},
                     {"ms_low", r.ms_low},
                     {"ms_high", r.ms_high},
                     {"ms_undisturbed", r.ms_undisturbed},
                     {"share_of_cores", r.share_of_cores},
                     {"tokens_per_second", r.tokens_per_second},
                     {"tokens_per_step", r.tokens_per_step},
                     {"predicted_tokens_per_step", r.predicted_tokens_per_step},
                     {"gflop_per_step", r.gflop_per_step},
                     {"gemm_fp32_gflops", r.gemm_fp32},
                     {"gemm_bf16_gflops", r.gemm_bf16},
                     {"mfu", r.mfu},
                     {"parameters", r.parameters},
                     {"checkpoint_bytes", r.checkpoint_bytes},
                     {"sequences_per_epoch", r.sequences_per_epoch},
                     {"words_per_epoch", r.words_per_epoch},
                     {"held_out_tokens", r.held_out_tokens},
                     {"scored_documents", r.scored_documents},
                     {"collation_sequences_per_second", r.collation},
                     {"peak_rss_mb", r.peak_rss_mb},
                     {"peak_gpu_mb", r.peak_gpu_mb},
                     {"ledger",
                      {{"data_wait", r.data_wait},
                       {"forward", r.forward},
                       {"backward", r.backward},
                       {"optimizer", r.optimizer},
                       {"other", r.other}}},
                     {"first_loss", r.first_loss},
                     {"last_loss", r.last_loss}};
  if (!r.suite_metrics.empty()) all["suite_figures"] = r.suite_metrics;
  for (const auto& [name, cost] : r.suite_costs)
    all["suite_costs"][name] = {{"flops", cost.flops}, {"seconds", cost.seconds}};
  return all;
}

}  // namespace cloze
