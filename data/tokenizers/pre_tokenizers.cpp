#include "data/tokenizers/pre_tokenizers.h"

#include <array>

#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/normalizers.h"

namespace cloze {

namespace {

Behavior behavior_of(const Field& field) {
  struct Named {
    const char* name;
    Behavior behavior;
  };
  static constexpr std::array<Named, 5> all{{{"Removed", Behavior::removed},
                                             {"Isolated", Behavior::isolated},
                                             {"MergedWithPrevious", Behavior::merged_with_previous},
                                             {"MergedWithNext", Behavior::merged_with_next},
                                             {"Contiguous", Behavior::contiguous}}};
  if (field.is_null()) return Behavior::isolated;
  for (const auto& named : all)
    if (field.text() == named.name) return named.behavior;
  field.refuse(
      concat("is '", field.text(), "'; it can be Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous"));
}

/// A text of one character.
int32_t character(const Field& field) {
  size_t at = 0;
  const auto& text = field.text();
  const int32_t c = text.empty() ? -1 : next_code_point(text, at);
  if (c < 0 || at != text.size()) field.refuse(concat("is '", text, "', not one character"));
  return c;
}

MetaspacePreTokenizer metaspace(const Field& field) {
  using Prepend = MetaspacePreTokenizer::Prepend;
  MetaspacePreTokenizer made{.mark = {}, .split = field["split"].flag(true)};
  append_code_point(made.mark, character(field["replacement"]));
  const auto scheme = field["prepend_scheme"];
  const auto name = scheme.text_or(field["add_prefix_space"].flag(true) ? "always" : "never");
  if (name != "always" && name != "first" && name != "never")
    scheme.refuse(concat("is '", name, "'; it can be always, first or never"));
  made.prepend = name == "always" ? Prepend::always : name == "first" ? Prepend::first : Prepend::never;
  return made;
}

void add_pre_tokenizer(const Field& field, const std::string& type, const std::shared_ptr<SearchTime>& time,
                       std::vector<PreTokenizer>& steps) {
  if (type == "BertPreTokenizer") {
    steps.emplace_back(BertPreTokenizer{});
  } else if (type == "Whitespace") {
    steps.emplace_back(WhitespacePreTokenizer{});
  } else if (type == "WhitespaceSplit") {
    steps.emplace_back(WhitespaceSplit{});
  } else if (type == "ByteLevel") {
    steps.emplace_back(ByteLevelPreTokenizer{.add_prefix_space = field["add_prefix_space"].flag(true),
                                             .use_regex = field["use_regex"].flag(true)});
  } else if (type == "Metaspace") {
    steps.emplace_back(metaspace(field));
  } else if (type == "Punctuation") {
    steps.emplace_back(PunctuationPreTokenizer{.behavior = behavior_of(field["behavior"])});
  } else if (type == "Digits") {
    steps.emplace_back(DigitsPreTokenizer{.individual = field["individual_digits"].flag(false)});
  } else if (type == "Split") {
    steps.emplace_back(SplitPreTokenizer{Pattern(field["pattern"], time), behavior_of(field["behavior"]),
                                         field["invert"].flag(false)});
  } else if (type == "CharDelimiterSplit") {
    steps.emplace_back(DelimiterSplit{.delimiter = character(field["delimiter"])});
  } else if (type == "FixedLength") {
    const auto length = field["length"].count(5, 1 << 30);
    if (length == 0) field["length"].refuse("is 0; a part has at least one character");
    steps.emplace_back(FixedLengthPreTokenizer{.length = static_cast<size_t>(length)});
  } else {
    field.refuse(concat("is of the kind '", type, "', a pre-tokenizer that Cloze does not support"));
  }
}

/// Turns spans into parts.
void cut(const std::vector<PatternSpan>& spans, Behavior behavior, std::vector<PatternSpan>& out) {
  const auto merge_next = [&] {
    bool matched_next = false;
    const size_t first = out.size();
    for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
      if (span->matched && !matched_next && out.size() > first)
        out.back().begin = span->begin;
      else
        out.push_back(*span);
      matched_next = span->matched;
    }
    std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
  };
  if (behavior == Behavior::merged_with_next) return merge_next();
  bool matched_before = false;
  const size_t first = out.size();
  for (const auto& span : spans) {
    const bool joins = (behavior == Behavior::contiguous && span.matched == matched_before) ||
                       (behavior == Behavior::merged_with_previous && span.matched && !matched_before);
    matched_before = span.matched;
    if (behavior == Behavior::removed && span.matched) continue;
    if (joins && out.size() > first)
      out.back().end = span.end;
    else
      out.push_back(span);
  }
}

/// Splits each part at the spans of `find(view, spans)`.
template <class F>
void split_parts(NormalizedText& text, Behavior behavior, const F& find) {
  std::vector<Part> parts;
  std::vector<PatternSpan> spans, kept;
  parts.reserve(text.parts.size() * 4);
  for (const auto& part : text.parts) {
    if (part.id >= 0) {
      parts.push_back(part);
      continue;
    }
    spans.clear();
    kept.clear();
    find(text.view(part), spans);
    cut(spans, behavior, kept);
    for (const auto& span : kept)
      if (span.begin < span.end) parts.push_back(text.slice(part, span.begin, span.end));
  }
  text.parts = std::move(parts);
}

template <class Is>
void split_at(NormalizedText& text, Behavior behavior, const Is& is) {
  split_parts(text, behavior,
              [&](std::string_view part, std::vector<PatternSpan>& out) { split_characters(part, is, out); });
}

void apply(const BertPreTokenizer&, NormalizedText& text, bool) {
  split_at(text, Behavior::removed, is_white_space);
  split_at(text, Behavior::isolated, is_punctuation);
}

void apply(const WhitespacePreTokenizer&, NormalizedText& text, bool) {
  enum class Kind { space, word, other };
  const auto kind_at = [](std::string_view part, size_t& at) {
    const int32_t c = next_code_point(part, at);
    if (is_word_character(c)) return Kind::word;
    return is_white_space(c) ? Kind::space : Kind::other;
  };
  split_parts(text, Behavior::removed, [&](std::string_view part, std::vector<PatternSpan>& out) {
    for (size_t at = 0; at < part.size();) {
      const size_t begin = at;
      const Kind kind = kind_at(part, at);
      for (size_t next = at; next < part.size() && kind_at(part, next) == kind;) at = next;
      out.push_back({begin, at, kind == Kind::space});
    }
  });
}

void apply(const WhitespaceSplit&, NormalizedText& text, bool) { split_at(text, Behavior::removed, is_white_space); }

void apply(const ByteLevelPreTokenizer& step, NormalizedText& text, bool continues) {
  if (step.add_prefix_space) {
    Rewriter to(text);
    to.each_part([&](std::string_view part) {
      const bool inside = continues && to.part().begin == 0;
      if (!inside && !part.starts_with(' ')) to.prepend(" ");
      to.keep(part.size());
    });
  }
  if (step.use_regex)
    split_parts(text, Behavior::isolated, [](std::string_view part, std::vector<PatternSpan>& out) {
      each_pretoken(part, [&](std::string_view token) {
        const auto begin = static_cast<size_t>(token.data() - part.data());
        out.push_back({begin, begin + token.size(), true});
      });
    });
  write_byte_symbols(text);
}

void apply(const MetaspacePreTokenizer& step, NormalizedText& text, bool continues) {
  using Prepend = MetaspacePreTokenizer::Prepend;
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    const bool inside = continues && to.part().begin == 0;
    const bool wanted = step.prepend == Prepend::always || (step.prepend == Prepend::first && to.part().source == 0);
    if (wanted && !inside && !part.starts_with(' ') && !part.starts_with(step.mark)) to.prepend(step.mark);
    for (size_t at = 0; at < part.size();) {
      const size_t end = std::min(part.find(' ', at), part.size());
      to.keep(end - at);
      if (end < part.size()) {
        to.drop();
        to.insert(step.mark);
      }
      at = end + 1;
    }
  });
  if (!step.split) return;
  split_parts(text, Behavior::merged_with_next, [&](std::string_view part, std::vector<PatternSpan>& out) {
    size_t last = 0;
    for (size_t at = 0; (at = part.find(step.mark, at)) != std::string_view::npos; at = last) {
      if (last < at) out.push_back({last, at, false});
      last = at + step.mark.size();
      out.push_back({at, last, true});
    }
    if (last < part.size()) out.push_back({last, part.size(), false});
  });
}

void apply(const PunctuationPreTokenizer& step, NormalizedText& text, bool) {
  split_at(text, step.behavior, is_punctuation);
}

void apply(const DigitsPreTokenizer& step, NormalizedText& text, bool) {
  split_at(text, step.individual ? Behavior::isolated : Behavior::contiguous, is_number);
}

void apply(const SplitPreTokenizer& step, NormalizedText& text, bool) {
  split_parts(text, step.behavior, [&](std::string_view part, std::vector<PatternSpan>& out) {
    step.pattern.split(part, out);
    if (step.invert)
      for (auto& span : out) span.matched = !span.matched;
  });
}

void apply(const DelimiterSplit& step, NormalizedText& text, bool) {
  split_at(text, Behavior::removed, [&](int32_t c) { return c == step.delimiter; });
}

void apply(const FixedLengthPreTokenizer& step, NormalizedText& text, bool) {
  split_parts(text, Behavior::isolated, [&](std::string_view part, std::vector<PatternSpan>& out) {
    for (size_t at = 0; at < part.size();) {
      const size_t begin = at;
      for (size_t i = 0; i < step.length && at < part.size(); ++i) next_code_point(part, at);
      out.push_back({begin, at, true});
    }
  });
}

}  // namespace

std::vector<PreTokenizer> read_pre_tokenizers(const Field& field, const std::shared_ptr<SearchTime>& time) {
  return read_steps<PreTokenizer>(field, "pretokenizers", [&](const Field& one, const std::string& type, auto& steps) {
    add_pre_tokenizer(one, type, time, steps);
  });
}

void pre_tokenize(const std::vector<PreTokenizer>& steps, NormalizedText& text, bool continues) {
  for (const auto& step : steps) std::visit([&](const auto& rule) { apply(rule, text, continues); }, step);
}

}  // namespace cloze
