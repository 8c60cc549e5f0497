#include <sys/resource.h>

#include <limits>

#include "core/tensor/safetensors.h"
#include "core/config/config.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "tests/support/runs.h"
#include "run/device.h"
#include "run/records/metrics.h"
#include "train/schedule.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// The bytes that the labels of the first `sequences` rows cover, read in batches of a size; none if they are unknown.
std::optional<uint64_t> bytes_of_labels(const Collator& collator, int64_t sequences, int64_t batch_size) {
  uint64_t sum = 0;
  for (int64_t first = 0; first < std::min(sequences, static_cast<int64_t>(collator.size())); first += batch_size) {
    std::vector<RowDraws> rows;
    const auto left = std::min(sequences, static_cast<int64_t>(collator.size())) - first;
    collator.batch(static_cast<uint64_t>(first), std::min(batch_size, left), &rows);
    for (const auto& row : rows) {
      const auto bytes = label_bytes(collator.store(), row);
      if (!bytes) return std::nullopt;
      sum += *bytes;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a tiny BERT learns a language of known entropy, masked words and sentence order", "[train][learning]") {
  TempDir dir;
  const auto report = pretrain(tiny_run(dir, 1500), {.run = dir / "run"});
  // The unigram loss of a word is ln 16, its loss given its neighbours 0. Half of the difference must be learned.
  CHECK(report.unigram_loss == Approx(std::log(16)).epsilon(0.1));
  REQUIRE(report.held_out.size() == 2);
  CHECK(report.held_out[0].name == "mlm");
  CHECK(report.held_out[0].loss < 0.5 * report.unigram_loss);
  CHECK(report.held_out[0].accuracy.value() > 0.6);
}

TEST_CASE("every family learns the language with its own objectives", "[train][learning]") {
  TempDir dir;
  const auto base = tiny_run(dir, 1500);
  const auto small = [](auto model) {
    model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64,
    model.max_position_embeddings = 40;
    model.embedding_size = model.embedding_size > 0 ? 24 : 0;
    return model;
  };
  auto spans = preset<MlmConfig>("spanbert"), ngrams = preset<MlmConfig>("albert");
  const auto electra = preset<MlmConfig>("electra");
  spans.max_span_length = 1, ngrams.max_ngram = 1;  // in this language every second word determines the word in between
  LongformerConfig near;
  near.attention = WindowAttention{.attention_window = {4}};
  PerformerConfig performer;
  performer.attention = PerformerAttention{.nb_features = 32, .feature_redraw_interval = 50};
  BigBirdConfig blocks;
  blocks.attention = BigBirdAttention{.block_size = 4, .num_random_blocks = 1};
  auto modernbert = small(ModernBertConfig{});
  modernbert.num_hidden_layers = 2;
  modernbert.attention = AlternatingAttention{.global_attn_every_n_layers = 2, .local_attention = 4};
  RtdConfig rtd;
  rtd.weight = 2;
  rtd.generator_hidden_size = 1;
  rtd.mlm = electra;
  const std::vector<std::pair<ModelConfig, Objectives>> families{{small(RobertaConfig{}), {MlmConfig{}}},
                                                                 {small(AlbertConfig{}), {ngrams, SopConfig{}}},
                                                                 {small(DistilBertConfig{}), {spans}},
                                                                 {small(near), {MlmConfig{}}},
                                                                 {small(performer), {MlmConfig{}}},
                                                                 {small(blocks), {MlmConfig{}}},
                                                                 {modernbert, {MlmConfig{}}},
                                                                 {small(ElectraConfig{}), {rtd}}};
  for (const auto& [model, objectives] : families) {
    auto config = base;
    config.model = model;
    config.objectives = objectives;
    config.evaluation.objectives = objectives;
    INFO(kind_of(model));
    const auto report = pretrain(config, {.run = dir / kind_of(model)});
    CHECK(report.held_out[0].loss < 0.8 * report.unigram_loss);
    const auto filled = open_run(dir / kind_of(model));
    CHECK(filled.config.objectives.size() == objectives.size());
  }
}

TEST_CASE("the unigram baseline takes frequencies of special tokens from the targets, of words from the training text",
          "[train]") {
  TempDir dir;
  const auto base = tiny_run(dir, 1);
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.tokenizer = dir / "vocab.txt";
  options.out = dir / "marked";
  options.format = TextFormat::lines;
  options.held_out = 0.1;
  options.threads = 1;
  options.sentinels = 40;
  prepare(options);
  const TokenStore train(options.out, "train"), store(options.out, "valid");
  const Collator collator(store, {SpanCorruptionConfig{}}, base.data, Rng(1), "valid", T5Config{});
  std::map<int64_t, double> label_shares;
  const auto labels = collator.batch(0, static_cast<int64_t>(collator.size())).labels;
  for (int64_t i = 0; i < labels.numel(); ++i)
    label_shares[labels[i].item<int64_t>()] += 1.0 / static_cast<double>(labels.numel());
  double special_share = 0, words = 0, expected = 0;
  for (const auto& [id, share] : label_shares) special_share += store.tokenizer().is_special(id) ? share : 0;
  for (size_t id = 0; id < train.train_counts().size(); ++id)
    words +=
        store.tokenizer().is_special(static_cast<int64_t>(id)) ? 0 : static_cast<double>(train.train_counts()[id]) + 1;
  for (const auto& [id, share] : label_shares)
    expected -=
        share * std::log(store.tokenizer().is_special(id)
                             ? share
                             : (1 - special_share) *
                                   (static_cast<double>(train.train_counts()[static_cast<size_t>(id)]) + 1) / words);
  const auto found =
      unigram_baseline(collator, collator.store().train_counts(), static_cast<int64_t>(collator.size()), 7);
  CHECK(special_share > 0.2);  // with spans of three, about a third of a target are sentinels
  CHECK(found.loss == Approx(expected));
  CHECK(found.count == labels.numel());
  CHECK(found.accuracy < special_share);
}

TEST_CASE("in two stages the generator trains alone, then it is frozen and the discriminator starts from its weights",
          "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 8);
  RtdConfig rtd;
  rtd.generator_steps = 4;
  rtd.generator_hidden_size = 1;
  rtd.tie = EmbeddingTie::none;
  config.objectives = {rtd};
  config.checkpoint.every = 1;
  config.checkpoint.keep = 20;
  config.schedule.warmup = 0;
  pretrain(config, {.run = dir / "run"});
  const auto weights = [&](int step) {
    return SafeTensors::open(dir / ("run/step-0000000" + std::to_string(step) + "/weights.safetensors"));
  };
  const auto four = weights(4), five = weights(5), eight = weights(8);
  bool generator_moved = false, discriminator_moved = false;
  for (const auto& name : four.names()) {
    INFO(name);
    if (name.rfind("rtd.generator", 0) == 0) CHECK(at::equal(four.get(name), eight.get(name)));
    if (name.rfind("rtd.generator", 0) == 0)
      generator_moved = generator_moved || !at::equal(weights(1).get(name), four.get(name));
    if (name.rfind("backbone.", 0) == 0) {
      CHECK((five.get(name) - four.get("rtd.generator." + name.substr(9))).abs().max().item<double>() <
            0.01);  // one step after the copy
      discriminator_moved = discriminator_moved || !at::equal(five.get(name), eight.get(name));
    }
  }
  CHECK(generator_moved);
  CHECK(discriminator_moved);
  const auto rows = metrics(dir / "run");
  CHECK(rows[0].contains("generator"));
  CHECK_FALSE(rows[0].contains("rtd"));
  CHECK(rows[7].contains("rtd"));
  CHECK_FALSE(rows[7].contains("generator"));
}

TEST_CASE("an objective is active from from_step until until_step", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 6);
  as<NspConfig>(config.objectives[1])->from_step = 2, as<NspConfig>(config.objectives[1])->until_step = 4;
  pretrain(config, {.run = dir / "run"});
  const auto rows = metrics(dir / "run");
  for (size_t i = 0; i < 6; ++i) {
    CHECK(rows[i].contains("mlm"));
    CHECK(rows[i].contains("nsp") == (i == 2 || i == 3));
  }
  CHECK(open_run(dir / "run").network->objectives[1]->active() == false);  // as in the last step
  // A loss that becomes active raises the sum, so the best step is reset.
  auto later = config;
  as<NspConfig>(later.objectives[1])->until_step = 0, later.evaluation.every = 2, later.optimizer.learning_rate = 0;
  CHECK(pretrain(later, {.run = dir / "later"}).best_step == 4);
  as<MlmConfig>(config.objectives[0])->until_step = 3;
  CHECK_THROWS_WITH(
      validate(config),
      Catch::Contains("no objective is active at step 4; let one begin earlier or end later (from_step, until_step)"));
}

TEST_CASE("gradient accumulation normalises by the predictions of the whole batch", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 3);
  auto& model = *as<BertConfig>(config.model);
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  config.train.precision = Precision::fp32;
  as<MlmConfig>(config.objectives[0])->count = CountRule::bernoulli;  // micro-batches with unequal counts
  pretrain(config, {.run = dir / "whole"});
  config.train.batch_size = 2;
  config.train.accumulation = 4;
  pretrain(config, {.run = dir / "parts"});
  const auto a = metrics(dir / "whole"), b = metrics(dir / "parts");
  for (size_t i = 0; i < 3; ++i) {
    CHECK(a[i]["loss"].get<double>() == Approx(b[i]["loss"].get<double>()).epsilon(1e-5));
    CHECK(a[i]["grad_norm"].get<double>() == Approx(b[i]["grad_norm"].get<double>()).epsilon(1e-4));
    CHECK(a[i]["mlm"]["count"] == b[i]["mlm"]["count"]);
  }
}

TEST_CASE("gradient checkpointing changes memory, not numbers", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 4);
  pretrain(config, {.run = dir / "a"});
  config.train.gradient_checkpointing = true;
  pretrain(config, {.run = dir / "b"});
  CHECK(same_files(dir / "a/step-00000004/weights.safetensors", dir / "b/step-00000004/weights.safetensors"));
}

TEST_CASE("a loss that is not finite stops the run before the update, with step and tensor in the message", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 50);
  config.optimizer.learning_rate = 900;
  config.optimizer.max_grad_norm = 0;
  config.schedule.warmup = 0;
  config.schedule.shape = ConstantSchedule{};
  as<BertConfig>(config.model)->initializer_range = 9;
  try {
    pretrain(config, {.run = dir / "run"});
    FAIL("such a run cannot succeed");
  } catch (const Error& error) {
    CHECK_THAT(std::string(error.what()),
               Catch::Contains("is not finite at step") &&
                   Catch::Contains("no update was made, the last good checkpoint is none yet"));
    CHECK(error.exit_code() == 1);
  }
  config.train.on_nonfinite = OnNonFinite::skip;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "skips"}),
                    Catch::Contains("is not finite at step") && Catch::Contains(", and so were the 10 before it"));
}

TEST_CASE("invalid runs are rejected with a clear message", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run"}),
                    Catch::Contains("exists; continue it with --resume, or name another folder with --run"));
  auto other = config;
  other.optimizer.learning_rate = 1;
  CHECK_THROWS_WITH(
      pretrain(other, {.run = dir / "run", .resume = true}),
      Catch::Contains("was made with a different config") && Catch::Contains("optimizer.learning_rate: 0.003 -> 1"));
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "none", .resume = true}),
                    Catch::Contains("contains no run to resume"));
  other = config;
  as<BertConfig>(other.model)->vocab_size = 7;
  CHECK_THROWS_WITH(pretrain(other, {.run = dir / "x"}),
                    Catch::Contains("model.vocab_size is 7, the tokenizer of") &&
                        Catch::Contains("has 21 tokens; raise it, or leave it out"));
  RobertaConfig roberta;  // positions start after the padding id: with padding last in the vocabulary too few remain
  roberta.hidden_size = 32, roberta.num_hidden_layers = 1, roberta.num_attention_heads = 2,
  roberta.intermediate_size = 64, roberta.max_position_embeddings = 34;
  TempDir elsewhere;
  PrepareOptions late;
  late.inputs = {elsewhere.write("text.txt", synthetic_text(20, 12))};
  late.out = elsewhere / "tokens";
  late.format = TextFormat::lines;
  late.threads = 1;
  late.tokenizer = elsewhere.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\nwa\nwb\nwc\n");
  prepare(late);
  other = config;
  other.model = roberta;
  other.objectives = {MlmConfig{}};
  other.data.tokens = late.out;
  CHECK_THROWS_WITH(pretrain(other, {.run = dir / "late"}),
                    Catch::Contains("the tokenizer's padding id is 7, and positions of roberta start after it; "
                                    "raise model.max_position_embeddings to 40"));
  other = config;
  other.train.device = "cuda";
  if (!has_fast_bf16(at::kCPU)) CHECK_THROWS_AS(pretrain(other, {.run = dir / "y"}), ConfigError);
  other = config;
  as<BertConfig>(other.model)->num_attention_heads = 5;
  other.data.max_seq_length = 99;
  other.train.budget.steps = 0;
  CHECK_THROWS_WITH(
      validate(other),
      "model.hidden_size 32 is not a multiple of model.num_attention_heads 5; choose a width that is divisible by the "
      "number of heads\n"
      "data.max_seq_length 99 is longer than model.max_position_embeddings 32; shorten the sequences or give the model "
      "more positions\n"
      "train.budget has no limit; give steps, tokens, predicted_tokens, words, epochs, flops or minutes");
  other = config;
  T5Config t5;
  t5.hidden_size = 32;
  t5.num_attention_heads = 2;
  other.model = t5;
  other.objectives = {PairsConfig{}};
  other.data.packing = RowPacking::full;
  other.data.short_seq_prob = 0.5;
  CHECK_THROWS_WITH(validate(other),
                    "objective pairs makes rows of full length, and data.short_seq_prob is 0.5; set it to 0\n"
                    "objective pairs makes one row per pair, and data.packing is full; choose document");
  other.objectives = {GapSentencesConfig{}};
  other.data.short_seq_prob = 0.1;
  CHECK_THROWS_WITH(
      validate(other),
      "objective gap_sentences masks whole sentences, and data.packing full cuts them; choose doc_sentences "
      "or full_sentences");
}

TEST_CASE("span corruption with too few sentinels is rejected before training", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.out = dir / "few";
  options.format = TextFormat::lines;
  options.tokenizer = dir / "vocab.txt";
  options.sentinels = 1;
  options.threads = 1;
  prepare(options);
  config.model = T5Config{};
  config.data.short_seq_prob = 0;
  config.objectives = {SpanCorruptionConfig{}};
  config.data.tokens = options.out;
  CHECK_THROWS_WITH(
      pretrain(config, {.run = dir / "run"}),
      "a text of 34 tokens has 2 noise spans, but the tokenizer of " + options.out +
          " has 1 sentinels; prepare the text with --sentinels 2, shorten data.max_seq_length, or lengthen the spans");
}

TEST_CASE("schedules match their closed forms", "[train][schedule]") {
  ScheduleConfig s;
  s.warmup = 10;
  CHECK(schedule_factor(s, 0, 100) == 0);
  CHECK(schedule_factor(s, 5, 100) == 0.5);
  CHECK(schedule_factor(s, 10, 100) == 1);
  CHECK(schedule_factor(s, 55, 100) == Approx(0.5));
  CHECK(schedule_factor(s, 100, 100) == 0);
  auto* linear = part_in<LinearSchedule>(s.shape);
  linear->decay_from_start = true;  // google-bert: from step 0, so the rate drops at the end of the warm-up
  CHECK(schedule_factor(s, 10, 100) == Approx(0.9));
  linear->decay_in_warmup = true;  // electra: warm-up times decay
  CHECK(schedule_factor(s, 5, 100) == Approx(0.5 * 0.95));
  CHECK(schedule_factor(s, 10, 100) == Approx(0.9));
  s.shape = CosineSchedule{};
  part_in<EndFactor>(s.shape)->end_factor = 0.1;
  CHECK(schedule_factor(s, 55, 100) == Approx(0.1 + 0.9 * 0.5));
  CHECK(schedule_factor(s, 100, 100) == Approx(0.1));
  s.shape = ConstantSchedule{};
  CHECK(schedule_factor(s, 99, 100) == 1);
  s.shape = InverseSqrtSchedule{};
  CHECK(schedule_factor(s, 40, 100) == Approx(0.5));
  s.shape = LinearSchedule{};
  s.warmup = 0.1;
  CHECK(schedule_factor(s, 50, 1000) == 0.5);  // below 1: a fraction of the budget
}

TEST_CASE("metrics that cannot be written to a full disk are reported once, and written when it has room again",
          "[train][metrics]") {
  TempDir dir;
  fs::create_directories(dir / "run");
  set_log_file(dir / "log.txt");
  Metrics metrics(dir / "run", 0, 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit full{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  for (int step = 1; step <= 20; ++step) metrics.write({{"step", step}, {"note", std::string(1000, 'x')}});
  const auto text = read_file(dir / "run/metrics.jsonl");
  CHECK(text.size() == 4096);  // the last line is not whole
  CHECK(metrics.sync() == text.rfind('\n') + 1);
  setrlimit(RLIMIT_FSIZE, &before);
  metrics.write({{"step", 21}});  // with all lines before it
  const auto rows = cloze::metrics(dir / "run");
  REQUIRE(rows.size() == 21);
  for (int step = 1; step <= 21; ++step) CHECK(rows[static_cast<size_t>(step) - 1]["step"] == step);
  signal(SIGXFSZ, handler);
  set_log_file("");
  const auto log = read_file(dir / "log.txt"),
             message =
                 std::string("metrics.jsonl cannot be written (File too large); the run continues, and its lines");
  const auto first = log.find(message);
  REQUIRE(first != std::string::npos);
  CHECK(log.find(message, first + 1) == std::string::npos);
}

TEST_CASE("patience ends a run whose held-out loss no longer improves", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 400);
  config.optimizer.learning_rate = 0;
  config.evaluation.every = 2;
  config.evaluation.patience = 3;
  const auto report = pretrain(config, {.run = dir / "run"});
  CHECK(report.stopped_by == "patience");
  CHECK(report.steps == 8);
}

TEST_CASE("a warm-up in steps counts steps, whichever limit ends the run", "[train][schedule]") {
  TempDir dir;
  auto config = tiny_run(dir, 0);
  config.schedule.warmup = 6;
  config.schedule.shape = LinearSchedule{};
  config.checkpoint.log_every = 1;
  config.train.budget.tokens = 3000;
  pretrain(config, {.run = dir / "a"});
  config.train.budget.steps = 1000;
  pretrain(config, {.run = dir / "b"});
  const auto rows = metrics(dir / "b");
  CHECK(rows == metrics(dir / "a"));
  std::vector<double> rates;
  for (const auto& row : rows)
    if (row.contains("learning_rate"))
      rates.push_back(row["learning_rate"].get<double>() / config.optimizer.learning_rate);
  REQUIRE(rates.size() > 9);
  for (size_t k = 0; k < 6; ++k) CHECK(rates[k] == Approx(static_cast<double>(k) / 6));
  for (size_t k = 7; k < rates.size(); ++k) CHECK(rates[k] < rates[k - 1]);
  CHECK(rates.back() < 0.4);
}

TEST_CASE("bits per byte count the bytes of the source text, for any tokenizer, objective and batch size", "[train]") {
  TempDir dir;
  std::string text;
  uint64_t bytes = 0;  // of all lines, each a document of two sentences
  for (int i = 0; i < 60; ++i) {
    const auto line = "The  City of NUMBER " + std::to_string(i * 37 % 91) +
                      " lies in \xC3\x84gypten. It was never seen" + (i % 7 == 0 ? " \xF0\x9F\x98\x80" : "");
    text += line + "\n\n";
    bytes += line.size();
  }
  const auto file = dir.write("text.txt", text);
  for (const std::string kind : {"byte_bpe", "unigram", "wordpiece"}) {
    PrepareOptions options;
    options.inputs = {file};
    options.out = dir / kind;
    options.train_kind = choice_of<TokenizerKind>(kind);
    options.vocab_size = kind == "byte_bpe" ? 300 : 70;
    options.held_out = 0;
    options.threads = 1;
    options.sentinels = 100;
    options.lowercase = kind == "wordpiece";
    options.for_scoring = true;
    prepare(options);
    const TokenStore store(options.out, "train");
    if (kind == "wordpiece")
      REQUIRE(std::count_if(store.train_counts().begin(), store.train_counts().end(), [](auto n) { return n > 0; }) >
              10);
    DataConfig data;
    data.max_seq_length = 256;
    data.short_seq_prob = 0;
    Gpt2Config gpt;
    gpt.eos_token_id = store.tokenizer().special().sep;
    BartConfig bart;
    bart.eos_token_id = store.tokenizer().special().sep;
    uint64_t unpredicted = 0;  // a decoder-only model does not predict the first token
    for (uint64_t d = 0; d < store.num_documents(); ++d) {
      unpredicted += *store.source_bytes(store.document_token(d));
      uint64_t whole = 0;
      for (uint64_t t = store.document_token(d); t < store.document_token(d + 1); ++t) whole += *store.source_bytes(t);
      CHECK(whole >= 46);
    }
    if (kind != "unigram") CHECK(unpredicted > 0);  // of unigram the first token may cover no byte
    SpanCorruptionConfig half;
    half.noise_density = 0.5;
    for (const int64_t batch : {1, 3, 16}) {
      INFO(kind << " " << batch);
      CHECK(bytes_of_labels(Collator(store, {ClmConfig{}}, data, Rng(1), "train", gpt), 1000, batch) ==
            bytes - unpredicted);
      CHECK(bytes_of_labels(Collator(store, {DenoisingConfig{}}, data, Rng(1), "train", bart), 1000, batch) == bytes);
      // Half of the text is masked by spans.
      const auto hidden = bytes_of_labels(Collator(store, {half}, data, Rng(1), "train", T5Config{}), 1000, batch);
      CHECK(static_cast<double>(*hidden) == Approx(0.5 * static_cast<double>(bytes)).epsilon(0.15));
    }
    GapSentencesConfig gaps;
    gaps.gap_sentences_ratio = 1;  // both sentences of each document
    CHECK(bytes_of_labels(Collator(store, {gaps}, data, Rng(1), "train", PegasusConfig{}), 1000, 8) == bytes);
    options.out = dir / (kind + "-split");
    options.held_out = 0.3;
    options.for_scoring = false;
    prepare(options);
    CHECK(TokenStore(options.out, "valid").source_bytes(0).has_value());
    CHECK_FALSE(TokenStore(options.out, "train").source_bytes(0).has_value());
    CHECK_FALSE(
        bytes_of_labels(Collator(TokenStore(options.out, "train"), {ClmConfig{}}, data, Rng(1), "train", gpt), 10, 4)
            .has_value());
  }
}

TEST_CASE("checkpoints that a run will not write need no room on the disk", "[train][checkpoint]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  config.checkpoint.every = GENERATE(0, 1);
  config.checkpoint.keep = std::numeric_limits<int64_t>::max();
  CHECK(pretrain(config, {.run = dir / "run"}).steps == 2);
}

TEST_CASE("the log says how many rows of a vocabulary the tokenizer uses, where it has fewer", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  auto& model = *as<BertConfig>(config.model);
  pretrain(config, {.run = dir / "fitting"});
  CHECK_THAT(read_file(dir / "fitting/log.txt"), Catch::Contains("vocabulary 21\n"));
  model.vocab_size = 64;
  pretrain(config, {.run = dir / "wide"});
  CHECK_THAT(read_file(dir / "wide/log.txt"), Catch::Contains("vocabulary 64, of which the tokenizer uses 21\n"));
}

TEST_CASE("a step without predictions is warned of, and its losses are null", "[train]") {
  TempDir dir;
  auto config = tiny_run(dir, 3);
  MlmConfig mlm;
  mlm.count = CountRule::bernoulli;
  mlm.mlm_probability = 1e-12;
  config.objectives = {mlm};
  pretrain(config, {.run = dir / "run"});
  const auto log = read_file(dir / "run/log.txt");
  CHECK_THAT(log, Catch::Contains("step 1 has no predictions") && Catch::Contains("cloze inspect objective"));
  CHECK_THAT(log, !Catch::Contains("step 2 has no predictions"));
  const auto rows = metrics(dir / "run");
  REQUIRE(rows.size() >= 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(rows[i]["loss"].is_null());
    CHECK(rows[i]["mlm"]["loss"].is_null());
    CHECK(rows[i]["mlm"]["count"] == 0);
  }
}
