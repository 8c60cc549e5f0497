#include "run/checkpoints/init.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <nlohmann/json.hpp>

#include "objectives/task_heads/task_heads.h"
#include "run/checkpoints/checksums.h"
#include "run/records/history.h"
#include "run/run_files.h"

namespace cloze {

namespace {

/// The first row of the table of positions that a token uses: the rows before it are offset or padding.
int64_t first_position(const BackboneConfig& config) {
  return config.positions_after_padding ? config.pad_token_id + 1 : config.position_offset;
}

/// Fills the table `target` with the positions of `source`, repeated or truncated.
void tile_positions(const Tensor& target, int64_t target_first, const Tensor& source, int64_t source_first) {
  for (int64_t row = 0; row < target_first; ++row)
    target[row].copy_(source[std::min(row, std::max<int64_t>(source_first - 1, 0))]);
  const int64_t positions = source.size(0) - source_first;
  for (int64_t row = target_first; row < target.size(0); row += positions) {
    const int64_t count = std::min(positions, target.size(0) - row);
    target.narrow(0, row, count).copy_(source.narrow(0, source_first, count));
  }
}

/// The projection of all tokens that a projection of global tokens starts from, and the thirds of it that are used.
struct LocalProjection {
  std::string name;
  int64_t first = 0, parts = 0;  // thirds: query, key, value
};
LocalProjection local_projection_of(const std::string& name) {
  for (const auto& [global, first, parts] :
       {std::tuple<const char*, int64_t, int64_t>{".query_global.", 0, 1}, {".key_value_global.", 1, 2}})
    if (const auto at = name.find(global); at != std::string::npos)
      return {name.substr(0, at) + ".qkv." + name.substr(at + std::string(global).size()), first, parts};
  return {};
}

using Sources = std::map<std::string, Tensor>;

bool is_position_table(const std::string& name) {
  return name == "backbone.embeddings.position" || name == "backbone.decoder_embeddings.position";
}

/// Tables of tokens and of segments, of which the common rows are copied.
bool is_table(const std::string& name) { return name.find("stack.") == std::string::npos; }

bool have_equal_columns(const Tensor& a, const Tensor& b) { return a.sizes().slice(1) == b.sizes().slice(1); }

/// Copies from the parameter of the same name what fits, and reports it.
void copy_same_name(const std::string& name, const Tensor& from, int64_t source_first, const Tensor& value,
                    int64_t first, InitReport& report) {
  const bool tiles = is_position_table(name) && from.size(1) == value.size(1) && from.size(0) > source_first &&
                     (from.size(0) != value.size(0) || source_first != first);
  if (tiles) {
    tile_positions(value, first, from, source_first);
    report.tiled.push_back(name);
  } else if (from.sizes() == value.sizes()) {
    value.copy_(from);
    report.copied.push_back(name);
  } else if (from.dim() == value.dim() && have_equal_columns(from, value) && is_table(name)) {
    const int64_t rows = std::min(from.size(0), value.size(0));
    value.narrow(0, 0, rows).copy_(from.narrow(0, 0, rows));
    report.partly.push_back(concat(name, " (", rows, " of ", value.size(0), " rows)"));
  } else {
    report.fresh.push_back(concat(name, " (shape ", from.sizes(), " there, ", value.sizes(), " here)"));
  }
}

/// The name that a parameter of an encoder-decoder has in a network that is its encoder alone.
std::string name_in_encoder(const std::string& name) {
  const std::string encoder = "backbone.encoder.";
  return name.starts_with(encoder) ? "backbone.stack." + name.substr(encoder.size()) : name;
}

/// The name that a parameter of layer `mapped`[m - 1] has in layer m; of a layer that is not mapped empty. Layers of
/// several blocks are not known here.
std::string name_in_fewer_layers(const std::string& name, const std::vector<int64_t>& mapped) {
  const std::string stack = "backbone.stack.";
  const auto end = name.find('.', stack.size());
  if (mapped.empty() || !name.starts_with(stack) || !std::isdigit(name[stack.size()])) return name;
  const auto layer = std::stoll(name.substr(stack.size(), end - stack.size())) + 1;
  const auto found = std::ranges::find(mapped, layer);
  return found == mapped.end() ? "" : concat(stack, found - mapped.begin(), name.substr(end));
}

/// Copies a projection of global tokens from that of all tokens; false: it is none, or that does not fit.
bool copy_local_projection(const std::string& name, const Sources& sources, const Tensor& value) {
  const auto local = local_projection_of(name);
  const auto found = local.name.empty() ? sources.end() : sources.find(local.name);
  if (found == sources.end()) return false;
  const auto& qkv = found->second;
  const int64_t width = qkv.size(0) / 3;
  if (width * local.parts != value.size(0) || !have_equal_columns(qkv, value)) return false;
  value.copy_(qkv.narrow(0, local.first * width, local.parts * width));
  return true;
}

/// The names of heads that two networks have for a task, with other labels or another scale.
std::vector<std::string> heads_of_other_tasks(const Objectives& source, const Objectives& target) {
  std::vector<std::string> heads;
  for (const auto& theirs : source)
    for (const auto& ours : target) {
      const auto *a = task_head_of(theirs), *b = task_head_of(ours);
      if (!a || !b || head_of(theirs) != head_of(ours)) continue;
      if (a->labels != b->labels || a->scale != b->scale) heads.push_back(head_of(ours));
    }
  return heads;
}

bool is_of_head(const std::string& parameter, const std::vector<std::string>& heads) {
  return std::any_of(heads.begin(), heads.end(), [&](const auto& head) { return parameter.starts_with(head + "."); });
}

/// A matrix of a layer of the backbone.
bool is_of_layer(const Param& param) { return param.depth() > 0 && !param.is_of_head() && param.value().dim() > 1; }

/// The parameters of a run that others can be made from; those of heads of other tasks are left out.
Sources sources_of(const LoadedRun& source, const Network& network, const std::vector<int64_t>& layers,
                   const Objectives& objectives, InitReport& report) {
  Sources sources;
  const auto differing = heads_of_other_tasks(source.config.objectives, objectives);
  const bool is_encoder = backbone_of(network.model_config()).is_encoder();
  for (const auto& [name, param] : collect_params(*source.network)) {
    const auto own = name_in_fewer_layers(is_encoder ? name_in_encoder(name) : name, layers);
    if (is_of_head(name, differing) || own.empty())
      report.unused.push_back(name);
    else
      sources.emplace(own, param.value().detach());
  }
  return sources;
}

/// The options that two runs of the same objectives have with other values.
std::vector<std::string> other_options(const Objectives& before, const Objectives& now) {
  RunConfig was, is;
  was.objectives = before;
  is.objectives = now;
  std::vector<std::string> list;
  for (const auto& changed : changed_keys(was, is)) {
    if (changed.key.ends_with(".kind")) return {};
    if (changed.is_in_both()) list.push_back(to_text(changed));
  }
  return list;
}

}  // namespace

InitReport init_from(const std::string& path, Network& network, const Tokenizer& tokenizer, const InitConfig& options,
                     const Objectives& objectives) {
  if (is_step_folder(path)) require_intact(path);
  const auto source = open_run(path);
  require<ConfigError>(
      !source.has_tokenizer || source.tokenizer.fingerprint() == tokenizer.fingerprint(), "init.from ", path,
      ": was trained with a different tokenizer than data.tokens; prepare the text with its own: cloze "
      "prepare ... --tokenizer ",
      source.folder, "/tokenizer");
  InitReport report;
  report.from = source.checkpoint;
  report.other_options = other_options(source.config.objectives, objectives);
  report.weights = weights_fingerprint(source.checkpoint);
  const auto& model = backbone_of(network.model_config());
  const auto& source_model = backbone_of(source.config.model);
  const auto layers = options.layers.empty() ? std::vector<int64_t>()
                                             : mapped_layers(options.layers, model.num_hidden_layers,
                                                             source_model.num_hidden_layers, "init.layers", path);
  const auto sources = sources_of(source, network, layers, objectives, report);
  std::set<std::string> used;
  bool has_layer = false;
  at::NoGradGuard no_grad;
  for (const auto& [name, param] : collect_params(network)) {
    const auto stored = options.probe && param.is_of_head() ? sources.end() : sources.find(name);
    if (stored != sources.end()) {
      used.insert(name);
      has_layer = has_layer || (is_of_layer(param) && stored->second.sizes() == param.value().sizes());
      copy_same_name(name, stored->second, first_position(source_model), param.value(), first_position(model), report);
    } else if (copy_local_projection(name, sources, param.value())) {
      report.from_local.push_back(name);
    } else {
      report.fresh.push_back(name);
    }
  }
  for (const auto& [name, tensor] : sources)
    if (!used.count(name)) report.unused.push_back(name);
  require<ConfigError>(has_layer, "init.from ", path, ": no block of its ", kind_of(source.config.model),
                       " (hidden_size ", source_model.hidden_size, ") fits this ", kind_of(network.model_config()),
                       " (hidden_size ", model.hidden_size, "); name a run of the same width");
  return report;
}

std::string to_text(const InitReport& r) {
  const auto examples = [](const std::vector<std::string>& names) {
    std::string list;
    for (size_t i = 0; i < names.size() && i < 4; ++i) list += (i ? ", " : ": ") + names[i];
    return list + (names.size() > 4 ? concat(" and ", names.size() - 4, " more") : "");
  };
  std::string text = concat("initialized from ", r.from, ": ", r.copied.size(), " tensors copied");
  if (!r.tiled.empty()) text += concat("; ", r.tiled.size(), " tiled", examples(r.tiled));
  if (!r.from_local.empty())
    text += concat("; ", r.from_local.size(), " projections of global tokens copied from those of all tokens");
  if (!r.partly.empty()) text += concat("; partly copied", examples(r.partly));
  if (!r.fresh.empty()) text += concat("; ", r.fresh.size(), " drawn", examples(r.fresh));
  if (!r.unused.empty()) text += concat("; ", r.unused.size(), " of the source run not used", examples(r.unused));
  if (!r.other_options.empty()) text += "; options of objectives are not taken over" + examples(r.other_options);
  return text;
}

nlohmann::json to_json(const InitReport& r) {
  return {{"from", r.from},   {"weights", r.weights}, {"copied", r.copied},
          {"tiled", r.tiled}, {"partly", r.partly},   {"from_local", r.from_local},
          {"fresh", r.fresh}, {"unused", r.unused},   {"other_options", r.other_options}};
}

}  // namespace cloze
