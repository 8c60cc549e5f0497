#include "evaluation/suites/facts.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "core/log.h"
#include "core/spelling.h"
#include "evaluation/suites/json_lines.h"
#include "evaluation/suites/statistics.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The templates of relations: the first of each.
std::map<std::string, std::string> read_templates(const std::string& path) {
  std::map<std::string, std::string> templates;
  SuiteLines lines(path);
  while (const auto line = lines.next()) {
    const auto& relation = line->text(line->has("relation") ? "relation" : "predicate_id");
    const auto& pattern = line->text(line->has("template") ? "template" : "pattern");
    for (const char* blank : {"[X]", "[Y]"}) {
      const auto at = pattern.find(blank);
      require<DataError>(at != std::string::npos && pattern.find(blank, at + 1) == std::string::npos, line->where,
                         ": '", pattern, "' needs one ", blank);
    }
    templates.emplace(relation, pattern);
  }
  return templates;
}

bool has_keys(const SuiteFile& file, std::initializer_list<const char*> keys) {
  const auto* first = file.object();
  return first && std::all_of(keys.begin(), keys.end(), [&](const char* key) { return first->has(key); });
}
bool is_facts(const SuiteFile& file) { return has_keys(file, {"predicate_id", "sub_label", "obj_label"}); }

/// The first file of templates; empty: there is none.
std::string templates_in(const std::vector<SuiteFile>& files) {
  const auto found = std::ranges::find_if(files, [](const SuiteFile& file) {
    return has_keys(file, {"predicate_id", "pattern"}) || has_keys(file, {"relation", "template"});
  });
  return found == files.end() ? "" : found->path();
}

/// A template with its subject, cut at the object.
Fact fact_of(const std::string& pattern, const std::string& subject) {
  const std::string blank = "[Y]";
  const auto with_subject = [&](std::string text) {
    const auto at = text.find("[X]");
    return at == std::string::npos ? text : text.replace(at, 3, subject);
  };
  const auto at = pattern.find(blank);
  return {.name = {},
          .left = with_subject(pattern.substr(0, at)),
          .object = {},
          .right = with_subject(pattern.substr(at + blank.size()))};
}

void add_facts(const std::string& path, const std::map<std::string, std::string>& templates,
               std::map<std::string, FactRelation>& relations, std::map<std::string, int64_t>& left_out,
               std::map<std::string, std::string>& places) {
  SuiteLines lines(path);
  while (const auto line = lines.next()) {
    const auto& name = line->text("predicate_id");
    const auto pattern = templates.find(name);
    if (pattern == templates.end()) {
      ++left_out[name];
      continue;
    }
    auto& relation = relations[name];
    relation.name = name;
    auto fact = fact_of(pattern->second, line->filled("sub_label"));
    fact.object = line->filled("obj_label");
    fact.name = concat(name, "/", line->has("uuid") ? line->text("uuid") : concat(relation.facts.size()));
    const auto [place, is_new] = places.emplace(fact.name, line->where);
    require<DataError>(is_new, line->where, ": the fact '", shortened(fact.name), "' is there twice, first in ",
                       place->second, "; remove one, or give it another uuid");
    relation.objects.push_back(fact.object);
    relation.facts.push_back(std::move(fact));
  }
}

bool is_masked(ScoringForm form) {
  return form == ScoringForm::pll || form == ScoringForm::pll_word_l2r || form == ScoringForm::pll_span;
}

/// How facts are scored: where masked tokens are predicted, with the whole object masked. A token of an object of
/// several is easily guessed from the others, which favours long objects.
ScoringOptions fact_options(const LoadedRun& run, ScoringOptions options) {
  if (!options.form && is_masked(default_form(run.config))) options.form = ScoringForm::pll_span;
  return options;
}

Passage passage_of(const Fact& fact, const std::string& object, bool masked) {
  if (masked) return {.left = fact.left, .scored = object, .right = fact.right};
  return {.left = {}, .scored = fact.left + object + fact.right, .right = {}};
}

/// What was found of one relation: sums over its facts.
struct Found {
  double p1 = 0, p10 = 0, mrr = 0, restricted_p1 = 0, restricted_mrr = 0;
  int64_t single = 0;  ///< facts whose object is one token
  int64_t all = 0, ties = 0;
};

/// The rank of candidate `right`, from 1; candidates of the same score share the mean of their ranks.
double rank_of(const std::vector<double>& scores, size_t right) {
  double above = 0, equal = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    above += scores[i] > scores[right];
    equal += i != right && scores[i] == scores[right];
  }
  return 1 + above + equal / 2;
}

class FactScorer {
 public:
  FactScorer(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options)
      : scorer_(run, counting(fact_options(run, options.scoring), scored_, passages_of(suite))),
        masked_(is_masked(scorer_.form())) {}

  bool masked() const { return masked_; }
  std::string description() const { return scorer_.description(); }

  /// Adds the facts' predictions and credits to `result`.
  Found score(const FactRelation& relation, SuiteResult& result) const {
    Found sums;
    constexpr size_t facts_at_once = 256;
    for (size_t first = 0; first < relation.facts.size(); first += facts_at_once) {
      const auto last = std::min(relation.facts.size(), first + facts_at_once);
      std::vector<Passage> passages;
      for (size_t i = first; i < last; ++i)
        for (const auto& object : relation.objects) passages.push_back(passage_of(relation.facts[i], object, masked_));
      const auto scores = scorer_.score(passages);
      *scored_ += static_cast<int64_t>(passages.size());
      for (size_t i = first; i < last; ++i)
        add(relation, relation.facts[i],
            std::span(scores).subspan((i - first) * relation.objects.size(), relation.objects.size()), sums, result);
    }
    return sums;
  }

 private:
  static int64_t passages_of(const FactSuite& suite) {
    size_t count = 0;
    for (const auto& relation : suite.relations) count += relation.facts.size() * relation.objects.size();
    return static_cast<int64_t>(count);
  }

  /// The options with ranks, and with progress over all passages of the suite, of which `scored` were scored before.
  static ScoringOptions counting(ScoringOptions options, const std::shared_ptr<int64_t>& scored, int64_t all) {
    options.ranks = true;
    if (options.progress)
      options.progress = [report = options.progress, scored, all](int64_t done, int64_t) {
        report(*scored + done, all);
      };
    return options;
  }

  void add(const FactRelation& relation, const Fact& fact, std::span<const PassageScore> scores, Found& sums,
           SuiteResult& result) const {
    std::vector<double> values;
    for (size_t i = 0; i < scores.size(); ++i) {
      // A score of nothing is 0, the best of all.
      require<DataError>(!scores[i].tokens.empty(), "fact ", fact.name, ": the object '",
                         shortened(relation.objects[i]),
                         "' has no token to score; its characters are none of the tokenizer's; remove its facts");
      values.push_back(normalised(scores[i], masked_ ? Normalisation::token : Normalisation::sum));
    }
    const auto right = static_cast<size_t>(
        std::lower_bound(relation.objects.begin(), relation.objects.end(), fact.object) - relation.objects.begin());
    const double rank = rank_of(values, right);
    const auto best = static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    ++sums.all;
    const auto equal = std::count(values.begin(), values.end(), values[best]);
    sums.ties += equal > 1;
    const double credit = values[right] == values[best] ? 1 / static_cast<double>(equal) : 0;
    sums.restricted_p1 += credit;
    if (!masked_)
      result.proportions.front().items.push_back({.item = fact.name, .cluster = relation.name, .credit = credit});
    sums.restricted_mrr += 1 / rank;
    nlohmann::json item{{"item", fact.name},      {"relation", relation.name},
                        {"left", fact.left},      {"right", fact.right},
                        {"object", fact.object},  {"restricted_rank", rank},
                        {"score", values[right]}, {"restricted_answer", relation.objects[best]}};
    if (masked_ && scores[right].tokens.size() == 1) {
      const auto among_all = scores[right].tokens.front().rank;
      ++sums.single;
      sums.p1 += among_all == 1;
      sums.p10 += among_all <= 10;
      sums.mrr += 1 / static_cast<double>(among_all);
      item["rank"] = among_all;
      result.proportions.front().items.push_back(
          {.item = fact.name, .cluster = relation.name, .credit = among_all == 1 ? 1.0 : 0.0});
    }
    result.items.push_back(item);
  }

  std::shared_ptr<int64_t> scored_ = std::make_shared<int64_t>(0);
  Scorer scorer_;
  bool masked_;
};

/// A score of all relations: the mean of theirs.
struct Metric {
  const char* name;
  double Found::* sum;
  int64_t Found::* count;
  bool has_ties = false;  ///< between objects of a relation
};
constexpr Metric whole_vocabulary[] = {
    {"p@1", &Found::p1, &Found::single}, {"p@10", &Found::p10, &Found::single}, {"mrr", &Found::mrr, &Found::single}};
constexpr Metric restricted[] = {{"restricted_p@1", &Found::restricted_p1, &Found::all, true},
                                 {"restricted_mrr", &Found::restricted_mrr, &Found::all, true}};

Score score_of(const Metric& metric, const ClusteredMean& mean, int64_t count, int64_t ties) {
  return {.metric = metric.name,
          .value = mean.value,
          .interval = fraction_interval(mean, count),
          .count = count,
          .ties = metric.has_ties ? ties : 0};
}

void add_scores(const Metric& metric, const std::vector<std::pair<std::string, Found>>& relations,
                std::vector<Score>& total, std::vector<Score>& single) {
  std::vector<double> means, ones;
  int64_t count = 0, ties = 0;
  for (const auto& [name, sums] : relations) {
    const auto facts = sums.*metric.count;
    if (facts == 0) continue;
    means.push_back(sums.*metric.sum / static_cast<double>(facts));
    ones.push_back(1);
    count += facts;
    ties += sums.ties;
    auto& score = single.emplace_back(score_of(metric, {.value = means.back()}, facts, sums.ties));
    score.level = SuiteLevel::paradigm;
    score.group = name;
  }
  if (means.empty()) return;
  total.push_back(score_of(metric, clustered_mean(means, ones), count, ties));
}

}  // namespace

std::optional<FactSuite> read_facts(const SuiteFiles& files) {
  if (std::ranges::none_of(files.lines, is_facts)) return {};
  const auto folder = fs::path(files.path).parent_path();
  const auto file_of_templates =
      templates_in(files.is_folder ? files.lines : SuiteFiles(folder.empty() ? "." : folder.string()).lines);
  require<DataError>(
      !file_of_templates.empty(), files.path,
      ": has no templates next to it; add a patterns.jsonl with `predicate_id` and a `pattern` that holds "
      "[X] and [Y]");
  const auto templates = read_templates(file_of_templates);
  std::map<std::string, FactRelation> relations;
  std::map<std::string, int64_t> left_out;
  std::map<std::string, std::string> places;  // of facts, by name
  for (const auto& file : files.lines)
    if (is_facts(file)) add_facts(file.path(), templates, relations, left_out, places);
  require<DataError>(!relations.empty() || left_out.empty(), file_of_templates,
                     ": has no template for any relation of ", files.path, ", such as '",
                     left_out.empty() ? "" : left_out.begin()->first, "'; add one");
  FactSuite suite;
  for (const auto& [name, count] : left_out)
    suite.notes.push_back(concat("facts of the relation '", name,
                                 "', which has no template, are left out: ", thousands(static_cast<uint64_t>(count))));
  for (auto& [name, relation] : relations) {
    std::sort(relation.objects.begin(), relation.objects.end());
    relation.objects.erase(std::unique(relation.objects.begin(), relation.objects.end()), relation.objects.end());
    suite.relations.push_back(std::move(relation));
  }
  return suite;
}

std::string reason_unsupported(const RunConfig& config, const FactSuite&, const SuiteOptions& options) {
  return scoring_fault(config, options.scoring.form);
}

void check_fit(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options) {
  const Scorer scorer(run, fact_options(run, options.scoring));
  const auto tokens = [&](const std::string& object) { return run.tokenizer.encode(object).size(); };
  for (const auto& relation : suite.relations) {
    const auto longest = std::ranges::max_element(relation.objects, {}, tokens);
    std::vector<Passage> passages;
    for (const auto& fact : relation.facts) passages.push_back(passage_of(fact, *longest, is_masked(scorer.form())));
    scorer.check_fit(passages);
  }
}

SuiteResult run_suite(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options) {
  const FactScorer scorer(run, suite, options);
  SuiteResult result;
  result.scored_by = scorer.description();
  result.notes = suite.notes;
  result.proportions = {ProportionItems{.metric = scorer.masked() ? whole_vocabulary[0].name : restricted[0].name}};
  std::vector<std::pair<std::string, Found>> relations;
  for (const auto& relation : suite.relations) relations.emplace_back(relation.name, scorer.score(relation, result));
  std::vector<Score> single;
  if (scorer.masked())
    for (const auto& metric : whole_vocabulary) add_scores(metric, relations, result.scores, single);
  for (const auto& metric : restricted) add_scores(metric, relations, result.scores, single);
  result.scores.insert(result.scores.end(), single.begin(), single.end());
  int64_t certain = 0;
  for (const auto& relation : suite.relations)
    if (relation.objects.size() == 1) certain += static_cast<int64_t>(relation.facts.size());
  if (certain > 0)
    result.notes.push_back(concat(certain, " of ", result.items.size(),
                                  " facts are of relations with a single object, which every model names among the "
                                  "objects; leave them out, or add facts with others"));
  return result;
}

}  // namespace cloze
