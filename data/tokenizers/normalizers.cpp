#include "data/tokenizers/normalizers.h"

#include <utf8proc.h>

#include "data/tokenizers/byte_bpe.h"

namespace cloze {

namespace {

void add_normalizer(const Field& field, const std::string& type, const std::shared_ptr<SearchTime>& time,
                    std::vector<Normalizer>& steps) {
  if (type == "BertNormalizer" || type == "Bert") {
    const bool lowercase = field["lowercase"].flag(true);
    steps.emplace_back(BertNormalizer{.clean_text = field["clean_text"].flag(true),
                                      .split_ideographs = field["handle_chinese_chars"].flag(true),
                                      .strip_accents = field["strip_accents"].flag(lowercase),
                                      .lowercase = lowercase});
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    steps.emplace_back(NormalForm{.compatible = type.size() == 4, .compose = type.back() == 'C'});
  } else if (type == "Nmt") {
    steps.emplace_back(NmtNormalizer{});
  } else if (type == "Lowercase") {
    steps.emplace_back(LowercaseNormalizer{});
  } else if (type == "StripAccents") {
    steps.emplace_back(StripAccentsNormalizer{});
  } else if (type == "Strip") {
    steps.emplace_back(
        StripNormalizer{.left = field["strip_left"].flag(true), .right = field["strip_right"].flag(true)});
  } else if (type == "Replace") {
    steps.emplace_back(ReplaceNormalizer{Pattern(field["pattern"], time), field["content"].text()});
  } else if (type == "Prepend") {
    steps.emplace_back(PrependNormalizer{field["prepend"].text()});
  } else if (type == "Precompiled") {
    const auto map = field["precompiled_charsmap"];
    const std::string where = "tokenizer.json: precompiled_charsmap";
    steps.emplace_back(PrecompiledNormalizer{std::make_shared<Charsmap>(from_base64(map.text(), where), where)});
  } else if (type == "ByteLevel") {
    steps.emplace_back(ByteLevelNormalizer{});
  } else {
    field.refuse(concat("is of the kind '", type, "', a normalizer that Cloze does not support"));
  }
}

/// Applies one rule to each character: `change(rewriter, code, bytes)` must consume exactly that character.
template <class F>
void each_character(NormalizedText& text, const F& change) {
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    for (size_t at = 0; at < part.size();) {
      const size_t begin = at;
      const int32_t c = next_code_point(part, at);
      change(to, c, at - begin);
    }
  });
}

void keep_or_drop(Rewriter& to, bool keep, size_t bytes) {
  if (keep)
    to.keep(bytes);
  else
    to.drop_bytes(bytes);
}

void lowercase(NormalizedText& text) {
  if (text.parts.size() == 1 && is_ascii(text.text)) {
    for (auto& c : text.text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    return;
  }
  each_character(text, [](Rewriter& to, int32_t c, size_t bytes) {
    int32_t second = 0;
    const int32_t low = lower(c, second);
    if (low == c) return to.keep(bytes);
    to.replace(low);
    if (second != 0) to.insert(second);
  });
}

void normal_form(NormalizedText& text, const NormalForm& form) {
  if (is_ascii(text.text)) return;
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    each_normalized(part, form.compatible, form.compose, [&](const Rewritten& change) { to.apply(change); });
  });
}

void apply(const BertNormalizer& bert, NormalizedText& text, bool) {
  if (bert.clean_text)
    each_character(text, [](Rewriter& to, int32_t c, size_t bytes) {
      if (c == 0 || c == 0xFFFD || is_control(c))
        to.drop_bytes(bytes);
      else if (is_white_space(c))
        to.replace(' ');
      else
        to.keep(bytes);
    });
  if (bert.split_ideographs && !is_ascii(text.text))
    each_character(text, [](Rewriter& to, int32_t c, size_t bytes) {
      if (!is_ideograph(c)) return to.keep(bytes);
      to.replace(' ');
      to.insert(c);
      to.insert(' ');
    });
  if (bert.strip_accents && !is_ascii(text.text)) {
    normal_form(text, {});
    each_character(text,
                   [](Rewriter& to, int32_t c, size_t bytes) { keep_or_drop(to, !is_nonspacing_mark(c), bytes); });
  }
  if (bert.lowercase) lowercase(text);
}

void apply(const NormalForm& form, NormalizedText& text, bool) { normal_form(text, form); }

void apply(const NmtNormalizer&, NormalizedText& text, bool) {
  each_character(text, [](Rewriter& to, int32_t c, size_t bytes) {
    if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
      return to.drop_bytes(bytes);
    const bool space = c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == 0x1680 ||
                       (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                       c == 0xFFFD;
    if (space)
      to.replace(' ');
    else
      to.keep(bytes);
  });
}

void apply(const LowercaseNormalizer&, NormalizedText& text, bool) { lowercase(text); }

void apply(const StripAccentsNormalizer&, NormalizedText& text, bool) {
  if (is_ascii(text.text)) return;
  each_character(text, [](Rewriter& to, int32_t c, size_t bytes) { keep_or_drop(to, !is_mark(c), bytes); });
}

void apply(const StripNormalizer& strip, NormalizedText& text, bool) {
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    size_t first = part.size(), after = 0;
    for (size_t at = 0; at < part.size();) {
      const size_t begin = at;
      if (is_white_space(next_code_point(part, at))) continue;
      first = std::min(first, begin);
      after = at;
    }
    if (!strip.left) first = 0;
    if (!strip.right) after = part.size();
    to.drop_bytes(first);
    if (first < after) to.keep(after - first);
    to.drop_bytes(part.size());
  });
}

void apply(const ReplaceNormalizer& step, NormalizedText& text, bool) {
  Rewriter to(text);
  std::vector<PatternSpan> spans;
  to.each_part([&](std::string_view part) {
    spans.clear();
    step.pattern.split(part, spans);
    for (const auto& span : spans) {
      if (!span.matched) {
        to.keep(span.end - span.begin);
        continue;
      }
      to.drop_bytes(span.end - span.begin);
      to.insert(step.content);
    }
  });
}

void apply(const PrependNormalizer& step, NormalizedText& text, bool continues) {
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    const bool inside = continues && to.part().begin == 0;
    if (!inside) to.prepend(step.content);
    to.keep(part.size());
  });
}

/// Replaces `old` characters: the first ones are replaced one by one, further ones are inserted.
void write(Rewriter& to, std::string_view written, size_t old) {
  for (size_t at = 0; at < written.size();) {
    const int32_t c = next_code_point(written, at);
    if (old == 0) {
      to.insert(c);
      continue;
    }
    to.replace(c);
    --old;
  }
  to.drop(old);
}

/// A grapheme cluster below six bytes is looked up as a whole (its shortest matching prefix), others character by
/// character. Source: huggingface/tokenizers, normalizers/precompiled.rs.
void apply(const PrecompiledNormalizer& step, NormalizedText& text, bool) {
  constexpr size_t max_cluster = 5;
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    for (size_t begin = 0; begin < part.size();) {
      size_t end = begin, characters = 1;
      int32_t last = next_code_point(part, end);
      utf8proc_int32_t state = 0;
      while (end < part.size()) {
        size_t next = end;
        const int32_t c = next_code_point(part, next);
        const bool plain = last >= ' ' && last < 127 && c >= ' ' && c < 127;
        if (plain || utf8proc_grapheme_break_stateful(last, c, &state)) break;
        end = next;
        last = c;
        ++characters;
      }
      const auto cluster = part.substr(begin, end - begin);
      begin = end;
      const auto replacement = cluster.size() <= max_cluster ? step.charsmap->find(cluster) : std::nullopt;
      if (replacement) {
        write(to, *replacement, characters);
        continue;
      }
      for (size_t at = 0; at < cluster.size();) {
        const size_t first = at;
        next_code_point(cluster, at);
        const auto written = step.charsmap->find(cluster.substr(first, at - first));
        if (written)
          write(to, *written, 1);
        else
          to.keep(at - first);
      }
    }
  });
}

void apply(const ByteLevelNormalizer&, NormalizedText& text, bool) { write_byte_symbols(text); }

}  // namespace

std::vector<Normalizer> read_normalizers(const Field& field, const std::shared_ptr<SearchTime>& time) {
  return read_steps<Normalizer>(field, "normalizers", [&](const Field& one, const std::string& type, auto& steps) {
    add_normalizer(one, type, time, steps);
  });
}

void normalize(const std::vector<Normalizer>& steps, NormalizedText& text, bool continues) {
  for (const auto& step : steps) std::visit([&](const auto& rule) { apply(rule, text, continues); }, step);
}

void write_byte_symbols(NormalizedText& text) {
  Rewriter to(text);
  to.each_part([&](std::string_view part) {
    for (size_t at = 0; at < part.size();) {
      const size_t begin = at;
      next_code_point(part, at);
      to.replace(byte_code(static_cast<uint8_t>(part[begin])));
      for (size_t i = begin + 1; i < at; ++i) to.insert(byte_code(static_cast<uint8_t>(part[i])));
    }
  });
}

}  // namespace cloze
