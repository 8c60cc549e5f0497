#include <fcntl.h>
#include <sys/resource.h>

#include <limits>

#include "models/families/families.h"
#include "objectives/kinds.h"
#include "core/tensor/safetensors.h"
#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("decoders learn the language, and resume to the same bits", "[train][learning][resume]") {
  TempDir dir;
  auto base = tiny_run(dir, 400);
  PrepareOptions marked;
  marked.inputs = {dir / "text.txt"};
  marked.tokenizer = dir / "vocab.txt";
  marked.out = dir / "marked";
  marked.format = TextFormat::lines;
  marked.held_out = 0.1;
  marked.threads = 1;
  marked.sentinels = 40;
  prepare(marked);
  const auto small = [](auto model) {
    model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64,
    model.max_position_embeddings = 40;
    model.hidden_dropout_prob = model.activation_dropout = 0;
    model.attention_probs_dropout_prob = 0;
    model.d_kv = model.d_kv > 0 ? 16 : 0;
    return model;
  };
  SpanCorruptionConfig spans;
  struct Case {
    ModelConfig model;
    Objectives objectives;
    double share;  // of the unigram loss that may stay
  };
  auto rotary = small(Gpt2Config{});
  rotary.positions = Rotary{};
  LstmConfig lstm;
  lstm.hidden_size = 48;
  lstm.hidden_dropout_prob = 0;
  for (const auto& c : {Case{small(Gpt2Config{}), {ClmConfig{}}, 0.5}, Case{rotary, {ClmConfig{}}, 0.5},
                        Case{small(T5Config{}), {spans}, 0.6}, Case{small(BartConfig{}), {DenoisingConfig{}}, 0.6},
                        Case{lstm, {ClmConfig{}}, 0.6}}) {
    auto config = base;
    config.model = c.model;
    config.objectives = c.objectives;
    config.data.tokens = marked.out;
    const auto kind = kind_of(c.model);
    const auto* transformer = as<TransformerConfig>(c.model);
    const auto name = transformer ? kind + "-" + name_of(keys_of(transformer->positions).position_embeddings) : kind;
    INFO(name);
    if (kind != "gpt2") config.train.budget.steps = 900;
    const auto report = pretrain(config, {.run = dir / name});
    CHECK(report.held_out_loss < c.share * report.unigram_loss);
    config.train.budget.steps = 4;
    config.schedule.shape = ConstantSchedule{};
    config.schedule.warmup = 0;
    auto longer = config;
    longer.train.budget.steps = 8;
    pretrain(longer, {.run = dir / (name + "-whole")});
    pretrain(config, {.run = dir / (name + "-half")});
    pretrain(longer, {.run = dir / (name + "-half"), .resume = true});
    CHECK(same_files(dir / (name + "-whole/step-00000008/weights.safetensors"),
                     dir / (name + "-half/step-00000008/weights.safetensors")));
  }
}

TEST_CASE("the same config gives the same bits for any number of workers", "[train][determinism]") {
  TempDir dir;
  auto config = tiny_run(dir, 12);
  pretrain(config, {.run = dir / "a"});
  config.train.workers = 3;
  pretrain(config, {.run = dir / "b"});
  CHECK(metrics(dir / "a") == metrics(dir / "b"));
  CHECK(same_files(dir / "a/step-00000012/weights.safetensors", dir / "b/step-00000012/weights.safetensors"));
  config.train.seed = 2;
  pretrain(config, {.run = dir / "c"});
  CHECK_FALSE(metrics(dir / "a") == metrics(dir / "c"));
}

TEST_CASE("redrawn random features, and a discriminator initialized from its generator, resume to the same bits",
          "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 12);
  config.checkpoint.keep = 3;
  SECTION("performer") {
    PerformerConfig model;
    static_cast<TransformerConfig&>(model) = transformer_of(config.model);
    model.attention = PerformerAttention{.nb_features = 8, .feature_redraw_interval = 5};
    config.model = model;
  }
  SECTION("two stages") {
    RtdConfig rtd;
    rtd.generator_steps = 6;
    rtd.generator_hidden_size = 1;
    rtd.tie = EmbeddingTie::none;
    config.objectives = {rtd};
  }
  for (const int64_t every : {4, 6}) {  // before, and right at, the change
    INFO(every);
    config.checkpoint.every = every;
    const auto whole = dir / ("whole" + std::to_string(every)), parts = dir / ("parts" + std::to_string(every));
    config.train.budget.steps = 12;
    pretrain(config, {.run = whole});
    std::filesystem::copy(whole, parts, std::filesystem::copy_options::recursive);
    for (const auto& entry : std::filesystem::directory_iterator(parts)) {
      const auto name = entry.path().filename().string();
      if (name.rfind("step-", 0) == 0 && name > "step-0000000" + std::to_string(every))
        std::filesystem::remove_all(entry.path());
    }
    std::ofstream(parts + "/latest") << "step-0000000" << every << "\n";
    std::filesystem::remove(parts + "/best");
    pretrain(config, {.run = parts, .resume = true});
    CHECK(same_files(whole + "/step-00000012/weights.safetensors", parts + "/step-00000012/weights.safetensors"));
    CHECK(same_files(whole + "/step-00000012/optimizer.safetensors", parts + "/step-00000012/optimizer.safetensors"));
  }
}

TEST_CASE("a run with static masking resumes to the same bits after its masks have returned", "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 60);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  pretrain(config, {.run = dir / "dynamic"});
  as<MlmConfig>(config.objectives[0])->dupe_factor = 1;
  pretrain(config, {.run = dir / "whole"});
  config.train.budget.steps = 40;
  pretrain(config, {.run = dir / "resumed"});
  config.train.budget.steps = 60;
  pretrain(config, {.run = dir / "resumed", .resume = true});
  REQUIRE(metrics(dir / "whole")[39]["epochs"].get<double>() > 1);
  const std::string weights = "/step-00000060/weights.safetensors";
  CHECK(same_files(dir / ("whole" + weights), dir / ("resumed" + weights)));
  CHECK_FALSE(same_files(dir / ("whole" + weights), dir / ("dynamic" + weights)));
}

TEST_CASE("a run that was killed and resumed equals an uninterrupted one, to the last bit", "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 300);
  config.evaluation.every = 40;
  config.checkpoint.every = 25;
  check_killed_run(config, dir, "step-00000050", "step-00000300", {"weights.safetensors", "optimizer.safetensors"});
}

TEST_CASE("a run of an earlier version whose held-out objectives have options without effect is resumed and branched",
          "[train][resume][branch]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  MlmConfig mlm;
  config.evaluation.objectives = {mlm};
  pretrain(config, {.run = dir / "run"});
  mlm.initial_mlm_probability = 0.3;
  mlm.decay_steps = 10;
  auto earlier = decode<RunConfig>(ConfigTree::load(dir / "run/run.yaml"));
  earlier.evaluation.objectives = {mlm};
  dir.write("run/run.yaml", to_yaml(earlier));
  earlier.train.budget.steps = 3;
  CHECK(pretrain(earlier, {.run = dir / "run", .resume = true}).steps == 3);
  earlier.train.budget.steps = 4;
  CHECK(pretrain(earlier, {.run = dir / "branch", .branch_from = dir / "run"}).steps == 4);
  CHECK_THROWS_WITH(pretrain(earlier, {.run = dir / "new"}),
                    Catch::Contains("initial_mlm_probability is 0.3, which changes the training, and no held-out"));
}

TEST_CASE("SIGTERM and SIGHUP save a checkpoint and exit with 130, and the run can be resumed", "[train][resume]") {
  TempDir dir;
  const auto config = tiny_run(dir, 100000);
  std::ofstream(dir / "run.yaml") << to_yaml(config);
  signal(SIGHUP, SIG_DFL);  // the tests may be run by nohup
  const int sent = GENERATE(SIGTERM, SIGHUP);
  const auto child = train_in_child({.run = dir / "run"});
  CHECK(wait_until([&] { return metrics(dir / "run").size() >= 5; }));
  kill(child, sent);
  CHECK(wait_for(child) == 130);
  CHECK_FALSE(find_checkpoint(dir / "run").empty());
}

TEST_CASE("a signal to a run that cannot save its checkpoint ends it with 1, as a failure", "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 100000);
  config.checkpoint.log_every = 100000;  // only the first step: the metrics stay below the limit
  std::ofstream(dir / "run.yaml") << to_yaml(config);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit full{.rlim_cur = 32768, .rlim_max = before.rlim_max};  // bytes; the weights are larger
  setrlimit(RLIMIT_FSIZE, &full);
  const auto child = train_in_child({.run = dir / "run"});
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(wait_until([&] { return !metrics(dir / "run").empty(); }));
  kill(child, SIGTERM);
  CHECK(wait_for(child) == 1);
  CHECK(find_checkpoint(dir / "run").empty());
  CHECK_THAT(read_file(dir / "run/log.txt"), !Catch::Contains("the next checkpoint is saved as scheduled"));
}

TEST_CASE("a run that gets a signal while it is loading stops, and begins when it is resumed", "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 100000);
  std::ofstream(dir / "run.yaml") << to_yaml(config);
  for (const int milliseconds : {0, 20, 60, 150, 300, 500}) {
    INFO(milliseconds);
    fs::remove_all(dir / "run");
    const auto child = train_in_child({.run = dir / "run"});
    usleep(static_cast<useconds_t>(1000 * milliseconds));
    kill(child, SIGTERM);
    const int code = wait_for(child);  // 143 = 128 + SIGTERM: before there was work to save
    CHECK((code == 130 || code == 143));
  }
  config.train.budget.steps = 2;
  CHECK(pretrain(config, {.run = dir / "run", .resume = fs::exists(dir / "run/run.yaml"), .overwrite_config = true})
            .steps >= 2);
}

TEST_CASE("a checkpoint records the version of the rules for its rows; without a record it is version 1",
          "[train][checkpoint]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  const auto folder = dir / "run/step-00000002";
  CHECK(load_state(folder, nullptr).row_rules == row_rules);
  auto state = nlohmann::json::parse(read_file(folder + "/state.json"));
  state.erase("row_rules");
  dir.write("old/state.json", state.dump());
  CHECK(load_state(dir / "old", nullptr).row_rules == 1);
}

TEST_CASE("counts of a state.json that no run can have are refused", "[train][checkpoint]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  const auto state = nlohmann::json::parse(read_file(dir / "run/step-00000002/state.json"));
  const auto refused_with = [&](const char* pointer, const nlohmann::json& value) {
    auto hostile = state;
    hostile[nlohmann::json::json_pointer(pointer)] = value;
    dir.write("old/state.json", hostile.dump());
    CHECK_THROWS_WITH(load_state(dir / "old", nullptr), Catch::EndsWith("is damaged; resume from another step"));
  };
  for (const char* count : {"/step", "/sequences", "/tokens", "/metrics_bytes", "/phase/number", "/phase/sequence"}) {
    refused_with(count, -1);
    refused_with(count, 1e300);
    refused_with(count, std::numeric_limits<uint64_t>::max());
  }
}

TEST_CASE("a damaged newest checkpoint is skipped for the newest valid one", "[train][checkpoint]") {
  TempDir dir;
  auto config = tiny_run(dir, 8);
  config.checkpoint.every = 4;
  pretrain(config, {.run = dir / "run"});
  const auto newest = find_checkpoint(dir / "run");
  CHECK(newest == dir / "run/step-00000008");
  auto content = read_file(newest + "/weights.safetensors");
  content[content.size() / 2] = static_cast<char>(content[content.size() / 2] ^ 1);
  std::ofstream(newest + "/weights.safetensors", std::ios::binary) << content;
  CHECK(find_checkpoint(dir / "run") == dir / "run/step-00000004");
  CHECK_THROWS_WITH(verify_run(dir / "run"), Catch::Contains("weights.safetensors does not match its checksum"));
  std::ofstream(dir / "run/step-00000004/manifest.json") << "{}";
  CHECK(find_checkpoint(dir / "run").empty());
  CHECK_THROWS_WITH(open_run(dir / "run"), Catch::Contains("holds no valid checkpoint"));
  const auto rows = metrics(dir / "run");
  CHECK_THROWS_WITH(
      pretrain(config, {.run = dir / "run", .resume = true}),
      Catch::Contains("run: has no intact checkpoint to continue from; restore one, start a new run in another folder "
                      "with --run, or remove this one and begin anew"));
  CHECK(metrics(dir / "run") == rows);
}

TEST_CASE("old checkpoints are removed, and damaged ones after the latest do not count", "[train][checkpoint]") {
  TempDir dir;
  auto config = tiny_run(dir, 12);
  config.checkpoint.every = 4;
  config.checkpoint.keep = 1;
  pretrain(config, {.run = dir / "run"});
  fs::create_directories(dir / "run/step-00000099");
  prune_checkpoints(dir / "run", 1);
  CHECK(fs::exists(dir / "run/step-00000012"));
  CHECK_FALSE(fs::exists(dir / "run/step-00000008"));
}

TEST_CASE(
    "a run that continues with another optimizer resets its moments, and gives the same result when resumed again",
    "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 4);
  pretrain(config, {.run = dir / "a"});
  fs::copy(dir / "a", dir / "c", fs::copy_options::recursive);
  config.optimizer.rule = Lamb{};
  config.train.budget.steps = 8;
  config.checkpoint.every = 2;
  pretrain(config, {.run = dir / "a", .resume = true, .overwrite_config = true});
  CHECK_THAT(read_file(dir / "a/log.txt"),
             Catch::Contains("step-00000004: was made by adamw; the moments of lamb start from zero"));
  fs::copy(dir / "a", dir / "b", fs::copy_options::recursive);
  fs::remove_all(dir / "b/step-00000008");
  pretrain(config, {.run = dir / "b", .resume = true});
  fs::copy(dir / "a/run.yaml", dir / "c/run.yaml",
           fs::copy_options::overwrite_existing);  // as if it was killed before its first checkpoint
  pretrain(config, {.run = dir / "c", .resume = true});
  for (const std::string run : {"b", "c"})
    for (const std::string file : {"weights.safetensors", "optimizer.safetensors"})
      CHECK(same_files(dir / ("a/step-00000008/" + file), dir / (run + "/step-00000008/" + file)));
}

TEST_CASE(
    "a run with Muon for the matrices of its stack learns, and after a kill and a resume it ends with the same bits",
    "[train][resume][optimizer]") {
  TempDir dir;
  auto config = tiny_run(dir, 40);
  auto& group = config.optimizer.groups.emplace_back();
  static_cast<UpdateOptions&>(group) = config.optimizer;
  group.rule = Muon{};
  group.role = Role::weight;
  group.names = {"backbone.stack.*"};
  group.learning_rate = 0.02;
  config.checkpoint.every = 7;
  config.evaluation.every = 20;
  check_killed_run(config, dir, "step-00000014", "step-00000040", {"weights.safetensors", "optimizer.safetensors"});
  const auto moments = SafeTensors::open(dir / "a/step-00000040/optimizer.safetensors").names();
  const auto count = [&](const std::string& beginning) {
    return std::count_if(moments.begin(), moments.end(), [&](const auto& name) { return name.starts_with(beginning); });
  };
  CHECK(count("momentum.backbone.stack.") > 0);
  CHECK(count("momentum.") == count("momentum.backbone.stack."));
  CHECK(count("exp_avg.backbone.embeddings.") > 0);
  CHECK(load_state(dir / "a/step-00000040", nullptr).optimizer == "adamw, muon");
}

TEST_CASE("a run that ended, by its budget or by patience, is unchanged when it is resumed", "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 8);
  std::string by = "budget";
  SECTION("budget") { config.evaluation.every = 4; }
  SECTION("patience") {
    by = "patience";
    config.train.budget.steps = 400;
    config.optimizer.learning_rate = 0;
    config.evaluation.every = 2;
    config.evaluation.patience = 3;
    config.checkpoint.every = 4;
  }
  const auto first = pretrain(config, {.run = dir / "run"});
  REQUIRE(first.steps == 8);
  const auto rows = metrics(dir / "run");
  const auto state = read_file(dir / "run/step-00000008/state.json");
  for (int times = 0; times < 2; ++times) {
    const auto again = pretrain(config, {.run = dir / "run", .resume = true});
    CHECK(again.steps == 8);
    CHECK(again.stopped_by == by);
    CHECK(again.held_out_loss == first.held_out_loss);
    CHECK(metrics(dir / "run") == rows);
    CHECK(read_file(dir / "run/step-00000008/state.json") == state);
  }
}

TEST_CASE("times are summed over all processes of a run, without those that an older checkpoint does not record",
          "[train][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 4);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  const auto run = dir / "run";
  pretrain(config, {.run = run});
  auto state = load_state(find_checkpoint(run), nullptr);
  const auto parts = [](const TimeBreakdown& l) {
    return l.data_wait + l.forward + l.backward + l.optimizer + l.other;
  };
  CHECK(state.time_breakdown.forward > 0);
  CHECK(parts(state.time_breakdown) == Approx(state.seconds));
  // As if the first process had taken a thousand seconds.
  const auto go_on_from = [&](const TimeBreakdown& time_breakdown) {
    auto opened = open_run(run);
    state.seconds = 1000;
    state.time_breakdown = time_breakdown;
    save_checkpoint(run, state, collect_params(*opened.network), {});
    config.train.budget.steps += 2;
    state.step = config.train.budget.steps;
    return pretrain(config, {.run = run, .resume = true});
  };
  const auto known = go_on_from({.seconds = 1000, .forward = 400, .backward = 500, .other = 100, .evaluation = 7});
  CHECK(known.time_breakdown.forward > 400);
  CHECK(known.time_breakdown.forward < 450);
  CHECK(known.time_breakdown.other < 150);
  CHECK(known.time_breakdown.evaluation > 7);
  CHECK(known.time_breakdown.seconds == Approx(known.seconds));
  CHECK(parts(known.time_breakdown) == Approx(known.seconds));
  const auto unknown = go_on_from({});
  CHECK(unknown.seconds > 1000);
  CHECK(unknown.time_breakdown.seconds == Approx(unknown.seconds - 1000));
  CHECK(unknown.time_breakdown.other < 50);
}

TEST_CASE(
    "tokens that another process cuts end a run with a sentence after it has saved, and it resumes to the same bits",
    "[train][resume]") {
  TempDir dir;
  const auto config = tiny_run(dir, 1000);
  const auto tokens = dir / "tokens/train-00000.tokens", whole = read_file(tokens), errors = dir / "errors";
  std::ofstream(dir / "a.yaml") << to_yaml(config);
  std::ofstream(dir / "b.yaml") << to_yaml(config);
  REQUIRE(wait_for(train_in_child({.run = dir / "a"})) == 0);
  const pid_t child = fork_with_default_signals();
  if (child == 0) {
    dup2(open(errors.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    execl(BINARY_DIR "/cloze", "cloze", "--quiet", "pretrain", (dir / "b.yaml").c_str(), "--run", (dir / "b").c_str(),
          nullptr);
    _exit(127);
  }
  CHECK(wait_until([&] { return metrics(dir / "b").size() >= 20; }));
  fs::resize_file(tokens, 0);
  CHECK(wait_for(child) == 1);
  CHECK_THAT(read_file(errors),
             Catch::Contains(tokens + ": became shorter while it was read; prepare the text again; step") &&
                 Catch::Contains("is saved, `cloze pretrain --run " + dir / "b" + " --resume`"));
  CHECK_FALSE(find_checkpoint(dir / "b").empty());
  std::ofstream(tokens, std::ios::binary) << whole;
  REQUIRE(wait_for(train_in_child({.run = dir / "b", .resume = true})) == 0);
  CHECK(metrics(dir / "a") == metrics(dir / "b"));
  CHECK(same_files(dir / "a/step-00001000/weights.safetensors", dir / "b/step-00001000/weights.safetensors"));
}
