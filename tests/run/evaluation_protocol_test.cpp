// The fixed held-out evaluation: the same rows and masks for all runs, baselines, standard errors.
#include "objectives/kinds.h"
#include "run/config/evaluation_protocol.h"

#include <set>

#include "core/tensor/safetensors.h"
#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// A measure of a run, by the short form of its objective.
const Measure& measure(const std::vector<Measure>& measures, const std::string& name) {
  for (const auto& one : measures)
    if (one.name == name) return one;
  FAIL("no measure is called " << name);
  return measures.front();
}

}  // namespace

TEST_CASE("held-out rows, masks and baselines do not depend on the training seed and the training masks",
          "[train][evaluation]") {
  TempDir dir;
  const auto plain = tiny_run(dir, 1);
  auto other = plain;
  auto& mlm = *as<MlmConfig>(other.objectives[0]);
  mlm.mlm_probability = 0.4;
  mlm.unit = MaskingUnit::word;
  as<NspConfig>(other.objectives[1])->random_next_prob = 0.2;
  other.train.seed = 99;
  other.train.batch_size = 5;
  other.data.packing = RowPacking::full;
  other.data.short_seq_prob = 0.5;
  const TokenStore store(plain.data.tokens, "valid");
  const auto a = held_out_measures(plain, store), b = held_out_measures(other, store);
  REQUIRE(a.size() == 2);
  for (const std::string name : {"mlm", "nsp"}) {
    INFO(name);
    const auto &one = measure(a, name), &two = measure(b, name);
    REQUIRE(one.sequences == two.sequences);
    const auto x = one.collator.batch(0, one.sequences), y = two.collator.batch(0, two.sequences);
    CHECK(at::equal(x.input_ids, y.input_ids));
    CHECK(x.positions.numel() == y.positions.numel());
    if (name == "mlm") CHECK(at::equal(x.labels, y.labels));
    if (name == "nsp") CHECK(at::equal(x.pair_label, y.pair_label));
  }
  CHECK(measure(a, "mlm").unigram->loss == measure(b, "mlm").unigram->loss);
  other.evaluation.seed = 2;
  const auto c = held_out_measures(other, store);
  const auto labels = [](const Measure& one) { return one.collator.batch(0, one.sequences).labels; };
  CHECK_FALSE(at::equal(labels(measure(c, "mlm")), labels(measure(a, "mlm"))));
  // In a run: another training seed, the same baseline; run.yaml records the resolved evaluation.
  const auto first = pretrain(plain, {.run = dir / "a"});
  auto seeded = plain;
  seeded.train.seed = 7;
  const auto second = pretrain(seeded, {.run = dir / "b"});
  CHECK(first.unigram_loss == second.unigram_loss);
  CHECK(loss_named(first.held_out, "mlm").loss != loss_named(second.held_out, "mlm").loss);
  const auto resolved = decode<RunConfig>(ConfigTree::load(dir / "a/run.yaml")).evaluation;
  CHECK(resolved.seed == 1);
  CHECK(resolved.max_seq_length == 32);
  REQUIRE(resolved.objectives.size() == 2);
  CHECK(short_form(resolved.objectives[0]) == "mlm");
}

TEST_CASE("a preset of the whole run does not change its held-out evaluation", "[train][evaluation]") {
  const auto tree = ConfigTree::parse(
      "like: spanbert\nobjectives: [{kind: mlm}]\nevaluation: {objectives: [{kind: mlm}]}\ntrain: {budget: {steps: 1}}",
      "run.yaml");
  const auto config = decode<RunConfig>(tree);
  CHECK(as<MlmConfig>(config.objectives[0])->unit == MaskingUnit::span);
  CHECK(as<MlmConfig>(config.evaluation.objectives[0])->unit == MaskingUnit::token);
  CHECK(short_form(resolved_evaluation(config).objectives[0]) == "mlm");
}

TEST_CASE("span boundary losses are held out on SpanBERT's rows, and other losses on their own", "[evaluation]") {
  const auto of_spans = row_objectives(SboConfig{});
  REQUIRE(of_spans.size() == 2);
  CHECK(short_form(of_spans[0]) == "mlm,like=spanbert");
  CHECK(short_form(of_spans[1]) == "sbo");
  CHECK(row_objectives(MlmConfig{}).size() == 1);
}

TEST_CASE("the short form of an objective parses back to itself", "[train][evaluation]") {
  for (const std::string text :
       {"mlm", "mlm:0.4", "mlm,unit=word", "mlm:0.3,like=spanbert", "nsp", "nsp:0.25", "sop", "clm",
        "span_corruption:0.3", "span_corruption,corruption=mass", "denoising", "plm,perm_size=4", "rtd"}) {
    INFO(text);
    CHECK(short_form(parse_objective(text)) == text);
  }
  CHECK(short_form(parse_objective("mlm:0.15")) == "mlm");
  CHECK(as<MlmConfig>(parse_objective("mlm:0.3,like=spanbert"))->random_from == RandomFrom::unigram);
  CHECK_THROWS_WITH(parse_objective("mml"), Catch::Contains("--objective mml: there is no objective 'mml'; did you "
                                                            "mean 'mlm'? the kinds are choice, classification, clm,"));
  CHECK_THROWS_WITH(parse_objective("clm:0.2"), Catch::Contains("clm has no share; give clm without one"));
  CHECK_THROWS_WITH(parse_objective("mlm:7"),
                    Catch::Contains("--objective mlm:7") && Catch::Contains("must be in [0, 1]"));
  CHECK_THROWS_WITH(parse_objective("mlm:0.15,word"),
                    Catch::Contains("'word' is not KEY=VALUE; give for instance mlm:0.15,unit=word"));
  CHECK_THROWS_WITH(parse_objective("mlm,unti=word"), Catch::Contains("did you mean 'evaluation.objectives.0.unit'?"));
}

TEST_CASE("an option that has no effect on a held-out loss is refused, in the short form and in a config",
          "[train][evaluation]") {
  for (const std::string text : {"mlm,weight=2", "mlm,from_step=3", "clm,z_loss=1e-4", "clm,label_smoothing=0.1",
                                 "mlm,initial_mlm_probability=0.3", "rtd,mlm.decay_steps=5"})
    CHECK_THROWS_WITH(parse_objective(text), Catch::Contains("--objective " + text + ": '") &&
                                                 Catch::Contains("' changes the training, and no held-out loss"));
  for (const std::string text :
       {"rtd,replace_by=uniform", "rtd,temperature=2", "clm,transform=true", "sbo,max_pair_targets=3"})
    CHECK_THROWS_WITH(parse_objective(text), Catch::Contains("' belongs to the network, which is scored as it was"));
  CHECK_THROWS_WITH(parse_objective("rtd,replace_by=uniform", "s.yaml: metric.objective"),
                    Catch::StartsWith("s.yaml: metric.objective rtd,replace_by=uniform: 'replace_by' belongs"));
  CHECK(short_form(parse_objective("rtd:0.25,mlm.unit=word")) == "rtd:0.25,mlm.unit=word");

  TempDir dir;
  auto config = tiny_run(dir, 1);
  MlmConfig mlm;
  mlm.weight = 2;  // counts in the sum of the losses
  config.evaluation.objectives = {mlm};
  CHECK_NOTHROW(refuse_ignored_options(config));
  mlm.from_step = 3;
  mlm.decay_steps = 5;
  config.evaluation.objectives = {mlm};
  CHECK_THROWS_WITH(refuse_ignored_options(config),
                    Catch::Contains("evaluation.objectives, mlm: from_step is 3, which changes the training, and no "
                                    "held-out loss; leave it out\nevaluation.objectives, mlm: decay_steps is 5"));
  RtdConfig rtd;
  rtd.temperature = 2;
  config.objectives = {rtd};
  config.evaluation.objectives = {rtd};
  CHECK_NOTHROW(refuse_ignored_options(config));  // the networks of the run itself, as a run.yaml has them
  config.objectives = {RtdConfig{}};
  CHECK_THROWS_WITH(refuse_ignored_options(config),
                    Catch::StartsWith("evaluation.objectives, rtd: temperature is 2, which belongs to the network"));
}

TEST_CASE("a held-out objective without a head in the network is rejected before a run starts", "[train][evaluation]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  const auto refused = [&](const std::string& objective, const std::string& reason) {
    config.evaluation.objectives = {parse_objective(objective)};
    INFO(objective);
    CHECK_THROWS_WITH(validate(config), Catch::Contains(reason));
  };
  refused("clm",
          "evaluation.objectives: the network has no head for clm, only for mlm, nsp; evaluate an objective that it "
          "has a head for, or train it with clm too");
  refused("sop", "no head for sop");
  config.evaluation.objectives = {parse_objective("mlm"), parse_objective("mlm:0.15")};
  CHECK_THROWS_WITH(validate(config), Catch::Contains("evaluation.objectives names mlm twice; keep one of them"));
  config.evaluation.objectives = {parse_objective("mlm"), parse_objective("mlm:0.4"), parse_objective("mlm,unit=word")};
  CHECK_NOTHROW(validate(config));
  config.evaluation.max_seq_length = 4000;
  CHECK_THROWS_WITH(validate(config), Catch::Contains("is longer than model.max_position_embeddings 32"));
  config.evaluation.max_seq_length = 0;
  config.objectives = {RtdConfig{}};
  refused("mlm", "the network has no head for mlm, only for rtd");
}

TEST_CASE("several masking rates are evaluated in one run, and each prediction is counted in its sequence",
          "[train][evaluation]") {
  TempDir dir;
  auto config = tiny_run(dir, 30);
  config.evaluation.objectives = {parse_objective("mlm"), parse_objective("mlm:0.5"), parse_objective("nsp")};
  const auto report = pretrain(config, {.run = dir / "run"});
  const auto &low = loss_named(report.held_out, "mlm"), &high = loss_named(report.held_out, "mlm:0.5");
  CHECK(high.count > 2.5 * static_cast<double>(low.count));
  for (const auto& one : report.held_out) {
    INFO(one.name);
    double sum = 0, count = 0;
    for (const auto& sequence : one.sequences) {
      sum += sequence.sum;
      count += sequence.count;
    }
    CHECK(count == static_cast<double>(one.count));
    CHECK(sum / count == Approx(one.loss));
    CHECK(*one.standard_error > 0);
  }
  // For any batch size.
  auto run = open_run(dir / "run");
  const auto measures = held_out_measures(run.config, TokenStore(config.data.tokens, "valid"));
  const auto by_three = evaluate(*run.network, measures, 3, at::kCPU),
             by_many = evaluate(*run.network, measures, 64, at::kCPU);
  for (size_t k = 0; k < by_three.size(); ++k) {
    CHECK(by_three[k].loss == Approx(by_many[k].loss).epsilon(1e-5));
    for (size_t s = 0; s < by_three[k].sequences.size(); ++s)
      CHECK(by_three[k].sequences[s].sum == Approx(by_many[k].sequences[s].sum).epsilon(1e-4).margin(1e-5));
  }
  const auto rows = metrics(dir / "run");
  CHECK(rows.back()["held_out"]["mlm:0.5_standard_error"].get<double>() == *high.standard_error);
  const auto summary = json::parse(read_file(dir / "run/summary.json"));
  CHECK(summary["held_out"]["mlm"]["standard_error"].get<double>() == *low.standard_error);
  CHECK(summary["held_out"]["nsp"]["baseline"]["name"] == "majority");
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Catch::Contains("+- ") && Catch::Contains("(majority 0.") && Catch::Contains("(unigram 2."));
}

TEST_CASE("the standard error treats documents as sampling units, not the sequences in them", "[train][evaluation]") {
  auto stream = Rng(4).stream("losses");
  std::vector<SequenceLoss> sequences;
  for (uint64_t document = 0; document < 200; ++document) {
    const double own = 5 * stream.uniform();
    for (int s = 0; s < 6; ++s) sequences.push_back({.sum = 10 * own, .count = 10, .document = document});
  }
  auto alone = sequences;
  for (size_t s = 0; s < alone.size(); ++s) alone[s].document = s;
  // Six sequences of one loss tell no more than one.
  CHECK(*standard_error(sequences) == Approx(std::sqrt(6.0) * *standard_error(alone)).epsilon(0.01));
  for (auto& sequence : alone) sequence.document = 3;
  CHECK(*standard_error(alone) < 0.5 * *standard_error(sequences));  // of one document, sequences are the units
}

TEST_CASE("the standard error treats sequences as sampling units, not tokens", "[train][evaluation]") {
  auto stream = Rng(3).stream("losses");
  std::vector<SequenceLoss> sequences;
  for (int s = 0; s < 400; ++s) {  // losses are constant within a sequence and differ between sequences
    const auto count = static_cast<double>(1 + stream.below(30));
    sequences.push_back({count * 5 * stream.uniform(), count});
  }
  // The bootstrap over sequences, as an independent estimate.
  double mean = 0, square = 0;
  constexpr int draws = 2000;
  for (int b = 0; b < draws; ++b) {
    double sum = 0, count = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto& drawn = sequences[stream.below(sequences.size())];
      sum += drawn.sum;
      count += drawn.count;
    }
    mean += sum / count / draws;
    square += sum / count * (sum / count) / draws;
  }
  const double bootstrap = std::sqrt(square - mean * mean);
  CHECK(*standard_error(sequences) == Approx(bootstrap).epsilon(0.06));
  // With one prediction per sequence it is the textbook formula.
  std::vector<SequenceLoss> single{{1, 1}, {2, 1}, {4, 1}, {9, 1}, {0, 0}};
  CHECK(*standard_error(single) == Approx(std::sqrt((9 + 4 + 0 + 25) / 3.0 / 4)));
  CHECK_FALSE(standard_error({{3, 2}}).has_value());
}

TEST_CASE("binary objectives come with the majority baseline, replaced token detection with F1",
          "[train][evaluation]") {
  const auto baseline = majority_baseline(30, 40);
  CHECK(baseline.accuracy == 0.75);
  CHECK(baseline.loss == Approx(-0.75 * std::log(0.75) - 0.25 * std::log(0.25)));
  CHECK(majority_baseline(0, 40).loss == 0);
  CHECK(f1_score({.positives = 10, .predicted = 5, .true_positives = 4}) == Approx(2 * 0.8 * 0.4 / (0.8 + 0.4)));
  CHECK(f1_score({}) == 0);
  TempDir dir;
  auto config = tiny_run(dir, 3);
  config.objectives = {RtdConfig{}};
  as<RtdConfig>(config.objectives[0])->generator_hidden_size = 1;
  const auto report = pretrain(config, {.run = dir / "run"});
  CHECK(loss_named(report.held_out, "generator").baseline->name == "unigram");
  const auto& rtd = loss_named(report.held_out, "rtd");
  CHECK(rtd.baseline->name == "majority");
  CHECK(rtd.baseline->accuracy > 0.8);  // at most the masked 15 % are replaced
  CHECK(rtd.f1.has_value());
  // The draws of the generator do not depend on the batch size.
  auto opened = open_run(dir / "run");
  const auto measures = held_out_measures(opened.config, TokenStore(config.data.tokens, "valid"));
  CHECK(evaluate(*opened.network, measures, 3, at::kCPU)[1].loss ==
        evaluate(*opened.network, measures, 50, at::kCPU)[1].loss);
  const auto row = metrics(dir / "run")[0];
  CHECK(row["rtd"]["majority"].get<double>() > 0.8);
  CHECK(row["rtd"].contains("f1"));
  auto pairs = tiny_run(dir, 1);
  const auto nsp = pretrain(pairs, {.run = dir / "pairs"});
  const auto of_pairs = held_out_measures(open_run(dir / "pairs").config, TokenStore(pairs.data.tokens, "valid"));
  const auto& measured = measure(of_pairs, "nsp");
  const auto labels = measured.collator.batch(0, measured.sequences).pair_label.to(at::kDouble).mean().item<double>();
  CHECK(loss_named(nsp.held_out, "nsp").baseline->accuracy == Approx(std::max(labels, 1 - labels)));
}

TEST_CASE("too few held-out sequences are reported", "[train][evaluation]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  const TokenStore store(config.data.tokens, "valid");
  config.evaluation.sequences = 3;
  CHECK(missing_sequences(held_out_measures(config, store), 3).empty());
  config.evaluation.sequences = 5000;
  const auto measures = held_out_measures(config, store);
  CHECK_THAT(missing_sequences(measures, 5000),
             Catch::Contains("mlm: " + std::to_string(measures[0].collator.size()) + " of 5,000 sequences exist"));
  pretrain(config, {.run = dir / "run"});
  CHECK_THAT(read_file(dir / "run/log.txt"), Catch::Contains(" of 5,000 sequences exist"));
}

TEST_CASE("a held-out loss that is not finite is never the best, and the run can be resumed",
          "[train][evaluation][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.schedule.shape = ConstantSchedule{}, config.schedule.warmup = 0;
  config.optimizer.learning_rate = 1e30;  // one step makes all weights non-finite
  const auto report = pretrain(config, {.run = dir / "run"});
  CHECK_FALSE(std::isfinite(report.held_out_loss));
  CHECK(report.best_step == 0);
  CHECK_FALSE(fs::exists(dir / "run/best"));
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Catch::Contains("the held-out loss at step 1 is not finite, so this step cannot be the best"));
  auto text = read_file(dir / "run/run.yaml");
  const auto at = text.find("1e+30");
  REQUIRE(at != std::string::npos);
  dir.write("run/run.yaml", text.replace(at, 5, "0.001"));
  config.optimizer.learning_rate = 0.001;
  CHECK(pretrain(config, {.run = dir / "run", .resume = true}).steps == 1);  // its state and metrics can be read
}

TEST_CASE("while no held-out objective is active there is no evaluation: no row, no best step, no patience",
          "[train][evaluation]") {
  TempDir dir;
  auto config = tiny_run(dir, 6);
  as<NspConfig>(config.objectives[1])->from_step = 4;
  config.evaluation.objectives = {parse_objective("nsp")};
  config.evaluation.every = 1, config.evaluation.patience = 2;
  const auto report = pretrain(config, {.run = dir / "run"});
  CHECK(report.steps == 6);
  CHECK(report.best_step >= 5);
  CHECK(report.held_out_loss > 0);
  for (const auto& row : metrics(dir / "run"))
    if (row.contains("held_out_loss")) CHECK(row["step"] >= 5);
  const std::string message = "no held-out evaluation at step 1: none of evaluation.objectives is active";
  const auto log = read_file(dir / "run/log.txt");
  CHECK_THAT(log, Catch::Contains(message) && Catch::Contains("held out at step 5:  nsp loss"));
  CHECK(log.find("no held-out evaluation", log.find(message) + 1) == std::string::npos);  // it is logged once
  // And if none is ever active.
  as<NspConfig>(config.objectives[1])->from_step = 100;
  const auto never = pretrain(config, {.run = dir / "never"});
  CHECK(never.steps == 6);
  CHECK(never.best_step == 0);
  CHECK(never.held_out.empty());
  CHECK(std::isnan(never.held_out_loss));
  CHECK_FALSE(fs::exists(dir / "never/best"));
  CHECK(json::parse(read_file(dir / "never/summary.json"))["held_out_loss"].is_null());
  config.train.budget.steps = 8;
  CHECK(pretrain(config, {.run = dir / "never", .resume = true}).best_step == 0);
}

TEST_CASE("runs from before the fixed held-out evaluation load and resume, without their best step",
          "[train][evaluation][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  config.evaluation.every = 1;
  pretrain(config, {.run = dir / "run"});
  auto text = read_file(dir / "run/run.yaml");
  const auto from = text.find("evaluation:"), to = text.find("checkpoint:");
  REQUIRE(from != std::string::npos);
  text = text.substr(0, from) + "evaluation:\n  every: 1\n  sequences: 64\n  patience: 0\n" + text.substr(to);
  const auto end_of_text = text.find("  eos_token_id: 3\n");  // a key that encoders did not have then
  REQUIRE(end_of_text != std::string::npos);
  text.erase(end_of_text, std::string("  eos_token_id: 3\n").size());
  dir.write("run/run.yaml", text);
  CHECK(open_run(dir / "run").config.evaluation.seed == 1);
  config.train.budget.steps = 3;
  CHECK(pretrain(config, {.run = dir / "run", .resume = true}).steps == 3);
  // A different evaluation is a change that must be allowed, and it resets the best step.
  config.train.budget.steps = 4;
  config.evaluation.seed = 5;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run", .resume = true}), Catch::Contains("evaluation.seed: 1 -> 5"));
  CHECK(pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true}).best_step == 4);
  CHECK_THAT(
      read_file(dir / "run/log.txt"),
      Catch::Contains("its best held-out loss comes from a different evaluation; the search for the best starts over"));
  dir.write("state/state.json",
            R"({"step": 3, "sequences": 24, "tokens": 700, "seconds": 1, "best_loss": null, "best_step": 3, )"
            R"("evaluations_without_gain": 0, "metrics_bytes": 10})");
  CHECK(load_state(dir / "state", nullptr).best_step == 0);
}

TEST_CASE("a warning tells if the balance of pairs differs much from the configured one", "[train][evaluation]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  auto& configured = as<NspConfig>(config.objectives[1])->random_next_prob;
  configured = 1;
  pretrain(config, {.run = dir / "balanced"});
  CHECK_THAT(read_file(dir / "balanced/log.txt"), !Catch::Contains("of the pairs have label 1"));
  std::string text;  // documents of one sentence
  auto stream = Rng(5).stream("documents");
  for (int d = 0; d < 40; ++d) {
    for (int k = 0; k < 8; ++k)
      text += std::string("w") + static_cast<char>('a' + stream.below(16)) + (k < 7 ? " " : "\n\n");
  }
  PrepareOptions options;
  options.inputs = {dir.write("short.txt", text)}, options.tokenizer = dir / "vocab.txt", options.out = dir / "short",
  options.format = TextFormat::lines, options.held_out = 0.2, options.threads = 1;
  prepare(options);
  config.data.tokens = dir / "short";
  configured = 0.5;
  pretrain(config, {.run = dir / "run"});
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Catch::Contains("nsp: 100 % of the pairs have label 1, random_next_prob is 50 %: a segment of one "
                             "sentence is always paired with text of another document"));
}
