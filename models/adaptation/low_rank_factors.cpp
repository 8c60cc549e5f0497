#include "models/adaptation/low_rank_factors.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/contains.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "models/layers/layers.h"

namespace cloze {

namespace {

constexpr uint32_t first_site = 1 << 16;  // above those of the layers of a network

/// The linear layers below one, by path.
void collect_linear(const Layer& layer, const std::string& path, std::vector<std::pair<std::string, Param>>& found) {
  if (const auto* linear = dynamic_cast<const Linear*>(&layer)) found.emplace_back(path, linear->weight);
  for (const auto& [name, child] : layer.children())
    collect_linear(*child, path.empty() ? name : path + "." + name, found);
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

}  // namespace

std::vector<NamedRows> rows_of_layer(const std::string& path) {
  const auto name = last_name(path);
  if (name == "qkv") return {{"query", 0, 1, 3}, {"key", 1, 1, 3}, {"value", 2, 1, 3}, {"qkv", 0, 3, 3}};
  if (name == "key_value") return {{"key", 0, 1, 2}, {"value", 1, 1, 2}};
  if (name == "key_value_global") return {{"key_global", 0, 1, 2}, {"value_global", 1, 1, 2}};
  if (path.ends_with("attention.output")) return {{"attention_output", 0, 1, 1}};
  return {{name, 0, 1, 1}};
}

LowRankFactors::LowRankFactors(const LoraAdaptation& config, const Backbone& backbone) : dropout_(config.dropout) {
  std::vector<std::pair<std::string, Param>> layers;
  collect_linear(backbone, "", layers);
  std::vector<std::string> names, met;
  for (const auto& [path, weight] : layers) {
    if (weight.is_of_head()) continue;  // the pooler
    for (const auto& rows : rows_of_layer(path)) {
      if (!contains(names, rows.name)) names.push_back(rows.name);
      if (!contains(config.targets, rows.name)) continue;
      met.push_back(rows.name);
      add(config, path, rows, weight);
    }
  }
  for (const auto& target : config.targets)
    require<ConfigError>(contains(met, target), "adaptation.targets has '", target,
                         "', which no layer of this network has", did_you_mean(target, names), "; its layers have ",
                         listed(names));
}

void LowRankFactors::add(const LoraAdaptation& config, const std::string& path, const NamedRows& rows,
                         const Param& weight) {
  const int64_t unit = weight.value().size(0) / rows.of, columns = weight.value().size(1);
  const auto name = rows.name == last_name(path) ? path : path + "." + rows.name;
  const auto rank = static_cast<double>(config.rank);
  LowRank part{.a = own_param(name + ".a", {config.rank, columns}, Init::weight),
               .b = own_param(name + ".b", {unit * rows.parts, config.rank}, Init::zero, Role::weight),
               .first = unit * rows.first,
               .scale = config.alpha / (config.rank_stabilized ? std::sqrt(rank) : rank)};
  part.a.set_init_range(1 / std::sqrt(3 * static_cast<double>(columns)), Spread::uniform);
  for (auto* factor : {&part.a, &part.b}) factor->set_depth(weight.depth());
  auto matrix = weight;
  if (!matrix.low_rank()) {
    matrix.set_low_rank(std::make_shared<LowRanks>());
    matrices_.push_back({path, matrix});
  }
  matrix.low_rank()->parts.push_back(std::move(part));
}

void LowRankFactors::begin_pass(uint64_t key) {
  uint32_t site = first_site;
  for (const auto& [path, matrix] : matrices_)
    for (auto& part : matrix.low_rank()->parts)
      part.drop = {.p = dropout_, .key = key, .site = site++, .active = is_training()};
}

void LowRankFactors::merge() {
  for (auto& [path, matrix] : matrices_) {
    cloze::merge(matrix);
    matrix.set_low_rank(nullptr);
  }
}

}  // namespace cloze
