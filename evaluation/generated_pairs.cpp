#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/log.h"
#include "core/print.h"
#include "data/reading/reader.h"
#include "data/text_metrics.h"
#include "evaluation/run_losses.h"
#include "inference/generation/generate.h"

namespace cloze {

namespace {

using nlohmann::json;

/// The raw text of the files.
GeneratedPairs pairs_of_texts(const EvaluationRequest& c, const EvaluationTexts& texts, int64_t max_pairs) {
  GeneratedPairs pairs;
  DocumentReader reader({.inputs = texts.sources,
                         .targets = texts.targets,
                         .format = TextFormat::pairs,
                         .field = c.field,
                         .columns = c.columns});
  for (RawDocument pair; static_cast<int64_t>(pairs.sources.size()) < max_pairs && reader.next(pair);) {
    pairs.sources.push_back(pair.lines[0]);
    pairs.references.push_back(pair.lines[1]);
  }
  return pairs;
}

/// The decoded tokens of the store.
GeneratedPairs pairs_of_tokens(const TokenStore& store, const Tokenizer& tokenizer, int64_t max_pairs) {
  GeneratedPairs pairs;
  uint64_t unknown = 0;
  const auto text = [&](uint64_t sentence) {
    std::vector<int64_t> ids(store.first_token(sentence + 1) - store.first_token(sentence));
    store.read(store.first_token(sentence), ids.size(), ids.data());
    unknown += contains(ids, tokenizer.special().unk);
    return tokenizer.decode(ids);
  };
  for (uint64_t d = 0; d < std::min<uint64_t>(store.num_documents(), static_cast<uint64_t>(max_pairs)); ++d) {
    pairs.sources.push_back(text(2 * d));
    pairs.references.push_back(text(2 * d + 1));
  }
  if (unknown > 0)
    log_warning("evaluate",
                concat(unknown,
                       " sources and references contain unknown tokens; to score against the raw text, give "
                       "the files with --text and --target"));
  return pairs;
}

}  // namespace

GeneratedPairs generate_pairs(const EvaluatedRun& one, const EvaluationRequest& c, const EvaluationTexts& texts) {
  const auto max_pairs = one.config.evaluation.sequences;
  require<ConfigError>(one.store->num_sentences() == 2 * one.store->num_documents(),
                       "--generate needs pairs of sources and targets; prepare the tokens with --format pairs");
  auto pairs =
      c.text.empty() ? pairs_of_tokens(*one.store, one.run.tokenizer, max_pairs) : pairs_of_texts(c, texts, max_pairs);
  const GenerateOptions options{.search = c.search, .batch_size = c.batch_size, .truncate = true};
  for (const auto& list : generate(one.run, pairs.sources, options)) pairs.generated.push_back(list[0].text);
  return pairs;
}

json measures_of(const GeneratedPairs& pairs) {
  const auto sums = text_sums(pairs.generated, pairs.references);
  const auto means = rouge(sums);
  return {{"bleu", bleu(sums).score},        {"chrf", chrf(sums)},     {"rouge1", means.rouge1},
          {"rouge2", means.rouge2},          {"rougeL", means.rougeL}, {"rougeLsum", means.rougeLsum},
          {"exact_match", exact_match(sums)}};
}

void print_pairs(const GeneratedPairs& pairs, const json& measures) {
  const auto percent_of = [&](const char* name) { return 100 * measures.at(name).get<double>(); };
  std::printf("\nBLEU %.2f   chrF %.2f   ROUGE-1 %.2f   ROUGE-2 %.2f   ROUGE-L %.2f   exact %.2f %%   (%zu %s)\n",
              measures.at("bleu").get<double>(), measures.at("chrf").get<double>(), percent_of("rouge1"),
              percent_of("rouge2"), percent_of("rougeL"), percent_of("exact_match"), pairs.generated.size(),
              pairs.generated.size() == 1 ? "text" : "texts");
  for (size_t i = 0; i < std::min<size_t>(3, pairs.generated.size()); ++i)
    print_text(concat("\n  ", pairs.sources[i], "\n  ", pairs.generated[i], "\n  (", pairs.references[i], ")\n"));
}

}  // namespace cloze
