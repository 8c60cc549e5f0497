#include "data/tokenizers/pattern.h"

#include <oniguruma.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "core/interrupt.h"
#include "core/spelling.h"

namespace cloze {

namespace {

const OnigUChar* bytes(std::string_view text) { return reinterpret_cast<const OnigUChar*>(text.data()); }

std::string message(int code, OnigErrorInfo* info) {
  OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int length = onig_error_code_to_str(text, code, info);
  return {reinterpret_cast<const char*>(text), static_cast<size_t>(std::max(length, 0))};
}

/// The offsets of one match; each thread has its own.
struct Region {
  Region() : of(onig_region_new()) {}
  ~Region() { onig_region_free(of, 1); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  OnigRegion* of;
};

constexpr size_t max_source = 10'000;              ///< bytes of a pattern; those of published tokenizers have 500
constexpr unsigned long max_retries = 10'000'000;  ///< of one search: a part of a second
constexpr unsigned max_depth = 200;                ///< of groups and repeats in each other, each a part of the stack
constexpr unsigned max_stack = 1 << 24;            ///< entries of one match
constexpr int64_t time_at_least = 2'000'000'000, time_of_byte = 10'000;  ///< [ns], a hundred times what is usual

/// CPU time of this thread [ns].
int64_t cpu_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// What an expression repeats or calls that it matched before, or runs beside the match, for which no bound of its cost
/// is known; empty: nothing. In a class of characters such parts are texts, but where classes are is not looked for:
/// comments and escapes can hide that.
std::string_view unbounded_part(std::string_view source) {
  for (size_t at = 0; at + 1 < source.size(); ++at) {
    const auto rest = source.substr(at);
    const char next = rest[1];
    const bool refers = rest[0] == '\\' && ((next >= '1' && next <= '9') || next == 'k' || next == 'g');
    const bool calls_out = rest.starts_with("(*") && rest.size() > 2 && rest[2] >= 'A' && rest[2] <= 'Z';
    if (refers || calls_out) return rest.substr(0, 2);
    for (const std::string_view part : {"(?(", "(?~", "(?{", "(?@"})
      if (rest.starts_with(part)) return part;
    at += rest[0] == '\\';
  }
  return {};
}

}  // namespace

struct Pattern::Compiled {
  std::string source, literal;
  regex_t* regex = nullptr;  // null for a literal
  bool steps = false;        // try it at each character in turn
  std::string sentence;      // of an end by the alarm
  std::shared_ptr<SearchTime> time;
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() {
    if (regex) onig_free(regex);
  }
};

int64_t SearchTime::allowed() const { return time_at_least + time_of_byte * read_; }

Pattern::Pattern(const Field& field, std::shared_ptr<SearchTime> time) {
  const auto made = std::make_shared<Compiled>();
  const bool is_literal = !field["String"].is_null();
  const auto source = field[is_literal ? "String" : "Regex"];
  if (source.is_null()) field.refuse("has neither a String nor a Regex");
  made->source = source.text();
  made->time = std::move(time);
  made->sentence = concat("\ncloze: error: the tokenizer's expression '", shortened(made->source),
                          "' takes more time for a text than any text needs; correct the pattern of tokenizer.json\n");
  if (made->source.size() > max_source)
    source.refuse(concat("has ", made->source.size(), " bytes, more than ", max_source, "; write a shorter pattern"));
  if (is_literal && !made->source.empty()) {
    made->literal = made->source;
  } else {
    const auto unbounded = unbounded_part(made->source);
    if (!unbounded.empty())
      source.refuse(concat("is ", source.shown(), ", which has '", unbounded,
                           "': back-references, calls of groups and conditions cost more than any bound, and no "
                           "published tokenizer has them; write it without"));
    static std::mutex compiling;
    const std::lock_guard lock(compiling);
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, 1);
    onig_set_parse_depth_limit(max_depth);
    onig_set_retry_limit_in_match(max_retries);
    onig_set_retry_limit_in_search(max_retries);
    onig_set_match_stack_limit_size(max_stack);
    OnigErrorInfo info;
    const auto text = bytes(made->source);
    const int code = onig_new(&made->regex, text, text + made->source.size(), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                              ONIG_SYNTAX_DEFAULT, &info);
    if (code != ONIG_NORMAL)
      source.refuse(
          concat("is '", made->source, "', which is not a valid Oniguruma expression: ", message(code, &info)));
  }
  // Oniguruma 6.9.8 searches an expression anchored at the end only there, where its lookbehind sees no text.
  const auto has = [&](const char* part) { return made->source.find(part) != std::string::npos; };
  made->steps = !is_literal && (has("(?<=") || has("(?<!")) && (has("\\z") || has("\\Z"));
  compiled_ = made;
}

namespace {

/// Ends the process where the searches of this thread go on beyond their CPU time.
class SearchAlarm {
 public:
  SearchAlarm() {
    struct sigaction action{};
    action.sa_sigaction = end;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGVTALRM, &action, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = gettid();
    event.sigev_signo = SIGVTALRM;
    event.sigev_value.sival_ptr = this;
    exists_ = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  }
  ~SearchAlarm() {
    if (exists_) timer_delete(timer_);
  }
  SearchAlarm(const SearchAlarm&) = delete;
  SearchAlarm& operator=(const SearchAlarm&) = delete;
  void set(int64_t nanoseconds, const std::string& sentence) {
    sentence_ = sentence.c_str();
    start(nanoseconds);
  }
  void clear() {
    start(0);
    sentence_ = nullptr;
  }

 private:
  void start(int64_t nanoseconds) const {
    const itimerspec time{.it_interval = {},
                          .it_value = {.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000}};
    if (exists_) timer_settime(timer_, 0, &time, nullptr);
  }

  static void end(int, siginfo_t* info, void*) {
    const auto* alarm = info->si_code == SI_TIMER ? static_cast<const SearchAlarm*>(info->si_value.sival_ptr) : nullptr;
    const char* sentence = alarm != nullptr ? alarm->sentence_.load() : nullptr;
    if (sentence == nullptr) return;
    remove_doomed();
    if (!interrupts().on_terminal) ++sentence;  // its line break, which ends a progress line
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, sentence, std::strlen(sentence));
    _exit(1);
  }

  timer_t timer_{};
  bool exists_ = false;
  std::atomic<const char*> sentence_{nullptr};  ///< null: no search
};

thread_local SearchAlarm search_alarm;

/// The searches in a text, held to the time that all expressions of the tokenizer have.
class TimedSearches {
 public:
  explicit TimedSearches(const Pattern::Compiled& pattern) : pattern_(pattern) {
    constexpr int64_t margin = 1'000'000'000;  // in which a search that ends is refused by an exception
    search_alarm.set(std::max<int64_t>(pattern.time->left(), 0) + margin, pattern.sentence);
  }
  ~TimedSearches() {
    search_alarm.clear();
    pattern_.time->spend(cpu_time() - began_);
  }
  TimedSearches(const TimedSearches&) = delete;
  TimedSearches& operator=(const TimedSearches&) = delete;
  /// Counts a search. Throws DataError beyond the time.
  void count() {
    constexpr int64_t between = 8;  // searches for each look at the clock
    if (searches_++ % between != 0) return;
    const auto& time = *pattern_.time;
    require<DataError>(cpu_time() - began_ <= time.left(), "the tokenizer's expression '", pattern_.source,
                       "' takes more than the ", time.allowed() / 1'000'000'000, " s that all expressions have for ",
                       time.bytes_read(), " bytes of text; correct the pattern of tokenizer.json");
  }

 private:
  const Pattern::Compiled& pattern_;
  int64_t began_ = cpu_time(), searches_ = 0;
};

/// The start of the first match from `at` on, or an error code of Oniguruma. A search may read the rest of the text at
/// each character, so that in a long text the expression is tried at each in turn, with a look at the clock.
int search(const Pattern::Compiled& c, std::string_view text, size_t at, OnigRegion* region, TimedSearches& searches) {
  constexpr size_t long_text = size_t{1} << 16;
  const auto begin = bytes(text), end = begin + text.size();
  if (!c.steps && text.size() <= long_text) {
    searches.count();
    return onig_search(c.regex, begin, end, begin + at, end, region, ONIG_OPTION_NONE);
  }
  for (;; next_code_point(text, at)) {
    searches.count();
    const int length = onig_match(c.regex, begin, end, begin + at, region, ONIG_OPTION_NONE);
    if (length >= 0) return static_cast<int>(at);
    if (length != ONIG_MISMATCH || at >= text.size()) return length;
  }
}

}  // namespace

void Pattern::split(std::string_view text, std::vector<PatternSpan>& out) const {
  size_t last = 0;
  const auto add = [&](size_t begin, size_t end) {
    if (last < begin) out.push_back({last, begin, false});
    out.push_back({begin, end, true});
    last = end;
  };
  const auto& c = *compiled_;
  if (!c.regex) {
    for (size_t at = 0; (at = text.find(c.literal, at)) != std::string_view::npos; at = last)
      add(at, at + c.literal.size());
  } else {
    thread_local Region region;
    TimedSearches searches(c);
    bool matched_before = false;
    for (size_t at = 0; !text.empty() && at <= text.size();) {
      const int status = search(c, text, at, region.of, searches);
      if (status == ONIG_MISMATCH) break;
      require<DataError>(status >= 0, "the tokenizer's expression '", c.source, "' gives up on a text of ", text.size(),
                         " bytes (", message(status, nullptr), "); correct the pattern of tokenizer.json");
      const auto first = static_cast<size_t>(region.of->beg[0]), after = static_cast<size_t>(region.of->end[0]);
      if (first == after && matched_before && after == last) {  // an empty match at the end of the previous one
        if (at >= text.size()) break;
        next_code_point(text, at);
        continue;
      }
      add(first, after);
      at = after;
      matched_before = true;
    }
  }
  if (last < text.size()) out.push_back({last, text.size(), false});
}

}  // namespace cloze
