#include "suites/ranking.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/error.h"
#include "core/log.h"
#include "core/spelling.h"
#include "suites/ranking_figures.h"
#include "suites/ranking_forms.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The JSON lines of a folder by name, or the file itself; empty for other files.
std::vector<std::string> files_of(const std::string& path) {
  if (!fs::is_directory(path))
    return is_json_lines(path) && fs::exists(path) ? std::vector{path} : std::vector<std::string>{};
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (is_json_lines(entry.path().filename().string()) && entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// Reads the items of one file, whose lines are of `form`.
void read_file(const std::string& file, const RankingForm& form, std::map<std::string, std::string>& places,
               std::vector<RankingItem>& items) {
  SuiteLines lines(file);
  RankingSource source{.name = suite_name(file)};
  bool is_empty = true;
  while (const auto line = lines.next()) {
    is_empty = false;
    const auto* found = form_of(*line);
    require<DataError>(found != nullptr, line->where, ": has no `", form.signature, "`; the suite is one of ", form.name,
                       ", whose lines have the keys ", form.keys);
    require<DataError>(found == &form, line->where, ": is of the form ", found->name, ", the lines before it are of ",
                       form.name, "; make it a suite of its own");
    const auto before = items.size();
    form.read(*line, source, items);
    for (size_t i = before; i < items.size(); ++i) {
      const auto [place, is_new] = places.emplace(items[i].name, line->where);
      require<DataError>(is_new, line->where, ": the item '", shortened(items[i].name), "' is there twice, first in ",
                         place->second, "; remove one, or give it another id");
    }
  }
  require<DataError>(!is_empty, file, ": is empty; remove it, or get it again");
}

/// The scores of all candidates. A fault of one passage is told with the name of its item.
std::vector<PassageScore> scores_of(const Scorer& scorer, const RankingSuite& suite) {
  std::vector<Passage> passages;
  for (const auto& item : suite.items)
    passages.insert(passages.end(), item.candidates.begin(), item.candidates.end());
  try {
    return scorer.score(passages);
  } catch (const DataError& e) {
    const std::string message = e.what();
    for (const auto& item : suite.items)
      for (const auto& candidate : item.candidates)
        if (message.find("'" + shortened(candidate.text()) + "'") != std::string::npos)
          fail<DataError>("item ", item.name, ": ", message);
    throw;
  }
}

/// What is said of items with tokens that stand for unknown text; empty for none.
std::string unknown_note(const LoadedRun& run, const RankingSuite& suite, const std::vector<PassageScore>& scores) {
  const auto unknown = run.tokenizer.special().unk;
  const auto is_unknown = [&](const TokenScore& token) { return token.id == unknown; };
  uint64_t count = 0;
  std::string example;
  size_t at = 0;
  for (const auto& item : suite.items) {
    bool has_unknown = false;
    for (const auto& candidate : item.candidates) {
      const auto& tokens = scores[at++].tokens;
      const auto found = std::find_if(tokens.begin(), tokens.end(), is_unknown);
      if (found == tokens.end()) continue;
      if (example.empty()) example = candidate.text().substr(found->begin, found->end - found->begin);
      has_unknown = true;
    }
    count += has_unknown;
  }
  if (unknown < 0 || count == 0) return "";
  return words(thousands(count), " of ", thousands(suite.items.size()),
               " items have text that the tokenizer does not know, such as '", shortened(example),
               "'; it is scored as ", run.tokenizer.piece(unknown));
}

}  // namespace

std::optional<RankingSuite> read_ranking(const std::string& path) {
  const auto files = files_of(path);
  const RankingForm* form = nullptr;
  if (!files.empty()) {
    const auto first = first_line(files.front());
    form = first ? form_of(*first) : nullptr;
  }
  if (form == nullptr) return std::nullopt;
  RankingSuite suite{.form = form->name};
  std::map<std::string, std::string> places;  // of items by name
  for (const auto& file : files) read_file(file, *form, places, suite.items);
  return suite;
}

void keep_first(RankingSuite& suite, int64_t items) {
  std::map<std::pair<std::string, std::string>, int64_t> seen;  // by paradigm and metric
  std::erase_if(suite.items, [&](const RankingItem& item) { return seen[{item.paradigm, item.metric}]++ >= items; });
}

void keep_named(RankingSuite& suite, const std::string& table) {
  LineReader lines(table);
  std::string_view line;
  require<DataError>(lines.next(line) && line == "UID\tpairID", table,
                     ": does not begin with the columns UID and pairID; --keep reads a table of the items to keep");
  std::set<std::string> known, kept;
  for (const auto& item : suite.items) known.insert(item.name);
  while (lines.next(line)) {
    auto name = std::string(line);
    const auto tab = name.find('\t');
    require<DataError>(tab != std::string::npos, lines.where(), ": has no tab between UID and pairID");
    name[tab] = '/';
    require<DataError>(known.contains(name), lines.where(), ": the suite has no item '", shortened(name),
                       "'; the table belongs to another suite");
    kept.insert(name);
  }
  require<DataError>(!kept.empty(), table, ": names no item; --keep needs one at least");
  std::erase_if(suite.items, [&](const RankingItem& item) { return !kept.contains(item.name); });
}

std::string fault_of(const RunConfig& config, const RankingSuite&, const SuiteOptions& options) {
  try {
    return scoring_fault(config, options.scoring.form ? *options.scoring.form : default_form(config));
  } catch (const ConfigError& e) {  // no form scores it
    return e.what();
  }
}

SuiteResult run_suite(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options) {
  const Scorer scorer(run, options.scoring);
  const auto scores = scores_of(scorer, suite);
  const auto ranked = rank_items(suite.items, scores, options.normalisation);
  SuiteResult result{.suite{}, .scored_by = scorer.description(), .figures = ranking_figures(suite.items, ranked), .items{}};
  for (size_t i = 0; i < ranked.size(); ++i) result.items.push_back(to_json(suite.items[i], ranked[i]));
  if (const auto note = unknown_note(run, suite, scores); !note.empty()) result.notes.push_back(note);
  return result;
}

}  // namespace cloze
