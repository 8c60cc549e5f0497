#include "evaluation/text_metrics.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "core/text.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

using Sequence = std::vector<uint32_t>;
using WordIds = std::unordered_map<std::string_view, uint32_t>;

/// Counts of n-grams of one order.
struct Overlap {
  uint64_t hypothesis = 0, reference = 0, both = 0;
};

size_t checked_size(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  if (hypotheses.size() == references.size()) return hypotheses.size();
  throw std::invalid_argument(std::to_string(hypotheses.size()) + " hypotheses cannot be compared with " +
                              std::to_string(references.size()) + " references; give one reference each.");
}

/// Decodes the code point at offset `at` and advances `at`. An invalid byte becomes a lone surrogate, which does not
/// occur in valid text, so that different bytes stay different.
int32_t decode(std::string_view text, size_t& at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const auto code = next_code_point(text, at);
  return code < 0 ? 0xDC00 + byte : code;
}

/// White space as defined by Python, which the reference implementations split at: it includes the separators U+001C
/// to U+001F.
bool is_space(int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  const auto& p = *utf8proc_get_property(c);
  return p.category == UTF8PROC_CATEGORY_ZS || p.bidi_class == UTF8PROC_BIDI_CLASS_WS ||
         p.bidi_class == UTF8PROC_BIDI_CLASS_B || p.bidi_class == UTF8PROC_BIDI_CLASS_S;
}

std::string_view trimmed(std::string_view text) {
  size_t begin = text.size(), end = text.size();
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (is_space(decode(text, at))) continue;
    begin = std::min(begin, start);
    end = at;
  }
  return text.substr(begin, end - begin);
}

/// Ids of the words between white space, equal for equal words; `ids` keeps views of the text.
Sequence word_ids(std::string_view text, WordIds& ids) {
  Sequence result;
  size_t begin = 0;
  const auto end_word = [&](size_t end) {
    if (begin < end)
      result.push_back(
          ids.try_emplace(text.substr(begin, end - begin), static_cast<uint32_t>(ids.size())).first->second);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (!is_space(decode(text, at))) continue;
    end_word(start);
    begin = at;
  }
  end_word(text.size());
  return result;
}

Sequence characters(std::string_view text) {
  Sequence result;
  for (size_t at = 0; at < text.size();)
    if (const auto c = decode(text, at); !is_space(c)) result.push_back(static_cast<uint32_t>(c));
  return result;
}

/// Overlaps of order 1 to N; matches of an n-gram are clipped to its count in the reference.
template <size_t N>
std::array<Overlap, N> overlaps(const Sequence& hypothesis, const Sequence& reference) {
  std::array<Overlap, N> result;
  Sequence in_hypothesis(hypothesis.size()),
      in_reference(reference.size());  // id of the n-gram that starts at each position
  std::vector<uint32_t> left;
  std::unordered_map<uint64_t, uint32_t> ids;
  for (size_t n = 0; n < N; ++n) {
    ids.clear();
    // An n-gram is the pair of its prefix, which has an id already, and its last token: exact, with one look-up for any
    // n.
    const auto extend = [&](Sequence& grams, const Sequence& tokens) {
      grams.resize(tokens.size() - std::min(n, tokens.size()));
      for (size_t i = 0; i < grams.size(); ++i)
        grams[i] =
            ids.try_emplace(uint64_t{grams[i]} << 32 | tokens[i + n], static_cast<uint32_t>(ids.size())).first->second;
    };
    extend(in_reference, reference);
    extend(in_hypothesis, hypothesis);
    result[n].hypothesis = in_hypothesis.size();
    result[n].reference = in_reference.size();
    left.assign(ids.size(), 0);
    for (const auto gram : in_reference) ++left[gram];
    for (const auto gram : in_hypothesis)
      if (left[gram] > 0) --left[gram], ++result[n].both;
  }
  return result;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_point(char c) { return c == '.' || c == ','; }

/// ASCII symbols that mteval-v13a always separates: neither letter, digit, point, comma, dash nor apostrophe.
bool is_symbol(char c) {
  return c > ' ' && c < 0x7F && c != '\'' && c != '-' && !is_point(c) && !is_digit(c) &&
         !((c | 32) >= 'a' && (c | 32) <= 'z');
}

/// The text with spaces around the first (`around_first`) or second of each two adjacent characters that match. As with
/// regular expressions, matches do not overlap: of four points in a row the rules below match two pairs.
template <class First, class Second>
std::string spaced(const std::string& text, First first, Second second, bool around_first) {
  std::string out;
  out.reserve(text.size() * 3 / 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      out += text[i];
      continue;
    }
    if (around_first) out += ' ';
    (out += text[i]) += ' ';
    out += text[++i];
    if (!around_first) out += ' ';
  }
  return out;
}

/// The text with white space between the tokens of mteval-v13a (Post 2018). Works on bytes, since all of its patterns
/// are ASCII.
std::string spaced_13a(std::string_view line) {
  std::string text(trimmed(line));
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "&quot;", "\"");  // in this order: &amp;lt; becomes <
  replace_all(text, "&amp;", "&");
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  std::string separated = " ";  // the rules below need a neighbour on both sides
  for (const char c : text) {
    if (is_symbol(c))
      ((separated += ' ') += c) += ' ';
    else
      separated += c;
  }
  separated += ' ';
  const auto not_digit = [](char c) { return !is_digit(c); };
  separated = spaced(separated, not_digit, is_point, false);
  separated = spaced(separated, is_point, not_digit, true);
  return spaced(separated, is_digit, [](char c) { return c == '-'; }, false);
}

/// The lower-cased text with spaces for all characters but a-z and 0-9. Only two non-ASCII letters have an ASCII lower
/// case: the Kelvin sign is a k, and I with a dot above is an i with a combining dot, which ends the word.
std::string rouge_text(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto c = decode(text, at);
    if (c >= 'A' && c <= 'Z')
      out += static_cast<char>(c + 32);
    else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      out += static_cast<char>(c);
    else
      out += c == 0x212A ? "k" : c == 0x130 ? "i " : " ";
  }
  return out;
}

uint64_t longest_common_subsequence(const Sequence& a, const Sequence& b) {
  std::vector<uint64_t> row(b.size() + 1);
  for (const auto token : a) {
    uint64_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const auto above = row[j];
      row[j] = token == b[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Weighted harmonic mean that counts recall `beta` times as much as precision (Lin 2004, equation 4; Popović 2015,
/// equation 1).
double f_measure(double precision, double recall, double beta) {
  const double weight = beta * beta;
  return precision + recall > 0 ? (1 + weight) * precision * recall / (weight * precision + recall) : 0;
}

}  // namespace

Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  Bleu result;
  std::array<Overlap, 4> sums;
  const auto size = checked_size(hypotheses, references);
  for (size_t i = 0; i < size; ++i) {
    const auto hypothesis = spaced_13a(hypotheses[i]), reference = spaced_13a(references[i]);
    WordIds ids;
    const auto found = overlaps<4>(word_ids(hypothesis, ids), word_ids(reference, ids));
    for (size_t n = 0; n < sums.size(); ++n) {
      sums[n].hypothesis += found[n].hypothesis;
      sums[n].reference += found[n].reference;
      sums[n].both += found[n].both;
    }
  }
  result.hypothesis_length = sums[0].hypothesis;
  result.reference_length = sums[0].reference;
  const auto hypothesis_length = static_cast<double>(sums[0].hypothesis),
             reference_length = static_cast<double>(sums[0].reference);
  if (hypothesis_length < reference_length)
    result.brevity_penalty = hypothesis_length == 0 ? 0 : std::exp(1 - reference_length / hypothesis_length);
  if (sums[0].both == 0) return result;
  double smoothing = 1, log_sum = 0;
  for (size_t n = 0; n < sums.size(); ++n) {
    if (sums[n].hypothesis == 0) return result;  // no hypothesis is that long: the geometric mean is 0
    // The first order without a match counts as half a match, the next as a quarter (Chen and Cherry 2014, smoothing
    // 3).
    const double both = sums[n].both > 0 ? static_cast<double>(sums[n].both) : 1 / (smoothing *= 2);
    result.precisions[n] = 100 * both / static_cast<double>(sums[n].hypothesis);
    log_sum += std::log(result.precisions[n]);
  }
  result.score = result.brevity_penalty * std::exp(log_sum / 4);
  return result;
}

double chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  std::array<Overlap, 6> sums;
  const auto size = checked_size(hypotheses, references);
  for (size_t i = 0; i < size; ++i) {
    const auto found = overlaps<6>(characters(hypotheses[i]), characters(references[i]));
    for (size_t n = 0; n < sums.size(); ++n) {
      if (found[n].reference > 0)
        sums[n].hypothesis += found[n].hypothesis;  // n-grams longer than the reference do not count as wrong
      sums[n].reference += found[n].reference;
      sums[n].both += found[n].both;
    }
  }
  double precision = 0, recall = 0, orders = 0;
  for (const auto& s : sums) {
    if (s.hypothesis == 0 || s.reference == 0) continue;
    precision += ratio(s.both, s.hypothesis);
    recall += ratio(s.both, s.reference);
    ++orders;
  }
  return orders > 0 ? 100 * f_measure(precision / orders, recall / orders, 2) : 0;
}

Rouge rouge(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  Rouge result;
  const auto size = checked_size(hypotheses, references);
  for (size_t i = 0; i < size; ++i) {
    const auto hypothesis_text = rouge_text(hypotheses[i]), reference_text = rouge_text(references[i]);
    WordIds ids;
    const auto hypothesis = word_ids(hypothesis_text, ids), reference = word_ids(reference_text, ids);
    const auto found = overlaps<2>(hypothesis, reference);
    const auto f1 = [](const Overlap& o) {
      return f_measure(ratio(o.both, o.hypothesis), ratio(o.both, o.reference), 1);
    };
    result.rouge1 += f1(found[0]);
    result.rouge2 += f1(found[1]);
    result.rougeL += f1({hypothesis.size(), reference.size(), longest_common_subsequence(hypothesis, reference)});
  }
  for (auto* sum : {&result.rouge1, &result.rouge2, &result.rougeL})
    *sum /= static_cast<double>(std::max<size_t>(size, 1));
  return result;
}

double exact_match(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  const auto size = checked_size(hypotheses, references);
  uint64_t equal = 0;
  for (size_t i = 0; i < size; ++i) equal += trimmed(hypotheses[i]) == trimmed(references[i]);
  return ratio(equal, size);
}

}  // namespace cloze
