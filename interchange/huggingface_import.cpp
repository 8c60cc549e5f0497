// A Hugging Face folder as a run.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "interchange/huggingface.h"
#include "interchange/huggingface/family.h"
#include "interchange/interchange.h"
#include "objectives/network.h"
#include "objectives/rtd/rtd.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Throws ConfigError unless `g` is the generator that `rtd` makes for this discriminator.
void require_generator(const TransformerConfig& g, const TransformerConfig& expected, const std::string& folder) {
  const auto same = [&](const char* key, const auto& value, const auto& wanted) {
    require<ConfigError>(value == wanted, "--generator ", folder, ": its ", key, " is ", value,
                         ", but with this discriminator it must be ", wanted, "; the two cannot be one run");
  };
  same("hidden_size", g.hidden_size, expected.hidden_size);
  same("intermediate_size", g.intermediate_size, expected.intermediate_size);
  same("num_hidden_layers", g.num_hidden_layers, expected.num_hidden_layers);
  same("embedding_size", g.embedding_width(), expected.embedding_width());
  same("vocab_size", g.vocab_size, expected.vocab_size);
  same("max_position_embeddings", g.max_position_embeddings, expected.max_position_embeddings);
  same("type_vocab_size", g.type_vocab_size, expected.type_vocab_size);
  same("hidden_act", g.hidden_act, expected.hidden_act);
  same("layer_norm_eps", g.layer_norm_eps, expected.layer_norm_eps);
}

/// The embeddings that discriminator and generator have in common.
EmbeddingTie tie_of(const HuggingFaceModel& discriminator, const HuggingFaceModel& generator) {
  const auto prefix = huggingface_prefix(discriminator.config.model) + "embeddings.";
  const auto equal = [&](const char* part) {
    const auto a = discriminator.tensors.find(prefix + part), b = generator.tensors.find(prefix + part);
    return a != discriminator.tensors.end() && b != generator.tensors.end() && at::equal(a->second, b->second);
  };
  if (!equal("word_embeddings.weight") || !equal("position_embeddings.weight")) return EmbeddingTie::none;
  const bool all = equal("token_type_embeddings.weight") && equal("LayerNorm.weight") && equal("LayerNorm.bias");
  return all ? EmbeddingTie::all : EmbeddingTie::tables;
}

/// The class of the model has this head, and no other.
bool has_head(const HuggingFaceModel& model, huggingface::Head head) {
  const auto& objectives = model.config.objectives;
  return objectives.size() == 1 && huggingface::heads_of(objectives) == std::set{head};
}

/// Extends the config of a discriminator to both networks: the sizes of the generator as shares of the discriminator's,
/// and which embeddings are tied. Throws ConfigError for a generator that cannot be in one run with this discriminator.
void add_generator(HuggingFaceModel& model, const HuggingFaceModel& generator, const std::string& folder) {
  require<ConfigError>(has_head(model, huggingface::Head::rtd) && has_head(generator, huggingface::Head::mlm),
                       "--generator ", folder,
                       ": needs an ElectraForMaskedLM as generator of an ElectraForPreTraining, these are ",
                       generator.architecture, " and ", model.architecture);
  require<ConfigError>(kind_of(model.config.model) == kind_of(generator.config.model), "--generator ", folder,
                       ": its model is ", kind_of(generator.config.model), ", that of the discriminator is ",
                       kind_of(model.config.model), "; give a generator of the same family");
  auto& d = transformer_of(model.config.model);
  const auto& g = transformer_of(generator.config.model);
  RtdConfig rtd;
  rtd.generator_hidden_size = static_cast<double>(g.num_attention_heads) / static_cast<double>(d.num_attention_heads);
  rtd.generator_layers =
      static_cast<double>(g.num_hidden_layers) / static_cast<double>(std::max<int64_t>(d.num_hidden_layers, 1));
  d.tie_word_embeddings = g.tie_word_embeddings;
  require_generator(g, transformer_of(generator_of(rtd, model.config.model)), folder);
  rtd.tie = tie_of(model, generator);
  model.config.objectives = {rtd};
}

/// Loads the weights of the generator into the network that holds both.
void load_generator(const HuggingFaceModel& generator, Network& network, ImportReport& report) {
  Network own_network(generator.config.model, generator.config.objectives);
  load_huggingface(generator, own_network, report.ignored, report.fresh);
  at::NoGradGuard no_grad;
  for (const auto& [joint, own] : generator_params(network, own_network)) joint.value().copy_(own.value());
  report.tensors += static_cast<int64_t>(generator.tensors.size());
}

/// Saves the tokenizer of a folder, if it has one, for a model of `vocab_size` tokens. Its fingerprint; empty without
/// one. Throws CheckpointError for a larger tokenizer.
std::string copy_tokenizer(const std::string& folder, const std::string& out, int64_t vocab_size) {
  constexpr std::array files{"vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model",
                             "spm.model", "vocab.json",   "tokenizer.json"};
  if (std::none_of(files.begin(), files.end(), [&](const char* file) { return fs::exists(folder + "/" + file); })) {
    log_info(
        "import",
        folder +
            " has no tokenizer (vocab.txt, spiece.model, vocab.json, tokenizer.json), so the run takes ids, not text");
    return "";
  }
  const auto tokenizer = Tokenizer::open(folder);
  require<CheckpointError>(tokenizer.size() <= vocab_size, folder, ": the tokenizer has ", tokenizer.size(),
                           " tokens, the model has ", vocab_size, "; they do not belong together");
  tokenizer.save(out);
  return tokenizer.fingerprint();
}

/// Throws CheckpointError for a folder with the receipt of an export whose files are not those that were exported.
void require_as_exported(const std::string& folder) {
  const auto receipt = folder + "/" + export_receipt;
  if (!fs::exists(receipt)) return;
  const auto fault = checksums_fault(folder, export_receipt);
  require<CheckpointError>(fault.empty(), folder, ": ", fault,
                           ", so that it is not what `cloze export` wrote; export it ",
                           "again, or, if it was changed on purpose, remove ", receipt);
}

/// Warns of what transformers computes with this config, and an imported run does not.
void warn_of_differences(const ModelConfig& model, const std::string& folder) {
  const auto* streams = as<TwoStreamConfig>(model);
  if (streams == nullptr || !streams->bi_data) return;
  log_warning("import", concat(folder,
                               "/config.json: bi_data is true: outputs differ from those of transformers, which "
                               "reads the second half of every batch backwards in evaluation too, not only in "
                               "training"));
}

}  // namespace

ImportReport import_huggingface(const std::string& folder, const std::string& run,
                                const std::string& generator_folder) {
  require<ConfigError>(!fs::exists(run), run, ": exists; name another --out");
  for (const auto& one : {folder, generator_folder})
    if (!one.empty()) require_as_exported(one);
  auto model = read_huggingface(folder);
  warn_of_differences(model.config.model, folder);
  std::optional<HuggingFaceModel> generator;
  if (!generator_folder.empty()) {
    generator = read_huggingface(generator_folder);
    add_generator(model, *generator, generator_folder);
  }
  const auto network = std::make_shared<Network>(model.config.model, model.config.objectives);
  require_size(*network, model, folder + "/config.json", generator ? &*generator : nullptr);
  ImportReport report;
  report.architecture = model.architecture;
  load_huggingface(model, *network, report.ignored, report.fresh);
  report.tensors = static_cast<int64_t>(model.tensors.size());
  if (generator) {
    std::erase_if(report.fresh, [](const auto& name) { return name.starts_with("rtd.generator"); });
    load_generator(*generator, *network, report);
  }
  const auto params = collect_params(*network);
  for (const auto& p : params) report.parameters += p.param.value().numel();
  StagedFolder staged(run);
  const auto tokenizer =
      copy_tokenizer(folder, staged.path() + "/tokenizer", backbone_of(model.config.model).vocab_size);
  write_atomic(staged.path() + "/run.yaml", to_yaml(model.config));
  json origin{{"imported_from", folder}, {"architecture", model.architecture}, {"cloze", CLOZE_VERSION}};
  if (!tokenizer.empty()) origin["tokenizer"] = tokenizer;
  write_atomic(staged.path() + "/provenance.json", json_text(origin, 2) + "\n");
  keep_origin(model, folder, staged.path());
  keep_sentence_modules(folder, staged.path());
  const MadeBy made_by{.config = to_yaml(model.config), .tokenizer = tokenizer};
  record_made_by(staged.path(), made_by);
  save_checkpoint(staged.path(), {}, params, {}, {}, {}, made_by);
  staged.commit();
  return report;
}

}  // namespace cloze
