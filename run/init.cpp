#include "run/init.h"

#include <map>
#include <set>

namespace cloze {

namespace {

/// The place behind the rows that no token has.
int64_t first_place(const BackboneConfig& c) {
  return c.positions_after_padding ? c.pad_token_id + 1 : c.position_offset;
}

void tile_places(const Tensor& to, int64_t to_first, const Tensor& from, int64_t from_first) {
  for (int64_t row = 0; row < to_first; ++row) to[row].copy_(from[std::min(row, std::max<int64_t>(from_first - 1, 0))]);
  const int64_t places = from.size(0) - from_first;
  for (int64_t at = to_first; at < to.size(0); at += places) {
    const int64_t count = std::min(places, to.size(0) - at);
    to.narrow(0, at, count).copy_(from.narrow(0, from_first, count));
  }
}

/// The projection of all tokens that a projection of global ones starts from, and the rows of it.
struct Local {
  std::string name;
  int64_t first = 0, parts = 0;  // of three
};
Local local_of(const std::string& name) {
  for (const auto& [global, first, parts] :
       {std::tuple<const char*, int64_t, int64_t>{".query_global.", 0, 1}, {".key_value_global.", 1, 2}})
    if (const auto at = name.find(global); at != std::string::npos)
      return {name.substr(0, at) + ".qkv." + name.substr(at + std::string(global).size()), first, parts};
  return {};
}

}  // namespace

InitReport init_from(const std::string& path, Network& network, const Tokenizer& tokenizer) {
  const auto source = open_run(path);
  require<ConfigError>(!source.has_tokenizer || source.tokenizer.fingerprint() == tokenizer.fingerprint(), "init.from ",
                       path,
                       ": was trained with another tokenizer than data.tokens; prepare the text with its own: cloze "
                       "prepare ... --tokenizer ",
                       source.folder, "/tokenizer");
  InitReport report;
  report.from = source.checkpoint;
  std::map<std::string, Tensor> theirs;
  for (const auto& [name, param] : collect_params(*source.network)) theirs.emplace(name, param.value().detach());
  const auto &ours = backbone_of(network.model_config()), &old = backbone_of(source.config.model);
  std::set<std::string> used;
  at::NoGradGuard no_grad;
  for (const auto& [name, param] : collect_params(network)) {
    const auto& value = param.value();
    const auto local = local_of(name);
    const auto found = theirs.find(name);
    if (found != theirs.end()) {
      used.insert(name);
      const auto& from = found->second;
      const bool places = (name == "backbone.embeddings.position" || name == "backbone.decoder_embeddings.position") &&
                          from.size(1) == value.size(1);
      if (places && from.size(0) > first_place(old) &&
          (from.size(0) != value.size(0) || first_place(old) != first_place(ours))) {
        tile_places(value, first_place(ours), from, first_place(old));
        report.tiled.push_back(name);
        continue;
      }
      if (from.sizes() == value.sizes()) {
        value.copy_(from);
        report.copied.push_back(name);
        continue;
      }
      if (from.dim() == value.dim() && from.sizes().slice(1) == value.sizes().slice(1) &&
          name.find("stack.") == std::string::npos) {  // tables of tokens, of segments
        const int64_t rows = std::min(from.size(0), value.size(0));
        value.narrow(0, 0, rows).copy_(from.narrow(0, 0, rows));
        report.partly.push_back(words(name, " (", rows, " of ", value.size(0), " rows)"));
        continue;
      }
      report.fresh.push_back(words(name, " (it was ", from.sizes(), ", it is ", value.sizes(), ")"));
    } else if (const auto qkv = theirs.find(local.name); !local.name.empty() && qkv != theirs.end() &&
                                                         qkv->second.size(0) / 3 * local.parts == value.size(0) &&
                                                         qkv->second.sizes().slice(1) == value.sizes().slice(1)) {
      const int64_t part = qkv->second.size(0) / 3;
      value.copy_(qkv->second.narrow(0, local.first * part, local.parts * part));
      report.from_local.push_back(name);
    } else {
      report.fresh.push_back(name);
    }
  }
  for (const auto& [name, tensor] : theirs)
    if (!used.count(name)) report.unused.push_back(name);
  const bool blocks = std::any_of(report.copied.begin(), report.copied.end(), [&](const auto& name) {
    return name.rfind("backbone.", 0) == 0 && name.find(".0.") != std::string::npos && theirs.at(name).dim() > 1;
  });
  require<ConfigError>(blocks, "init.from ", path, ": no block of that ", kind_of(source.config.model),
                       " (hidden_size ", old.hidden_size, ") fits this ", kind_of(network.model_config()),
                       " (hidden_size ", ours.hidden_size, "); name a run of the same width");
  return report;
}

std::string to_text(const InitReport& r) {
  const auto some = [](const std::vector<std::string>& names) {
    std::string list;
    for (size_t i = 0; i < names.size() && i < 4; ++i) list += (i ? ", " : ": ") + names[i];
    return list + (names.size() > 4 ? words(" and ", names.size() - 4, " more") : "");
  };
  std::string text = words("starts from ", r.from, ": ", r.copied.size(), " tensors copied");
  if (!r.tiled.empty()) text += words("; ", r.tiled.size(), " tiled", some(r.tiled));
  if (!r.from_local.empty())
    text += words("; ", r.from_local.size(), " projections of global tokens from those of all tokens");
  if (!r.partly.empty()) text += words("; in part", some(r.partly));
  if (!r.fresh.empty()) text += words("; ", r.fresh.size(), " drawn anew", some(r.fresh));
  if (!r.unused.empty()) text += words("; ", r.unused.size(), " of that run not used", some(r.unused));
  return text;
}

nlohmann::json to_json(const InitReport& r) {
  return {{"from", r.from},     {"copied", r.copied}, {"tiled", r.tiled},  {"from_local", r.from_local},
          {"partly", r.partly}, {"fresh", r.fresh},   {"unused", r.unused}};
}

}  // namespace cloze
