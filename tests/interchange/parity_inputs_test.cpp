#include "core/error.h"
#include "tests/interchange/cases.h"

using namespace cloze;

namespace {

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor integers(const std::vector<int64_t>& list) { return at::tensor(list, at::kLong); }

/// Inputs of a case that are refused with this sentence about inputs.safetensors.
void refused(const TempDir& dir, const std::string& name, const Tensors& inputs, const std::string& sentence) {
  const auto folder = with_inputs(dir, name, inputs);
  INFO(name << ": " << sentence);
  CHECK_THROWS_AS(verify_parity(folder), CheckpointError);
  CHECK_THROWS_WITH(verify_parity(folder), Catch::StartsWith(folder + "/inputs.safetensors: " + sentence));
}

/// The rows that fail, with their notes: `name (note), `.
std::string failures(const std::string& folder) {
  std::string failed;
  for (const auto& row : verify_parity(folder))
    if (!row.passed) failed += row.name + " (" + row.note + "), ";
  return failed;
}

/// A copy of a case that expects these tensors alone of these inputs.
std::string expecting(const TempDir& dir, const std::string& name, const std::vector<NamedTensor>& inputs,
                      const std::vector<NamedTensor>& expected) {
  const auto folder = with_inputs(dir, name, {});
  save_safetensors(folder + "/inputs.safetensors", inputs);
  save_safetensors(folder + "/expected.safetensors", expected);
  return folder;
}

}  // namespace

TEST_CASE("a case with a loss needs the labels that it is computed from", "[interchange][parity]") {
  TempDir dir;
  const std::string why =
      "; the loss in expected.safetensors is computed from that tensor, so add it, or leave the loss out";
  for (const char* name : {"bert", "gpt2", "electra-discriminator", "xlnet-memory", "bart-masked"})
    refused(dir, name, {{"labels", {}}}, "has no labels" + why);
  refused(dir, "bert", {{"next_sentence_label", {}}}, "has no next_sentence_label" + why);
  refused(dir, "albert", {{"sentence_order_label", {}}}, "has no sentence_order_label" + why);
  refused(dir, "bert", {{"next_sentence_label", {}}, {"sentence_order_label", integers({0, 1, 0})}},
          "has no next_sentence_label" + why);
  const auto folder = with_inputs(dir, "bert", {{"labels", {}}, {"next_sentence_label", {}}});
  set_tensors(folder + "/expected.safetensors", {{"loss", {}}});
  CHECK(failures(folder) == "");
}

TEST_CASE("labels without a target are refused, since their loss is no number", "[interchange][parity]") {
  TempDir dir;
  const auto none = [](const std::string& name) { return at::full_like(input_of(name, "labels"), -100); };
  const std::string no_target = "labels has only -100 where the model predicts, so that the loss is no number";
  refused(dir, "bert", {{"labels", none("bert")}}, no_target);
  auto first = none("gpt2");
  first.select(1, 0).fill_(3);  // no position predicts the first token
  refused(dir, "gpt2", {{"labels", first}}, no_target);
  refused(dir, "bert", {{"next_sentence_label", at::full({3}, -100, at::kLong)}},
          "next_sentence_label has only -100, so that its loss is no number; give a row a class");
}

TEST_CASE("a case expects no loss of a model without a head", "[interchange][parity]") {
  TempDir dir;
  const auto folder = with_inputs(dir, "t5-encoder", {});
  set_tensors(folder + "/expected.safetensors", {{"loss", at::ones({})}});
  CHECK_THROWS_AS(verify_parity(folder), CheckpointError);
  CHECK_THROWS_WITH(verify_parity(folder), Catch::StartsWith(folder + "/expected.safetensors: has loss, but the model "
                                                                      "has no head to compute it"));
}

TEST_CASE("BigBird has its first loss without the labels of pairs", "[interchange][parity]") {
  TempDir dir;
  const auto folder = edited(dir, "bigbird", "config.json", "BigBirdForMaskedLM", "BigBirdForPreTraining");
  set_tensors(folder + "/model.safetensors",
              {{"cls.seq_relationship.weight", at::ones({2, 24})}, {"cls.seq_relationship.bias", at::ones({2})}});
  set_tensors(folder + "/expected.safetensors",
              {{"logits", {}}, {"prediction_logits", expected_of("bigbird", "logits")}});
  CHECK(failures(folder) == "");
}

TEST_CASE("labels have one entry for each prediction of a model's class", "[interchange][parity]") {
  TempDir dir;
  const auto zeros = [](at::IntArrayRef sizes) { return at::zeros(sizes, at::kLong); };
  const std::string of_tokens = ", one entry for each token of input_ids";
  refused(dir, "bert", {{"labels", zeros({3, 20})}}, "labels has shape [3, 20] instead of [3, 14]" + of_tokens);
  refused(dir, "bert", {{"labels", zeros({3, 13})}}, "labels has shape [3, 13] instead of [3, 14]" + of_tokens);
  refused(dir, "bert", {{"labels", zeros({2, 14})}}, "labels has shape [2, 14] instead of [3, 14]" + of_tokens);
  refused(dir, "gpt2", {{"labels", zeros({2, 11})}}, "labels has shape [2, 11] instead of [2, 12]" + of_tokens);
  refused(dir, "bart-causal", {{"labels", zeros({3, 9})}}, "labels has shape [3, 9] instead of [3, 15]" + of_tokens);
  refused(dir, "xlnet-plain", {{"labels", zeros({2, 4})}}, "labels has shape [2, 4] instead of [2, 12]" + of_tokens);
  refused(dir, "xlnet-memory", {{"labels", zeros({2, 12})}},
          "labels has shape [2, 12] instead of [2, 4], one entry for each target of target_mapping");
  refused(dir, "electra-discriminator", {{"labels", zeros({3, 3})}},
          "labels has shape [3, 3] instead of [3, 12]" + of_tokens);
  for (const int64_t length : {5, 16})
    refused(dir, "bart-masked", {{"labels", zeros({3, length})}},
            concat("labels has shape [3, ", length, "] instead of [3, 8], one entry for each of decoder_input_ids"));
  refused(dir, "bart", {{"labels", zeros({9})}}, "labels has shape [9] instead of [2, any], one row for each of");
  refused(dir, "bart-masked", {{"decoder_input_ids", zeros({2, 8})}},
          "decoder_input_ids has shape [2, 8] instead of [3, any], one row for each of input_ids");
  const std::string of_rows = ", one class for each row of input_ids";
  refused(dir, "bert", {{"next_sentence_label", zeros({1})}},
          "next_sentence_label has shape [1] instead of [3]" + of_rows);
  refused(dir, "albert", {{"sentence_order_label", zeros({2, 2})}},
          "sentence_order_label has shape [2, 2] instead of [2]" + of_rows);

  CHECK(failures(with_inputs(dir, "bert",
                             {{"next_sentence_label", input_of("bert", "next_sentence_label").unsqueeze(1)}})) == "");
  CHECK_THAT(failures(with_inputs(dir, "bart", {{"labels", at::full({2, 3}, 7, at::kLong)}})),
             Catch::Contains("logits (shape [2, 3, 96] instead of [2, 9, 96])"));
}

TEST_CASE("labels are ids of the vocabulary, or classes", "[interchange][parity]") {
  TempDir dir;
  const auto filled = [](const std::string& name, const std::string& input, int64_t value) {
    return at::full_like(input_of(name, input), value);
  };
  refused(dir, "bert", {{"next_sentence_label", integers({5, 0, 1})}},
          "next_sentence_label contains 5, but the model has classes from 0 to 1");
  refused(dir, "albert", {{"sentence_order_label", integers({0, -1})}},
          "sentence_order_label contains -1, but the model has classes from 0 to 1");
  for (const char* name : {"bert", "gpt2", "bart", "xlnet-memory"})
    refused(dir, name, {{"labels", filled(name, "labels", 96)}},
            "labels contains 96, but the model has ids from 0 to 95");
  refused(dir, "electra-discriminator", {{"labels", filled("electra-discriminator", "labels", 7)}},
          "labels contains 7, but the model has classes from 0 to 1");

  // Padding has no class.
  const auto hidden = input_of("electra-discriminator", "attention_mask").eq(0);
  REQUIRE(hidden.any().item<bool>());
  const auto labels = input_of("electra-discriminator", "labels").masked_fill(hidden, -100);
  CHECK(failures(with_inputs(dir, "electra-discriminator", {{"labels", labels}})) == "");
}

TEST_CASE("the loss of pairs leaves out rows whose class is -100", "[interchange][parity]") {
  TempDir dir;
  const auto pairs = integers({0, -100, 0});
  const auto folder = with_inputs(dir, "bert", {{"next_sentence_label", pairs}});
  const auto of_tokens = at::cross_entropy_loss(expected_of("bert", "prediction_logits").flatten(0, 1),
                                                input_of("bert", "labels").flatten());
  const auto of_pairs = at::cross_entropy_loss(expected_of("bert", "seq_relationship_logits"), pairs);
  set_tensors(folder + "/expected.safetensors", {{"loss", of_tokens + of_pairs}});
  bool compared = false;
  for (const auto& row : verify_parity(folder)) {
    if (row.name != "loss") continue;
    compared = true;
    INFO("error " << row.error);
    CHECK(row.passed);
  }
  CHECK(compared);
}

TEST_CASE("labels of mBART without a token are refused, since their last one starts the decoder",
          "[interchange][parity]") {
  TempDir dir;
  const std::string why =
      "has no token, only -100 and padding; its last token starts the decoder's input, so give it one, or add "
      "decoder_input_ids";
  auto labels = input_of("mbart", "labels");
  labels.select(0, 0).fill_(-100);
  refused(dir, "mbart", {{"labels", labels}}, "labels[0] " + why);
  labels = input_of("mbart", "labels");
  labels.select(0, 2).fill_(1);  // the padding id
  refused(dir, "mbart", {{"labels", labels}}, "labels[2] " + why);
  labels.select(0, 2).fill_(-100);
  CHECK_NOTHROW(
      verify_parity(with_inputs(dir, "mbart", {{"labels", labels}, {"decoder_input_ids", at::full_like(labels, 5)}})));
}

TEST_CASE("inputs of two streams have the shapes of their rows, layers and targets", "[interchange][parity]") {
  TempDir dir;
  const auto refuse = [&](const std::string& name, const at::Tensor& tensor, const std::string& sentence) {
    refused(dir, "xlnet-memory", {{name, tensor}}, sentence);
  };
  const std::string states = ", the states of earlier tokens in each row";
  refuse("mems.0", at::ones({8, 2, 3}), "mems.0 has shape [8, 2, 3] instead of [any, 2, 32]" + states);
  refuse("mems.0", at::ones({2, 32}), "mems.0 has shape [2, 32] instead of [any, 2, 32]" + states);
  refuse("mems.0", at::ones({8, 1, 32}), "mems.0 has shape [8, 1, 32] instead of [any, 2, 32]" + states);
  refuse("mems.1", at::ones({7, 2, 32}), "mems.1 has shape [7, 2, 32] instead of [8, 2, 32]" + states);
  refuse("mems.0", {}, "has no mems.0, but others; the model has 2 layers, and each of them needs its own");
  refuse("mems.1", {}, "has no mems.1, but others");
  refuse("mems.2", at::ones({8, 2, 32}), "has 3 tensors of mems, but the model has 2 layers; give one for each");

  const std::string of_pairs = ", one entry for each query and key of a row";
  refuse("perm_mask", at::ones({2, 3, 3}), "perm_mask has shape [2, 3, 3] instead of [2, 12, 12]" + of_pairs);
  refuse("perm_mask", at::ones({12, 12}), "perm_mask has shape [12, 12] instead of [2, 12, 12]" + of_pairs);
  refuse("perm_mask", at::ones({1, 12, 12}), "perm_mask has shape [1, 12, 12] instead of [2, 12, 12]" + of_pairs);
  const std::string of_targets = ", one entry for each target and token of a row";
  refuse("target_mapping", at::ones({2, 4, 9}),
         "target_mapping has shape [2, 4, 9] instead of [2, any, 12]" + of_targets);
  refuse("target_mapping", at::ones({4, 12}), "target_mapping has shape [4, 12] instead of [2, any, 12]" + of_targets);
  refuse("target_mapping", at::ones({2, 4, 12}), "target_mapping has a target of several tokens; each has a 1 at one");
}

TEST_CASE("expected tensors of another shape are differences", "[interchange][parity]") {
  TempDir dir;
  const auto differences = [&](const std::string& name, const std::string& tensor, const at::Tensor& expected) {
    const auto folder = with_inputs(dir, name, {});
    set_tensors(folder + "/expected.safetensors", {{tensor, expected}});
    return failures(folder);
  };
  const std::string bias = "grad.cls.predictions.bias";
  CHECK(differences("bert", bias, at::ones({3})) == bias + " (shape [96] instead of [3]), ");
  CHECK(differences("bert", bias, at::ones({0})) == bias + " (shape [96] instead of [0]), ");
  CHECK(differences("bert", bias, at::ones({1})) == bias + " (shape [96] instead of [1]), ");
  const std::string attention = "attentions.0.1";
  for (const int64_t queries : {2, 4})  // 4: the targets
    CHECK(differences("xlnet-memory", attention, at::ones({2, 4, queries, 20})) ==
          concat(attention, " (shape [2, 4, 12, 20] instead of [2, 4, ", queries, ", 20]), "));
  CHECK(differences("xlnet-memory", attention, at::ones({2, 4, 12})) ==
        attention + " (shape [2, 4, 12, 20] instead of [2, 4, 12]), ");
}

TEST_CASE("pooled rows whose first position is masked are not compared", "[interchange][parity]") {
  TempDir dir;
  auto mask = input_of("bert", "attention_mask");
  mask[1][0] = 0;  // changes the states of that row, which transformers has not computed
  std::vector<NamedTensor> inputs{{"attention_mask", mask}};
  for (const char* name : {"input_ids", "token_type_ids"}) inputs.push_back({name, input_of("bert", name)});
  const std::string name = "seq_relationship_logits";
  const auto logits = expected_of("bert", name);
  CHECK(failures(expecting(dir, "bert", inputs, {{name, logits}})) == "");
  for (const int64_t row : {0, 2}) {
    auto other = logits.clone();
    other[row] += 1;
    CHECK(failures(expecting(dir, "bert", inputs, {{name, other}})) == name + " (), ");
  }
}

// The ids are those of transformers 5.24, `generate` of the models in tests/parity.
TEST_CASE("text is generated after a prompt with padding on its left as transformers does", "[interchange][parity]") {
  TempDir dir;
  const auto row = [](const std::vector<int64_t>& ids) { return integers(ids).unsqueeze(0); };
  const auto generated = [&](const std::string& name, const std::vector<NamedTensor>& inputs,
                             const std::string& settings, const at::Tensor& ids) {
    const auto folder = expecting(dir, name, inputs, {{"generated.greedy", ids}});
    std::ofstream(folder + "/generation.json") << settings;
    return failures(folder);
  };
  // The padding is a repeated token for the rules of the search: without it, 2 would follow 2 again.
  CHECK(generated("gpt2",
                  {{"input_ids", row({2, 2, 2, 41, 49, 23, 33, 68, 83})},
                   {"attention_mask", row({0, 0, 0, 1, 1, 1, 1, 1, 1})}},
                  R"({"max_new_tokens": 6, "pad_token_id": 0, "no_repeat_ngram_size": 2})",
                  row({2, 2, 2, 41, 49, 23, 33, 68, 83, 2, 64, 64, 71, 71, 64})) == "");
  // The source keeps its positions: at the first ones, the text would be 47 47 4 4 4 4.
  const NamedTensor source{"input_ids", row({1, 1, 1, 1, 1, 62, 18, 59, 53, 70})};
  const NamedTensor start{"decoder_input_ids", row({2})};
  CHECK(generated("bart", {source, start, {"attention_mask", row({0, 0, 0, 0, 0, 1, 1, 1, 1, 1})}},
                  R"({"max_new_tokens": 6})", row({2, 94, 94, 94, 94, 94, 94})) == "");
  const std::string nothing =
      "inputs.safetensors: attention_mask hides the whole first row of input_ids, which is the prompt of "
      "generation.json; give it a token";
  const NamedTensor hides_all{"attention_mask", at::zeros({1, 10}, at::kLong)};
  CHECK_THROWS_WITH(generated("bart", {source, start, hides_all}, R"({"max_new_tokens": 6})", row({2})),
                    Catch::EndsWith(nothing));
  CHECK_THROWS_WITH(generated("gpt2", {source, hides_all}, R"({"max_new_tokens": 6})", row({2})),
                    Catch::EndsWith(nothing));
  CHECK_THROWS_WITH(generated("bart-causal", {source, {"attention_mask", row({0, 0, 0, 0, 0, 1, 1, 1, 1, 1})}},
                              R"({"max_new_tokens": 6})", row({2})),
                    Catch::Contains("the first row of input_ids has padding before tokens, which moves their positions "
                                    "in transformers' decoder of bart"));
}
