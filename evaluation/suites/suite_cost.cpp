#include "evaluation/suites/suite.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/stopwatch.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/embedding_scores.h"
#include "inference/scoring/counted_flops.h"

namespace cloze {

namespace {

/// The items of a suite, of which any can be answered alone.
struct SeparateItems {
  std::vector<double> sizes{};  ///< what an answer costs grows with it
  std::function<void(const std::vector<size_t>&)> answer{};
};

SeparateItems items_of(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options) {
  SeparateItems all;
  for (const auto& item : suite.items) {
    auto& size = all.sizes.emplace_back(0);
    for (const auto& candidate : item.candidates) size += static_cast<double>(candidate.text().size());
  }
  all.answer = [&](const std::vector<size_t>& chosen) {
    RankingSuite part;
    for (const auto item : chosen) part.items.push_back(suite.items[item]);
    run_suite(run, part, options);
  };
  return all;
}

/// The objects of a relation stay, each of which is scored for each of its facts.
SeparateItems items_of(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options) {
  SeparateItems all;
  for (const auto& relation : suite.relations)
    for (const auto& fact : relation.facts)
      all.sizes.push_back(static_cast<double>(relation.objects.size() * (fact.left.size() + fact.right.size() + 1)));
  all.answer = [&](const std::vector<size_t>& chosen) {
    FactSuite part;
    size_t number = 0;
    for (const auto& relation : suite.relations) {
      FactRelation some{.name = relation.name, .objects = relation.objects};
      for (const auto& fact : relation.facts)
        if (std::ranges::binary_search(chosen, number++)) some.facts.push_back(fact);
      if (!some.facts.empty()) part.relations.push_back(std::move(some));
    }
    run_suite(run, part, options);
  };
  return all;
}

/// Words without their previous ones, which are words of the suite too and computed once.
SeparateItems items_of(const LoadedRun& run, const ReadingSuite& suite, const SuiteOptions& options) {
  SeparateItems all;
  for (const auto& word : suite.times.words) all.sizes.push_back(static_cast<double>(word.context.size()));
  all.answer = [&](const std::vector<size_t>& chosen) {
    ReadingSuite part;
    for (const auto word : chosen) part.times.words.push_back(suite.times.words[word]);
    part.times.previous.resize(chosen.size());
    reading_surprisals(run, part, options.scoring);
    if (const auto backend = babylm_backend(run.config)) babylm_reading_surprisals(run, part, *backend);
  };
  return all;
}

SeparateItems items_of(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options) {
  SeparateItems all;
  for (const auto& word : suite.words)
    for (const auto& context : word.contexts) all.sizes.push_back(static_cast<double>(context.size()));
  all.answer = [&](const std::vector<size_t>& chosen) {
    AcquisitionSuite part;
    size_t number = 0;
    for (const auto& word : suite.words) {
      AcquisitionWord some{.word = word.word, .contexts = {}};
      for (const auto& context : word.contexts)
        if (std::ranges::binary_search(chosen, number++)) some.contexts.push_back(context);
      if (!some.contexts.empty()) part.words.push_back(std::move(some));
    }
    acquisition_surprisals(run, part, options.scoring);
  };
  return all;
}

/// Texts, each of which is embedded once. What is computed of their vectors is little beside that.
SeparateItems items_of(const LoadedRun& run, const std::set<std::string>& texts, const SuiteOptions& options) {
  SeparateItems all;
  for (const auto& text : texts) all.sizes.push_back(static_cast<double>(text.size()));
  all.answer = [&run, &options, texts = std::vector(texts.begin(), texts.end())](const std::vector<size_t>& chosen) {
    std::vector<std::string> part;
    for (const auto text : chosen) part.push_back(texts[text]);
    embed_distinct(run, std::move(part), options);
  };
  return all;
}

SeparateItems items_of(const LoadedRun& run, const SimilaritySuite& suite, const SuiteOptions& options) {
  std::set<std::string> texts;
  for (const auto& file : suite.files)
    for (const auto& pair : file.pairs) texts.insert({pair.a, pair.b});
  return items_of(run, texts, options);
}

SeparateItems items_of(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions& options) {
  std::set<std::string> words;
  for (const auto& file : suite.files)
    for (const auto& section : file.sections)
      for (const auto& question : section.questions) words.insert(question.begin(), question.end());
  return items_of(run, words, options);
}

/// What so many items cost.
SuiteCost cost_of_sample(const SeparateItems& items, size_t count) {
  const CountedFlops counted;
  const auto start = Clock::now();
  items.answer(spread_sample(items.sizes, count));
  return {.flops = counted.total(), .seconds = seconds_since(start)};
}

/// The middle one of an odd number of values.
double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

std::vector<size_t> spread_sample(const std::vector<double>& sizes, size_t count) {
  std::vector<size_t> order(sizes.size()), sample;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t item) { return sizes[item]; });
  count = std::min(count, sizes.size());
  for (size_t i = 0; i < count; ++i) sample.push_back(order[(2 * i + 1) * sizes.size() / (2 * count)]);
  std::ranges::sort(sample);
  return sample;
}

SuiteCost suite_cost(const LoadedRun& run, const Suite& suite, const SuiteOptions& options, double seconds) {
  const auto fault = suite_fault(run.config, suite, options);
  require<ConfigError>(fault.empty(), run.folder, ": cannot answer ", suite.name, ": ", fault);
  const auto items = std::visit([&](const auto& kind) { return items_of(run, kind, options); }, suite.items);
  const size_t all = items.sizes.size();
  size_t count = std::min<size_t>(2, all);
  auto cost = cost_of_sample(items, count);
  while (count < all && cost.seconds < seconds / 8) {
    const double growth = std::clamp(seconds / (4 * cost.seconds), 2.0, 16.0);
    count = std::min(all, static_cast<size_t>(growth * static_cast<double>(count)));
    cost = cost_of_sample(items, count);
  }
  const size_t fewer = (count + 3) / 4;
  const int rounds = cost.seconds < seconds / 4 ? 3 : 1;
  std::vector<double> many, few;
  for (int round = 0; round < rounds; ++round) {
    many.push_back(cost_of_sample(items, count).seconds);
    few.push_back(cost_of_sample(items, fewer).seconds);
  }
  const double known = middle_of(many);
  const double each = std::max(0.0, known - middle_of(few)) / std::max(1.0, static_cast<double>(count - fewer));
  return {.flops = cost.flops * static_cast<double>(all) / static_cast<double>(count),
          .seconds = known + static_cast<double>(all - count) * each};
}

}  // namespace cloze
