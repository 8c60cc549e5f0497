#include <set>

#include "core/log.h"
#include "core/text.h"
#include "tests/interchange/cases.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("hidden states, logits, loss and every gradient equal those of transformers", "[interchange][parity]") {
  // All names are listed, so that a missing case is noticed.
  const auto listed = separated(
      "albert bart bart-causal bart-masked bart-tables bert bert-causal bigbird distilbert electra-discriminator "
      "electra-generator gpt2 longformer mbart mbart-forced mish-one-segment modernbert modernbert-biases "
      "modernbert-far modernbert-layers mt5 pegasus pegasus-causal relative-key relative-key-query roberta "
      "roberta-causal silu-untied t5 t5-encoder xlnet-backward xlnet-clamp-untied xlnet-memory xlnet-plain xlnet-uni",
      " ");
  const std::set<std::string> cases(listed.begin(), listed.end());
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(SOURCE_DIR "/tests/parity"))
    if (entry.is_directory()) there.insert(entry.path().filename().string());
  CHECK(there == cases);
  for (const auto& name : there) check_case(SOURCE_DIR "/tests/parity/" + name);
}

TEST_CASE("the tolerance of outputs is relative to their largest entry", "[interchange][parity]") {
  TempDir dir;
  fs::copy(SOURCE_DIR "/tests/parity/bert", dir / "bert");
  const auto stored = SafeTensors::open(dir / "bert/expected.safetensors");
  const auto verdict = [&](const char* name, double shift) {
    std::vector<NamedTensor> changed;
    for (const auto& key : stored.names())
      changed.push_back({key, key == name ? stored.get(key) + shift : stored.get(key).clone()});
    save_safetensors(dir / "bert/expected.safetensors", changed);
    for (const auto& row : verify_parity(dir / "bert"))
      if (row.name == name) return row.passed;
    return false;
  };
  const auto largest = [&](const char* name) { return stored.get(name).abs().max().item<double>(); };
  REQUIRE(largest("prediction_logits") > 2);
  REQUIRE(largest("attentions.0") < 1);
  CHECK(verdict("prediction_logits", 0.7e-5 * largest("prediction_logits")));
  CHECK_FALSE(verdict("prediction_logits", 1.3e-5 * largest("prediction_logits")));
  CHECK(verdict("attentions.0", 0.7e-5));
  CHECK_FALSE(verdict("attentions.0", 1.3e-5));
}

TEST_CASE("a damaged case fails, and the tensor is named", "[interchange][parity]") {
  TempDir dir;
  fs::copy(SOURCE_DIR "/tests/parity/bert", dir / "bert");
  const auto weights = SafeTensors::open(dir / "bert/model.safetensors");
  std::vector<NamedTensor> changed;
  for (const auto& name : weights.names())
    changed.push_back(
        {name, name == "bert.encoder.layer.1.output.dense.bias" ? weights.get(name) * 2 : weights.get(name).clone()});
  save_safetensors(dir / "bert/model.safetensors", changed);
  std::string failed;
  for (const auto& row : verify_parity(dir / "bert"))
    if (!row.passed) failed += row.name + " ";
  CHECK_THAT(failed, Catch::Contains("hidden_states.2") && Catch::Contains("loss"));
  CHECK_THAT(failed, !Catch::Contains("hidden_states.1 "));
}

TEST_CASE("inputs of a case that the model cannot take are refused with a clear message", "[interchange][parity]") {
  TempDir dir;
  const auto ids = input_of("bart", "input_ids");
  const auto refused = [&](const std::string& name, const Tensor& tensor, const std::string& sentence) {
    CHECK_THROWS_WITH(verify_parity(with_inputs(dir, "bart", {{name, tensor}})),
                      Catch::Contains("inputs.safetensors: ") && Catch::Contains(sentence));
  };
  refused("input_ids", ids + 5000, "input_ids contains 50");
  refused("input_ids", ids - 5000, "but the model has ids from 0 to ");
  refused("input_ids", ids[0], "; ids are [batch, length]");
  refused("input_ids", ids.to(at::kFloat) + 0.5, "input_ids contains fractions");
  refused("input_ids", ids.repeat({1, 40}), " tokens long, but the model accepts at most ");
  refused("input_ids", Tensor(), "has no input_ids");
  refused("attention_mask", at::ones({ids.size(0), 2}, at::kLong), "attention_mask has shape [");
  refused("labels", at::full({ids.size(0), 3}, 7000, at::kLong), "labels contains 7000");
  refused("labels", at::full({ids.size(0) + 1, 3}, 7, at::kLong), "labels has ");
  refused("labels", Tensor(), "has neither labels nor decoder_input_ids");
  const auto folder = with_inputs(dir, "bart", {});
  set_tensors(folder + "/expected.safetensors", {{"loss", at::ones({3})}});
  CHECK_THROWS_WITH(verify_parity(folder),
                    Catch::Contains("expected.safetensors: loss has 3 elements; it must be a scalar"));
}

TEST_CASE("a case that describes a far larger model than its weights is refused before memory is taken",
          "[interchange][parity]") {
  TempDir dir;
  const auto folder = edited(dir, "bert", "config.json", "\"intermediate_size\": 48", "\"intermediate_size\": 4194304");
  CHECK_THROWS_AS(verify_parity(folder), ConfigError);
  CHECK_THROWS_WITH(verify_parity(folder), Catch::StartsWith(folder + "/config.json: describes a model of ") &&
                                               Catch::EndsWith("; they do not belong together"));
}

TEST_CASE("wrong settings of the search of a parity case are refused", "[interchange][parity]") {
  TempDir dir;
  CHECK_THROWS_WITH(verify_parity(edited(dir, "mt5", "generation.json", "\"num_beams\": 4", "\"num_beams\": \"x\"")),
                    Catch::Contains("'num_beams' is \"x\", which has the wrong type"));
  CHECK_THROWS_WITH(verify_parity(edited(dir, "mt5", "generation.json", "{", "{\"early_stopping\": \"nevr\",")),
                    Catch::Contains("early_stopping is 'nevr', which is unknown; did you mean 'never'?"));
}

TEST_CASE("ignored settings and inputs of a parity case are reported", "[interchange]") {
  TempDir dir;
  // Ignored settings and inputs are reported; the result depends on the numbers alone.
  const auto log_of = [&](const std::string& folder) {
    set_log_file(dir / "log.txt");
    verify_parity(folder);
    set_log_file("");
    return read_file(dir / "log.txt");
  };
  CHECK_THAT(log_of(edited(dir, "mt5", "generation.json", "\"num_beams\": 4", "\"num_baems\": 4")),
             Catch::Contains("'num_baems' is ignored; did you mean 'num_beams'?"));
  const auto folder = edited(dir, "gpt2", "config.json", "{", "{");
  const auto inputs = SafeTensors::open(folder + "/inputs.safetensors");
  std::vector<NamedTensor> more;
  for (const auto& key : inputs.names()) more.push_back({key, inputs.get(key).clone()});
  more.push_back({"position_ids", inputs.get("input_ids").clone()});
  save_safetensors(folder + "/inputs.safetensors", more);
  CHECK_THAT(log_of(folder), Catch::Contains("'position_ids' is ignored for gpt2"));
}
