#include "interchange/huggingface/names.h"

#include <cctype>

namespace cloze::huggingface {

namespace {

std::vector<std::string> renamed(const Names& table, std::string_view name, const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& [cloze, huggingface] : table) {
    if (!name.starts_with(cloze)) continue;
    for (const auto& part : huggingface) names.push_back(prefix + part + std::string(name.substr(cloze.size())));
    break;
  }
  return names;
}

}  // namespace

std::function<std::string(int64_t)> numbered(const std::string& before) {
  return [before](int64_t block) { return before + std::to_string(block) + "."; };
}

std::vector<std::string> names_in(const ParameterNames& table, std::string_view name) {
  for (const auto& stack : table.stacks) {
    if (!name.starts_with(stack.cloze)) continue;
    const auto rest = name.substr(stack.cloze.size());
    if (rest.empty() || !std::isdigit(static_cast<unsigned char>(rest[0]))) continue;  // final_norm and others
    const auto dot = rest.find('.');
    return renamed(stack.block, rest.substr(dot + 1), stack.of_block(std::stoll(std::string(rest.substr(0, dot)))));
  }
  return renamed(table.outer, name, "");
}

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Names prediction_head(const std::string& transform, const std::string& norm, const std::string& decoder,
                      const std::string& bias) {
  Names names;
  for (const std::string head : {"mlm.head.", "lm.head."})
    names = names + Names{{head + "transform.", {transform}},
                          {head + "norm.", {norm}},
                          {head + "decoder", {decoder}},
                          {head + "bias", {bias}}};
  return names;
}

Names task_heads(const TaskHeadNames& names) {
  Names all{{"tagging.output.", {names.tags}}, {"spans.output.", {names.spans}}};
  const auto add = [&](const std::string& head, const std::string& dense, const std::string& output) {
    if (!dense.empty()) all.push_back({head + "dense.", {dense}});
    if (!names.norm.empty()) all.push_back({head + "norm.", {names.norm}});
    all.push_back({head + "output.", {output}});
  };
  for (const std::string head : {"classification.", "multilabel.", "regression."}) add(head, names.dense, names.output);
  add("choice.", names.choice_dense, names.choice_output);
  return all;
}

Names BertNames::bert_block() {
  return {{"attention.qkv.", {"attention.self.query.", "attention.self.key.", "attention.self.value."}},
          {"attention.distance", {"attention.self.distance_embedding.weight"}},
          {"attention.output.", {"attention.output.dense."}},
          {"attention_norm.", {"attention.output.LayerNorm."}},
          {"output_norm.", {"output.LayerNorm."}},
          {"intermediate.", {"intermediate.dense."}},
          {"output.", {"output.dense."}}};
}

ParameterNames names_of(const BertNames& names) {
  const auto at = [&](const std::string& name) { return std::vector{names.prefix + name}; };
  Names outer{{"backbone.embeddings.word", at("embeddings.word_embeddings.weight")},
              {"backbone.embeddings.position", at("embeddings.position_embeddings.weight")},
              {"backbone.embeddings.token_type", at("embeddings.token_type_embeddings.weight")},
              {"backbone.embeddings.norm.", at("embeddings.LayerNorm.")}};
  if (!names.projection.empty()) outer.push_back({"backbone.projection.", at(names.projection)});
  if (!names.pooler.empty()) outer.push_back({"backbone.pooler.", at(names.pooler)});
  return {.outer = outer + names.heads,
          .stacks = {{"backbone.stack.", numbered(names.prefix + names.blocks), names.block}}};
}

}  // namespace cloze::huggingface
