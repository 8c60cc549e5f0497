#include "interchange/huggingface_config.h"

#include <set>

#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "models/attention/kinds.h"
#include "models/encoder_decoder_config.h"
#include "tests/support/catch.h"

using namespace cloze;
using nlohmann::json;

namespace {

json huggingface_defaults() { return read_json(SOURCE_DIR "/tests/interchange/huggingface_defaults.json"); }

}  // namespace

TEST_CASE("an empty config.json is read with the defaults of the class in transformers", "[interchange][config]") {
  // Keys for fine-tuning, generation, or with a single supported value.
  const auto ignored = separated(
      "use_cache bos_token_id eos_token_id sep_token_id add_cross_attention is_decoder is_encoder_decoder "
      "summary_activation summary_type summary_use_proj summary_last_dropout summary_first_dropout "
      "summary_proj_to_labels start_n_top end_n_top use_mems_eval use_mems_train encoder_layerdrop "
      "decoder_layerdrop initializer_factor is_gated_act dense_act_fn onnx_export reorder_and_upcast_attn "
      "qa_dropout seq_classif_dropout use_bias rescale_embeddings scale_attn_weights "
      "scale_attn_by_inverse_layer_idx pad_token_id cls_token_id classifier_activation classifier_pooling "
      "deterministic_flash_attn sparse_prediction sparse_pred_ignore_index",
      " ");
  // Other values with the same meaning.
  const json same{{"gpt2", {{"n_inner", 4 * 768}}},
                  {"longformer", {{"attention_window", std::vector<int>(12, 512)}}},
                  {"mbart", {{"decoder_start_token_id", 0}}}};  // without a start token: bos_token_id
  int compared = 0;
  const auto all = huggingface_defaults();
  for (const auto& [type, fields] : all.items()) {
    const auto model = read_model({{"model_type", type}}, "config.json");
    const auto exported = model_json(model);
    for (const auto& [key, value] : fields.items()) {
      INFO(type << " " << key);
      if (!exported.contains(key)) {
        CHECK(contains(ignored, key));
        continue;
      }
      CHECK(exported[key] == (same.contains(type) ? same[type].value(key, value) : value));
      ++compared;
    }
  }
  CHECK(compared > 220);
}

TEST_CASE("every key of config.json is exported as it was imported", "[interchange][config]") {
  const auto all = huggingface_defaults();
  for (const auto& [type, fields] : all.items()) {
    json other{{"model_type", type}};
    const auto before = model_json(read_model(other, "config.json"));
    // Values other than the defaults, so that an ignored key is noticed.
    for (const auto& [key, value] : before.items()) {
      if (key == "model_type" || key == "d_head" || key == "untie_r" || key == "is_encoder_decoder" ||
          key.starts_with("bos_"))
        continue;
      if (key == "layer_types" || key == "rope_parameters" || key == "initializer_cutoff_factor") continue;
      if (key == "is_decoder" && before.contains("decoder_layers")) continue;  // derived from the class
      if (key.ends_with("_id") && value.is_number()) {
        other[key] = (value.get<int64_t>() + 3) % 50;
        continue;
      }
      if (value.is_boolean())
        other[key] = !value.get<bool>();
      else if (value.is_number_integer())
        other[key] =
            value.get<int64_t>() < 0 ? 7 : value.get<int64_t>() + (key == "d_model" || key == "n_head" ? 16 : 1);
      else if (value.is_number_float())
        other[key] = value.get<double>() / 4 + 0.25;
      else if (value.is_null())
        other[key] = 11;
      else if (value.is_array())
        other[key] = std::vector<int>(13, 64);
    }
    if (other.contains("scale_decoder_outputs")) other["scale_decoder_outputs"] = true;
    const json words{{"hidden_act", "relu"},
                     {"hidden_activation", "relu"},
                     {"activation", "relu"},
                     {"activation_function", "silu"},
                     {"ff_activation", "relu"},
                     {"attn_type", "uni"},
                     {"attention_type", "original_full"},
                     {"feed_forward_proj", "gated-silu"}};
    for (const auto& [key, value] : words.items())
      if (before.contains(key)) other[key] = value;
    if (other.value("attention_type", "") == "original_full") {
      other.erase("block_size");
      other.erase("num_random_blocks");
    }
    if (other.contains("embd_pdrop")) other["embd_pdrop"] = other["resid_pdrop"];
    const auto after = model_json(read_model(other, "config.json"));
    for (const auto& [key, value] : other.items()) {
      INFO(type << " " << key);
      const bool one_name = key == "model_type";  // XLM-RoBERTa and CamemBERT are RoBERTa
      const bool decides =
          key == "tie_word_embeddings" && (type == "t5" || type == "mt5");  // together with scale_decoder_outputs
      const bool is_fixed = key == "scale_decoder_outputs" && type == "mt5";
      if (!one_name && !decides && !is_fixed) CHECK(after[key] == value);
    }
  }
}

TEST_CASE(
    "layers and rotary bases of ModernBERT are read from configs of transformers 4 and 5, whose keys take precedence",
    "[interchange][config]") {
  const auto model_of = [](json j) {
    j.update({{"model_type", "modernbert"}, {"num_hidden_layers", 7}});
    return read_model(j, "config.json");
  };
  const auto attention_of = [](const ModelConfig& model) {
    return std::get<AlternatingAttention>(*transformer_of(model).attention);
  };
  const auto read = [&](const json& j) { return attention_of(model_of(j)); };
  const auto older = read({{"global_attn_every_n_layers", 2},
                           {"local_attention", 10},
                           {"global_rope_theta", 500.0},
                           {"local_rope_theta", 40},
                           {"position_embedding_type", "absolute"}});
  CHECK(older.global_attn_every_n_layers == 2);
  CHECK(older.window() == 5);
  CHECK(older.global_rope_theta == 500);
  CHECK(older.local_rope_theta == 40);
  const std::string full = "full_attention", near = "sliding_attention";
  const json newer{{"global_attn_every_n_layers", 2},
                   {"global_rope_theta", 500.0},
                   {"layer_types", {full, near, near, near, full, near, near}},
                   {"rope_parameters", {{full, {{"rope_theta", 900.0}, {"rope_type", "default"}}}}}};
  CHECK(read(newer).global_attn_every_n_layers == 4);
  CHECK(read(newer).global_layers.empty());
  CHECK(read(newer).global_rope_theta == 900);
  CHECK(read(newer).local_rope_theta == 10000);
  // Layers without a rule are named.
  const auto uneven = model_of({{"layer_types", {near, full, full, near, near, near, full}}});
  CHECK(attention_of(uneven).global_layers == std::vector<int64_t>{1, 2, 6});
  CHECK(model_json(uneven)["layer_types"] == json({near, full, full, near, near, near, full}));
  CHECK_FALSE(model_json(uneven).contains("global_attn_every_n_layers"));
  const auto first = read({{"layer_types", {full, near, near, near, near, near, near}}});
  CHECK(first.global_layers.empty());
  CHECK(first.global_attn_every_n_layers == 7);
  // norm_eps is what the class reads, whatever stands next to it.
  CHECK(backbone_of(model_of({{"norm_eps", 1e-3}, {"layer_norm_eps", 1e-7}})).layer_norm_eps == 1e-3);
  CHECK(backbone_of(model_of({{"layer_norm_eps", 1e-7}})).layer_norm_eps == 1e-5);
  const auto refused = [&](const json& j, const std::string& sentence) {
    CHECK_THROWS_WITH(model_of(j), "config.json: " + sentence);
  };
  refused({{"layer_types", {full}}}, "layer_types names 1 layers, num_hidden_layers is 7; the file is damaged");
  refused({{"layer_types", {full, near, near, near, near, near, "chunked_attention"}}},
          "layer_types names 'chunked_attention'; 'full_attention' and 'sliding_attention' can be imported");
  refused({{"layer_types", std::vector<std::string>(7, near)}},
          "layer_types has no 'full_attention'; a stack of windows alone cannot be imported");
  refused({{"global_attn_every_n_layers", 0}}, "global_attn_every_n_layers is 0; write a number above 0");
  refused(
      {{"rope_parameters", {{full, {{"rope_type", "yarn"}}}}}},
      "rope_parameters of full_attention is {\"rope_type\":\"yarn\"}; only rope_type 'default' of whole heads can be "
      "imported");
  refused({{"classifier_activation", "relu"}}, "classifier_activation is \"relu\"; only \"gelu\" can be imported");
}

TEST_CASE("a null local_rope_theta of ModernBERT is the base of the full layers, as in transformers 4",
          "[interchange][config]") {
  const auto local = [](json j) {
    j["model_type"] = "modernbert";
    const auto model = read_model(j, "config.json");
    return std::get<AlternatingAttention>(*transformer_of(model).attention).local_rope_theta;
  };
  CHECK(local({{"global_rope_theta", 500.0}, {"local_rope_theta", nullptr}}) == 500);
  CHECK(local({{"local_rope_theta", nullptr}}) == 160000);
  CHECK(local({{"global_rope_theta", 500.0}}) == 10000);
  CHECK(local({{"local_rope_theta", nullptr}, {"rope_parameters", {{"sliding_attention", {{"rope_theta", 70}}}}}}) ==
        70);
}

TEST_CASE("rotary parameters of ModernBERT that are no objects of the two types of layers are refused",
          "[interchange][config]") {
  const auto refused = [](const json& value, const std::string& sentence) {
    CHECK_THROWS_WITH(read_model({{"model_type", "modernbert"}, {"rope_parameters", value}}, "config.json"),
                      "config.json: rope_parameters " + sentence);
  };
  const std::string wanted = ", must be an object with 'full_attention' and 'sliding_attention', or null";
  refused("x", "is \"x\"" + wanted);
  refused(json::array({1}), "is [1]" + wanted);
  refused(4, "is 4" + wanted);
  refused({{"full_attention", 3}}, "of full_attention is 3, must be an object with 'rope_theta', or null");
  refused({{"rope_theta", 3.0}, {"rope_type", "default"}},
          "names 'rope_theta'; 'full_attention' and 'sliding_attention' can be imported");
  CHECK_THROWS_WITH(
      read_model({{"model_type", "modernbert"}, {"rope_scaling", {{"rope_type", "linear"}}}}, "config.json"),
      "config.json: rope_scaling is {\"rope_type\":\"linear\"}; only null can be imported");
}

TEST_CASE("a size below its least value is refused with its key in every family", "[interchange][config]") {
  int sizes = 0;
  const auto all = huggingface_defaults();
  for (const auto& [type, fields] : all.items()) {
    for (const auto& key : separated(
             "vocab_size hidden_size num_attention_heads intermediate_size type_vocab_size embedding_size "
             "num_hidden_groups inner_group_num d_model d_ff d_kv num_heads num_decoder_layers dim n_heads hidden_dim "
             "n_embd n_head n_inner n_positions d_inner max_position_embeddings encoder_attention_heads "
             "encoder_ffn_dim decoder_layers decoder_attention_heads decoder_ffn_dim",
             " "))
      for (const int64_t size : {0, -3}) {
        if (!fields.contains(key)) continue;
        INFO(type << " " << key);
        CHECK_THROWS_WITH(read_model({{"model_type", type}, {key, size}}, "config.json"),
                          "config.json: " + key + " is " + std::to_string(size) + ", must be at least 1");
        ++sizes;
      }
    for (const std::string key :
         {"num_hidden_layers", "n_layers", "n_layer", "num_layers", "encoder_layers", "pad_token_id"}) {
      if (!fields.contains(key)) continue;
      INFO(type << " " << key);
      CHECK_THROWS_WITH(read_model({{"model_type", type}, {key, -1}}, "config.json"),
                        "config.json: " + key + " is -1, must be at least 0");
      ++sizes;
    }
  }
  CHECK(sizes > 220);
}

TEST_CASE(
    "a decoder has as many blocks as the encoder where config.json says null, and is not read for an encoder alone",
    "[interchange][config]") {
  const auto layers = [](const json& j) {
    const auto model = read_model(j, "config.json");
    return as<EncoderDecoderConfig>(model)->decoder_layers();
  };
  CHECK(layers({{"model_type", "t5"}, {"num_layers", 3}, {"num_decoder_layers", nullptr}}) == 3);
  CHECK(layers({{"model_type", "t5"}, {"num_layers", 3}, {"num_decoder_layers", 2}}) == 2);
  CHECK(layers({{"model_type", "t5"}, {"num_decoder_layers", 0}, {"architectures", {"T5EncoderModel"}}}) == 6);
}

TEST_CASE("tie_word_embeddings in the config of a T5 decides whether its states are scaled", "[interchange][config]") {
  const auto scales = [](const json& j) { return backbone_of(read_model(j, "config.json")).scale_decoder_outputs; };
  CHECK(scales({{"model_type", "t5"}}));
  CHECK_FALSE(scales({{"model_type", "t5"}, {"tie_word_embeddings", false}}));
  CHECK_FALSE(scales({{"model_type", "t5"}, {"tie_word_embeddings", true}, {"scale_decoder_outputs", false}}));
  CHECK_FALSE(scales({{"model_type", "mt5"}}));
}

TEST_CASE("values of config.json that cannot be imported are refused with key and value", "[interchange][config]") {
  const auto refused = [](const json& j, const std::string& sentence) {
    CHECK_THROWS_WITH(read_model(j, "hf/config.json"), "hf/config.json: " + sentence);
  };
  refused({{"use_bias", false}, {"model_type", "big_bird"}}, "use_bias is false; only true can be imported");
  refused({{"add_cross_attention", true}, {"is_decoder", true}},
          "add_cross_attention is true; only false can be imported");
  refused({{"model_type", "longformer"}, {"num_hidden_layers", 1}, {"attention_window", {512.5}}},
          "'attention_window' is 512.5, which is not an integer");
  refused({{"model_type", "longformer"}, {"attention_window", 7}},
          "attention_window is 7; windows must be even numbers of at least 2");
  refused({{"position_embedding_type", "rotary"}},
          "position_embedding_type is 'rotary'; 'absolute', 'relative_key' and 'relative_key_query' can be imported");
  refused({{"model_type", "longformer"}, {"position_embedding_type", "relative_key"}},
          "position_embedding_type is \"relative_key\"; only \"absolute\" can be imported");
  refused({{"bos_token_id", -5}}, "bos_token_id is -5, must be an id, or null for none");
  refused({{"hidden_size", 12.5}}, "'hidden_size' is 12.5, which is not an integer");
  refused({{"model_type", "gpt2"}, {"scale_attn_by_inverse_layer_idx", true}},
          "scale_attn_by_inverse_layer_idx is true; only false can be imported");
}
