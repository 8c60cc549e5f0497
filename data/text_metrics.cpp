#include "data/text_metrics.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "core/text.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

using Sequence = std::vector<uint32_t>;
using WordIds = std::unordered_map<std::string_view, uint32_t>;

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

/// Counts of order 1 to N; matches of an n-gram are clipped to its count in the reference that has it most.
/// `reference`: of the first one.
template <size_t N>
std::array<NgramCounts, N> overlaps(const Sequence& hypothesis, const std::vector<Sequence>& references) {
  std::array<NgramCounts, N> result;
  Sequence in_hypothesis(hypothesis.size());  // id of the n-gram that starts at each position
  std::vector<Sequence> in_references;
  for (const auto& reference : references) in_references.emplace_back(reference.size());
  std::vector<uint32_t> left, counts;
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
    for (size_t r = 0; r < references.size(); ++r) extend(in_references[r], references[r]);
    extend(in_hypothesis, hypothesis);
    result[n].hypothesis = static_cast<double>(in_hypothesis.size());
    result[n].reference = static_cast<double>(in_references.front().size());
    left.assign(ids.size(), 0);
    for (const auto& grams : in_references) {
      counts.assign(ids.size(), 0);
      for (const auto gram : grams) left[gram] = std::max(left[gram], ++counts[gram]);
    }
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

double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

/// Weighted harmonic mean that counts recall `beta` times as much as precision (Lin 2004, equation 4; Popović 2015,
/// equation 1).
double f_measure(double precision, double recall, double beta) {
  const double weight = beta * beta;
  return precision + recall > 0 ? (1 + weight) * precision * recall / (weight * precision + recall) : 0;
}

double f1_of(const NgramCounts& counts) {
  return f_measure(ratio(counts.both, counts.hypothesis), ratio(counts.both, counts.reference), 1);
}

/// Marks the positions of a sentence that stand in its longest common subsequence with another; of several such the one
/// that rouge_score finds.
void mark_common(const Sequence& sentence, const Sequence& other, std::vector<bool>& marked) {
  const size_t columns = other.size() + 1;
  std::vector<uint32_t> longest((sentence.size() + 1) * columns);
  for (size_t i = 1; i <= sentence.size(); ++i)
    for (size_t j = 1; j <= other.size(); ++j) {
      auto& here = longest[i * columns + j];
      const auto above = longest[(i - 1) * columns + j], before = longest[i * columns + j - 1];
      here = sentence[i - 1] == other[j - 1] ? longest[(i - 1) * columns + j - 1] + 1 : std::max(above, before);
    }
  for (size_t i = sentence.size(), j = other.size(); i > 0 && j > 0;) {
    if (sentence[i - 1] == other[j - 1]) {
      marked[--i] = true;
      --j;
    } else if (longest[i * columns + j - 1] > longest[(i - 1) * columns + j]) {
      --j;
    } else {
      --i;
    }
  }
}

/// The words of each line that is not empty.
std::vector<Sequence> words_of_lines(const std::string& text, std::deque<std::string>& lines, WordIds& ids) {
  std::vector<Sequence> sentences;
  for (const auto& line : separated(text, "\n"))
    if (!line.empty()) sentences.push_back(word_ids(lines.emplace_back(rouge_text(line)), ids));
  return sentences;
}

/// How many words of a text's lines stand in the union of their longest common subsequences with those of another, each
/// no more often than both texts have it (Lin 2004, section 3.2).
NgramCounts summary_overlap(const std::string& hypothesis, const std::string& reference) {
  WordIds ids;
  std::deque<std::string> lines;  // views of which are kept
  const auto found = words_of_lines(hypothesis, lines, ids), wanted = words_of_lines(reference, lines, ids);
  std::vector<int64_t> in_found(ids.size()), in_wanted(ids.size());
  NgramCounts counts;
  for (const auto& sentence : found)
    for (const auto word : sentence) ++in_found[word], ++counts.hypothesis;
  for (const auto& sentence : wanted)
    for (const auto word : sentence) ++in_wanted[word], ++counts.reference;
  for (const auto& sentence : wanted) {
    std::vector<bool> marked(sentence.size());
    for (const auto& other : found) mark_common(sentence, other, marked);
    for (size_t i = 0; i < sentence.size(); ++i)
      if (const auto word = sentence[i]; marked[i] && in_found[word] > 0 && in_wanted[word] > 0)
        --in_found[word], --in_wanted[word], ++counts.both;
  }
  return counts;
}

Rouge rouge_of(const std::string& hypothesis, const std::string& reference) {
  const auto hypothesis_text = rouge_text(hypothesis), reference_text = rouge_text(reference);
  WordIds ids;
  const auto found = word_ids(hypothesis_text, ids), wanted = word_ids(reference_text, ids);
  const auto counts = overlaps<2>(found, {wanted});
  const auto common = static_cast<double>(longest_common_subsequence(found, wanted));
  return {.rouge1 = f1_of(counts[0]),
          .rouge2 = f1_of(counts[1]),
          .rougeL = f1_of({static_cast<double>(found.size()), static_cast<double>(wanted.size()), common}),
          .rougeLsum = f1_of(summary_overlap(hypothesis, reference))};
}

constexpr double Rouge::* rouge_fields[] = {&Rouge::rouge1, &Rouge::rouge2, &Rouge::rougeL, &Rouge::rougeLsum};

/// Of equally close ones the shorter one.
double closest_length(size_t length, const std::vector<Sequence>& references) {
  const auto distance = [&](size_t other) { return std::max(length, other) - std::min(length, other); };
  size_t closest = references.front().size();
  for (const auto& one : references)
    if (std::pair(distance(one.size()), one.size()) < std::pair(distance(closest), closest)) closest = one.size();
  return static_cast<double>(closest);
}

std::array<NgramCounts, 4> word_counts(const std::string& hypothesis, const std::vector<std::string>& references) {
  const auto text = spaced_13a(hypothesis);
  std::vector<std::string> spaced_references;
  for (const auto& reference : references) spaced_references.push_back(spaced_13a(reference));
  WordIds ids;
  const auto words = word_ids(text, ids);
  std::vector<Sequence> of_references;
  for (const auto& reference : spaced_references) of_references.push_back(word_ids(reference, ids));
  auto counts = overlaps<4>(words, of_references);
  counts[0].reference = closest_length(words.size(), of_references);
  return counts;
}

double chrf_of(const std::array<NgramCounts, 6>& counts) {
  double precision = 0, recall = 0, orders = 0;
  for (const auto& one : counts) {
    if (one.hypothesis == 0 || one.reference == 0) continue;
    precision += one.both / one.hypothesis;
    recall += one.both / one.reference;
    ++orders;
  }
  return orders > 0 ? 100 * f_measure(precision / orders, recall / orders, 2) : 0;
}

std::array<NgramCounts, 6> character_counts(const std::string& hypothesis, const std::vector<std::string>& references) {
  const auto text = characters(hypothesis);
  std::array<NgramCounts, 6> best;
  double most = -1;
  for (const auto& reference : references) {
    auto counts = overlaps<6>(text, {characters(reference)});
    for (auto& one : counts)
      if (one.reference == 0) one.hypothesis = 0;  // n-grams longer than the reference do not count as wrong
    if (const double score = chrf_of(counts); score > most) {
      most = score;
      best = counts;
    }
  }
  return best;
}

constexpr const char* same_as = "2.6.0";  ///< of sacrebleu, whose numbers these are

std::string signature(size_t references, const char* terms) {
  return concat("nrefs:", references == 0 ? "var" : std::to_string(references), "|case:mixed|", terms,
                "|version:", same_as);
}

}  // namespace

void TextSums::add(const TextSums& other, double times) {
  const auto add_counts = [&](auto& all, const auto& some) {
    for (size_t n = 0; n < all.size(); ++n) {
      all[n].hypothesis += times * some[n].hypothesis;
      all[n].reference += times * some[n].reference;
      all[n].both += times * some[n].both;
    }
  };
  add_counts(words, other.words);
  add_counts(characters, other.characters);
  for (const auto field : rouge_fields) rouge.*field += times * other.rouge.*field;
  exact += times * other.exact;
  texts += times * other.texts;
}

TextSums text_sums(const std::string& hypothesis, const std::vector<std::string>& references) {
  if (references.empty()) throw std::invalid_argument("a text is compared with one reference or more; give some.");
  TextSums sums{
      .words = word_counts(hypothesis, references), .characters = character_counts(hypothesis, references), .texts = 1};
  for (const auto& reference : references) {
    const auto one = rouge_of(hypothesis, reference);
    for (const auto field : rouge_fields) sums.rouge.*field = std::max(sums.rouge.*field, one.*field);
    if (trimmed(hypothesis) == trimmed(reference)) sums.exact = 1;
  }
  return sums;
}

TextSums text_sums(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  if (hypotheses.size() != references.size())
    throw std::invalid_argument(std::to_string(hypotheses.size()) + " hypotheses cannot be compared with " +
                                std::to_string(references.size()) + " references; give one reference each.");
  TextSums sums;
  for (size_t i = 0; i < hypotheses.size(); ++i) sums.add(text_sums(hypotheses[i], std::vector{references[i]}));
  return sums;
}

Bleu bleu(const TextSums& sums) {
  const auto& words = sums.words;
  Bleu result{.hypothesis_length = words[0].hypothesis, .reference_length = words[0].reference};
  const double hypothesis = words[0].hypothesis, reference = words[0].reference;
  if (hypothesis < reference) result.brevity_penalty = hypothesis == 0 ? 0 : std::exp(1 - reference / hypothesis);
  if (words[0].both == 0) return result;
  double smoothing = 1, log_sum = 0;
  for (size_t n = 0; n < words.size(); ++n) {
    if (words[n].hypothesis == 0) return result;  // no hypothesis is that long: the geometric mean is 0
    // The first order without a match counts as half a match, the next as a quarter (Chen and Cherry 2014, smoothing
    // 3).
    const double both = words[n].both > 0 ? words[n].both : 1 / (smoothing *= 2);
    result.precisions[n] = 100 * both / words[n].hypothesis;
    log_sum += std::log(result.precisions[n]);
  }
  result.score = result.brevity_penalty * std::exp(log_sum / 4);
  return result;
}

double chrf(const TextSums& sums) { return chrf_of(sums.characters); }

Rouge rouge(const TextSums& sums) {
  Rouge means;
  for (const auto field : rouge_fields) means.*field = ratio(sums.rouge.*field, sums.texts);
  return means;
}

double exact_match(const TextSums& sums) { return ratio(sums.exact, sums.texts); }

std::string bleu_signature(size_t references) { return signature(references, "eff:no|tok:13a|smooth:exp"); }
std::string chrf_signature(size_t references) { return signature(references, "eff:yes|nc:6|nw:0|space:no"); }

}  // namespace cloze
