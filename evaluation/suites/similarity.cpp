#include "evaluation/suites/similarity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "data/reading/text_lines.h"
#include "evaluation/suites/embedding_scores.h"

namespace cloze {

namespace {

/// The number that is the whole of a text.
std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// The fields of a line, separated by tabs or spaces.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(" \t", at), line.size());
    fields.emplace_back(line.substr(at, end - at));
    at = end;
  }
  return fields;
}

JudgedFile read_judged_words(const std::string& path) {
  JudgedFile file{.name = suite_name(path)};
  SuiteText lines(path);
  Repeats repeats;
  for (std::string_view line; lines.next(line);) {
    const auto fields = fields_of(line);
    if (fields.empty()) continue;
    const double judgement = fields.size() == 3 ? number_of(fields[2]).value_or(NAN) : NAN;
    require<DataError>(std::isfinite(judgement), lines.where(),
                       ": is not two words and a number, the judgement of people; write these, or remove the line");
    file.pairs.push_back({fields[0], fields[1], judgement});
    const auto [a, b] = std::minmax(fields[0], fields[1]);  // similarity has no direction
    repeats.add(a + " " + b, lines);
  }
  file.notes = repeats.notes("pairs");
  require<DataError>(file.pairs.size() > 3, path, ": has ", file.pairs.size(),
                     " pairs, too few for a correlation; give at least 4");
  return file;
}

/// The heads of the columns, or the keys: two texts and their judgement.
using Heads = std::array<const char*, 3>;
constexpr std::array<Heads, 2> known_heads{Heads{"sentence_A", "sentence_B", "relatedness_score"},
                                           Heads{"sentence1", "sentence2", "score"}};

/// The columns of texts and judgement in the head of a table; none for another head.
std::optional<std::array<size_t, 3>> columns_of(const std::vector<std::string>& head) {
  for (const auto& heads : known_heads) {
    std::array<size_t, 3> columns{};
    for (size_t i = 0; i < 3; ++i)
      columns[i] = static_cast<size_t>(std::find(head.begin(), head.end(), heads[i]) - head.begin());
    if (*std::max_element(columns.begin(), columns.end()) < head.size()) return columns;
  }
  return {};
}

void add_pair(JudgedFile& file, const std::string& where, JudgedPair pair) {
  require<DataError>(!is_blank(pair.a) && !is_blank(pair.b), where, ": one of the two sentences is empty");
  require<DataError>(std::isfinite(pair.judgement), where, ": the judgement is not a finite number");
  file.pairs.push_back(std::move(pair));
}

std::optional<JudgedFile> read_table(const std::string& path) {
  SuiteText lines(path);
  std::string_view line;
  if (!lines.next(line)) return {};
  const auto columns = columns_of(separated(line, "\t"));
  if (!columns) return {};
  JudgedFile file{.name = suite_name(path)};
  while (lines.next(line)) {
    if (line.empty()) continue;
    const auto cells = separated(line, "\t");
    require<DataError>(*std::max_element(columns->begin(), columns->end()) < cells.size(), lines.where(), ": has ",
                       cells.size(), " columns, fewer than the head of the table");
    const auto& text = cells[(*columns)[2]];
    const auto judgement = number_of(text);
    require<DataError>(judgement.has_value(), lines.where(), ": '", text, "' is not a number");
    add_pair(file, lines.where(), {cells[(*columns)[0]], cells[(*columns)[1]], *judgement});
  }
  return file;
}

std::optional<JudgedFile> read_lines(const SuiteFile& from) {
  const auto* first = from.object();
  const auto& [a, b, score] = known_heads[1];
  if (!first || !first->has(a) || !first->has(b) || !first->has(score)) return {};
  JudgedFile file{.name = suite_name(from.path())};
  SuiteLines lines(from.path());
  while (const auto line = lines.next())
    add_pair(file, line->where, {line->text(a), line->text(b), line->number(score)});
  return file;
}

/// The pairs of a file; none for one of another kind.
std::optional<JudgedFile> read_judged_sentences(const SuiteFile& from) {
  auto file = is_json_lines(from.path()) ? read_lines(from) : read_table(from.path());
  require<DataError>(!file || file->pairs.size() > 3, from.path(),
                     ": has too few pairs for a correlation; give at least 4");
  return file;
}

std::vector<std::string> texts_of(const std::vector<JudgedFile>& files) {
  std::vector<std::string> texts;
  for (const auto& file : files)
    for (const auto& pair : file.pairs) {
      texts.push_back(pair.a);
      texts.push_back(pair.b);
    }
  return texts;
}

/// The correlation of one file; appends its pairs to `items`.
Score judged_score(const JudgedFile& file, const EmbeddedTexts& embedded, SuitePredictions& items) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<double> judgements;
  for (const auto& pair : file.pairs) {
    pairs.emplace_back(pair.a, pair.b);
    judgements.push_back(pair.judgement);
  }
  const auto cosines = embedded.cosines_of(pairs);
  for (size_t i = 0; i < pairs.size(); ++i)
    items.push_back({{"item", concat(file.name, "/", i)},
                     {"a", pairs[i].first},
                     {"b", pairs[i].second},
                     {"judgement", judgements[i]},
                     {"cosine", cosines[i]}});
  auto score = correlation_score(cosines, judgements);
  score.level = SuiteLevel::paradigm;
  score.group = file.name;
  return score;
}

/// Why a file has no correlation, as a sentence.
std::string constant_note(const JudgedFile& file) {
  const auto same = [&](const JudgedPair& pair) { return pair.judgement == file.pairs.front().judgement; };
  return concat("no correlation of '", file.name, "', for its ",
                std::ranges::all_of(file.pairs, same) ? "judgements" : "similarities", " are all equal");
}

/// The mean of the correlations that there are; NaN where there are none.
Score mean_score(const std::vector<Score>& scores) {
  Score mean{.metric = "spearman"};
  double sum = 0, files = 0;
  for (const auto& score : scores) {
    if (!score.is_defined()) continue;
    sum += score.value;
    mean.count += score.count;
    ++files;
  }
  mean.value = files > 0 ? sum / files : std::numeric_limits<double>::quiet_NaN();
  return mean;
}

}  // namespace

bool is_judged_pair(std::string_view line) {
  const auto fields = fields_of(line);
  const auto judgement = fields.size() == 3 ? number_of(fields[2]) : std::nullopt;
  return judgement && std::isfinite(*judgement);
}

std::optional<SimilaritySuite> read_word_similarity(const SuiteFiles& files) {
  const auto is_judged = [](const SuiteFile& file) { return is_judged_pair(file.first()); };
  if (files.texts.empty() || !std::ranges::all_of(files.texts, is_judged)) return {};
  SimilaritySuite suite;
  for (const auto& file : files.texts) suite.files.push_back(read_judged_words(file.path()));
  return suite;
}

std::optional<SimilaritySuite> read_sentence_similarity(const SuiteFiles& files) {
  SimilaritySuite suite;
  for (const auto& from : files.texts.empty() ? files.lines : files.texts) {
    auto file = read_judged_sentences(from);
    if (!file) return {};
    suite.files.push_back(std::move(*file));
  }
  if (suite.files.empty()) return {};
  return suite;
}

std::string reason_unsupported(const RunConfig& config, const SimilaritySuite&, const SuiteOptions& options) {
  return embedding_fault(config, embedding_options(options));
}

void check_fit(const LoadedRun& run, const SimilaritySuite& suite, const SuiteOptions&) {
  check_fit(run, texts_of(suite.files));
}

SuiteResult run_suite(const LoadedRun& run, const SimilaritySuite& suite, const SuiteOptions& options) {
  const auto& files = suite.files;
  const auto embedded = embed_distinct(run, texts_of(files), options);
  SuiteResult result;
  result.scored_by = embedding_words(run.config, options);
  std::vector<Score> scores;
  for (const auto& file : files) {
    scores.push_back(judged_score(file, embedded, result.items));
    result.notes.insert(result.notes.end(), file.notes.begin(), file.notes.end());
    if (std::isnan(scores.back().value))
      result.notes.push_back(constant_note(file) + (files.size() > 1 ? "; the mean is without it" : ""));
  }
  auto total = scores.size() > 1 ? mean_score(scores) : scores.front();
  total.level = SuiteLevel::suite;
  total.group.clear();
  result.scores = {total, isotropy_score(embedded)};
  if (scores.size() > 1) result.scores.insert(result.scores.end(), scores.begin(), scores.end());
  return result;
}

}  // namespace cloze
