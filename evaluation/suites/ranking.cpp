#include "evaluation/suites/ranking.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "core/error.h"
#include "core/log.h"
#include "core/spelling.h"
#include "evaluation/suites/babylm.h"
#include "evaluation/suites/ranking_scores.h"
#include "evaluation/suites/ranking_forms.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

bool has_equal_candidates(const RankingItem& item) {
  const auto& all = item.candidates;
  for (size_t i = 0; i < all.size(); ++i)
    if (std::find(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), all[i]) !=
        all.begin() + static_cast<std::ptrdiff_t>(i))
      return true;
  return false;
}

/// Reads the files of a suite of one form.
class Reader {
 public:
  /// `whole`: the paradigm of files that are splits of one set; empty: each file is a paradigm.
  Reader(const RankingForm& form, std::string whole) : form_(form), whole_(std::move(whole)) {
    suite_.form = form.name;
    suite_.is_official = form.is_official();
  }

  /// Reads a file of several, or leaves it out with a note: one whose first line is of no form, or has no answer.
  void read_one_of(const SuiteFile& file) {
    const auto* first = file.object();
    const auto name = fs::path(file.path()).filename().string();
    if (first && form_of(*first) == nullptr)
      suite_.notes.push_back(concat(name, " is left out, for its lines are no ", form_.name));
    else if (first && form_of(*first) == &form_ && form_.lacks_answer(*first))
      suite_.notes.push_back(concat(name, " is left out, for its items have no `", form_.answer, "`"));
    else
      read(file.path(), suite_name(file.path()));
  }

  /// `name`: the paradigm of lines that name none.
  void read(const std::string& file, const std::string& name) {
    SuiteLines lines(file);
    RankingSource source{.name = name};
    bool is_empty = true;
    while (const auto line = lines.next()) {
      is_empty = false;
      const auto* form = form_.is_declared() ? &form_ : form_of(*line);
      require<DataError>(form != nullptr, line->where, ": has no `", form_.signature, "`; the suite is one of ",
                         form_.name, ", whose lines have the keys ", form_.keys);
      require<DataError>(form == &form_, line->where, ": is of the form ", form->name, ", the lines before it are of ",
                         form_.name, "; make it a suite of its own");
      const auto before = suite_.items.size();
      form_.read(*line, source, suite_.items);
      if (!whole_.empty() && !line->has("paradigm")) join(suite_.items.back(), source.name);
      for (size_t i = before; i < suite_.items.size(); ++i) note(suite_.items[i], line->where);
    }
    require<DataError>(!is_empty, file, ": is empty; remove it, or get it again");
  }

  bool is_empty() const { return suite_.items.empty(); }

  RankingSuite suite() && { return std::move(suite_); }

 private:
  /// Makes an item of a split one of the whole set: splits are no clusters, since their items are not alike.
  void join(RankingItem& item, const std::string& split) const {
    item.paradigm = whole_;
    if (item.phenomenon.empty()) item.phenomenon = split;
  }

  void note(const RankingItem& item, const std::string& where) {
    const auto [place, is_new] = places_.emplace(item.name, where);
    require<DataError>(is_new, where, ": the item '", shortened(item.name), "' is there twice, first in ",
                       place->second, "; remove one, or give it another id");
    if (has_equal_candidates(item)) suite_.equal_candidates.emplace(item.name, where);
  }

  const RankingForm& form_;
  std::string whole_;
  RankingSuite suite_;
  std::map<std::string, std::string> places_;  ///< of items, by name
};

std::vector<Passage> passages_of(std::span<const RankingItem> items) {
  std::vector<Passage> passages;
  for (const auto& item : items) passages.insert(passages.end(), item.candidates.begin(), item.candidates.end());
  return passages;
}

/// What `f` says of all candidates. A fault of one passage is reported with the name of its item.
template <class F>
auto with_names(std::span<const RankingItem> items, const F& f) {
  try {
    return f(passages_of(items));
  } catch (const PassageError& e) {
    size_t before = 0;
    const auto has_passage = [&](const RankingItem& item) { return (before += item.candidates.size()) > e.passage; };
    fail<DataError>("item ", std::ranges::find_if(items, has_passage)->name, ": ", e.what());
  }
}

/// Items with tokens that stand for unknown text.
class UnknownText {
 public:
  explicit UnknownText(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  /// `scores` are those of all candidates, in the items' order.
  void add(std::span<const RankingItem> items, std::span<const PassageScore> scores) {
    const auto unknown = tokenizer_.special().unk;
    const auto is_unknown = [&](const TokenScore& token) { return token.id == unknown; };
    size_t at = 0;
    for (const auto& item : items) {
      bool has_unknown = false;
      for (const auto& candidate : item.candidates) {
        const auto& tokens = scores[at++].tokens;
        const auto token = std::find_if(tokens.begin(), tokens.end(), is_unknown);
        if (unknown < 0 || token == tokens.end()) continue;
        if (example_.empty()) example_ = candidate.text().substr(token->begin, token->end - token->begin);
        has_unknown = true;
      }
      count_ += has_unknown;
    }
  }

  /// What is said of them; empty for none. `all`: items of the suite.
  std::string note(size_t all) const {
    if (count_ == 0) return "";
    return concat(thousands(count_), " of ", thousands(all),
                  " items have text that the tokenizer does not know, such as '", shortened(example_),
                  "'; it is scored as ", tokenizer_.piece(tokenizer_.special().unk));
  }

 private:
  const Tokenizer& tokenizer_;
  uint64_t count_ = 0;
  std::string example_;
};

/// Whether the published BabyLM program has such items, and scores this run by what the Scorer adds up.
bool has_official_sums(const LoadedRun& run, const RankingSuite& suite, ScoringForm form) {
  const auto backend = official_backend(run);
  return suite.is_official && backend && adds_up_scores(*backend, form);
}

/// Options whose progress is that of a part, of which `before` passages of `all` are done.
ScoringOptions counting_on(ScoringOptions options, const int64_t& before, int64_t all) {
  if (options.progress)
    options.progress = [progress = options.progress, &before, all](int64_t done, int64_t) {
      progress(before + done, all);
    };
  return options;
}

}  // namespace

std::optional<RankingSuite> read_ranking(const SuiteFiles& files) {
  const RankingForm* form = nullptr;
  const SuiteFile* known = nullptr;
  for (const auto& file : files.lines) {
    if (file.object() == nullptr) continue;
    form = form_of(*file.object());
    known = &file;
    if (form != nullptr) break;
  }
  if (form == nullptr) return std::nullopt;
  const bool is_one = files.lines.size() == 1;
  Reader reader(*form, !is_one && form->has_splits() ? suite_name(files.path) : "");
  for (const auto& file : files.lines)
    is_one ? reader.read(file.path(), suite_name(file.path())) : reader.read_one_of(file);
  if (reader.is_empty()) reader.read(known->path(), suite_name(known->path()));  // which says what all of them lack
  return std::move(reader).suite();
}

RankingSuite read_lines_of(const RankingForm& form, const std::string& file, const std::string& name) {
  Reader reader(form, "");
  reader.read(file, name);
  return std::move(reader).suite();
}

std::vector<std::string> notes_of(const RankingSuite& suite) {
  auto notes = suite.notes;
  uint64_t count = 0;
  std::string first;
  for (const auto& item : suite.items) {
    const auto found = suite.equal_candidates.find(item.name);
    if (found != suite.equal_candidates.end() && count++ == 0) first = concat(item.name, " (", found->second, ")");
  }
  if (count > 0)
    notes.push_back(concat(thousands(count), " of ", thousands(suite.items.size()),
                           " items have candidates that are the same, first ", first, "; they count as ties"));
  return notes;
}

void keep_first(RankingSuite& suite, int64_t items) {
  std::map<std::tuple<std::string, std::string, std::string>, int64_t> seen;  // items of each, splits apart
  std::erase_if(suite.items, [&](const RankingItem& item) {
    return seen[{item.paradigm, item.phenomenon, item.metric}]++ >= items;
  });
}

void keep_named(RankingSuite& suite, const std::string& table) {
  LineReader lines(table);
  std::string_view line;
  require<DataError>(lines.next(line) && line == "UID\tpairID", table,
                     ": does not begin with the columns UID and pairID and a tab between them; --keep reads a table of "
                     "the items to keep");
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

std::string reason_unsupported(const RunConfig& config, const RankingSuite&, const SuiteOptions& options) {
  return scoring_fault(config, options.scoring.form);
}

void check_fit(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options) {
  const Scorer scorer(run, options.scoring);
  with_names(suite.items, [&](const auto& passages) { scorer.check_fit(passages); });
}

SuiteResult run_suite(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options) {
  constexpr size_t items_at_once = 8192;  // the log-probabilities of all tokens take more memory than the answers
  int64_t before = 0, all = 0;
  for (const auto& item : suite.items) all += static_cast<int64_t>(item.candidates.size());
  const Scorer scorer(run, counting_on(options.scoring, before, all));
  const bool has_official = has_official_sums(run, suite, scorer.form());
  UnknownText unknown(run.tokenizer);
  std::vector<RankedItem> ranked;
  for (std::span<const RankingItem> left = suite.items; !left.empty();) {
    const auto part = left.first(std::min(left.size(), items_at_once));
    left = left.subspan(part.size());
    const auto scores = with_names(part, [&](const auto& passages) { return scorer.score(passages); });
    auto of_part = rank_items(part, scores, options.normalisation);
    if (has_official) add_official_sums(part, scores, of_part);
    std::ranges::move(of_part, std::back_inserter(ranked));
    unknown.add(part, scores);
    before += static_cast<int64_t>(scores.size());
  }
  SuiteResult result{
      .suite{}, .scored_by = scorer.description(), .scores = ranking_scores(suite.items, ranked), .items{}};
  for (size_t i = 0; i < ranked.size(); ++i) result.items.push_back(to_json(suite.items[i], ranked[i]));
  result.items_hash = fingerprint_of(suite.items);
  result.proportions = proportions_of(suite.items, ranked);
  result.notes = notes_of(suite);
  if (const auto note = unknown.note(suite.items.size()); !note.empty()) result.notes.push_back(note);
  return result;
}

}  // namespace cloze
