// PEGASUS.
#include "objectives/gap_sentences/noise.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "tests/objectives/texts.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

using Sentences = std::vector<Ids>;

/// ROUGE-1 F1 of two bags of tokens, by definition.
double rouge1(const Ids& a, const Ids& b, bool unique) {
  std::map<int64_t, int> x, y;
  for (const auto id : a) x[id] = unique ? 1 : x[id] + 1;
  for (const auto id : b) y[id] = unique ? 1 : y[id] + 1;
  double both = 0, in_x = 0, in_y = 0;
  for (const auto& [id, n] : x) in_x += n, both += y.count(id) ? std::min(n, y[id]) : 0;
  for (const auto& [id, n] : y) in_y += n;
  if (both == 0) return 0;
  const double precision = both / in_x, recall = both / in_y;
  return 2 * precision * recall / (precision + recall);
}

/// The principal sentences, by definition.
std::set<size_t> principal(const Sentences& sentences, size_t wanted, bool one_by_one, bool unique) {
  std::set<size_t> gap;
  const auto score = [&](size_t candidate) {
    Ids chosen, rest;
    for (size_t s = 0; s < sentences.size(); ++s) {
      auto& side = s == candidate || (one_by_one && gap.count(s)) ? chosen : rest;
      side.insert(side.end(), sentences[s].begin(), sentences[s].end());
    }
    return rouge1(chosen, rest, unique);
  };
  while (gap.size() < wanted) {
    double best = -1;
    size_t best_sentence = 0;
    for (size_t s = 0; s < sentences.size(); ++s) {
      const double now = gap.count(s) ? -1 : score(s);
      if (!gap.count(s) && now > best - 1e-12) best = now, best_sentence = s;  // ties: the later
    }
    gap.insert(best_sentence);
  }
  return gap;
}

SourceTarget with_gaps(const Sentences& sentences, const std::set<size_t>& gap) {
  SourceTarget out;
  for (size_t s = 0; s < sentences.size(); ++s) {
    auto& side = gap.count(s) ? out.target : out.source;
    side.insert(side.end(), sentences[s].begin(), sentences[s].end());
    if (gap.count(s)) out.source.push_back(4);
  }
  out.source.push_back(1);
  out.target.push_back(1);
  return out;
}

}  // namespace

TEST_CASE("principal sentences match the definition", "[noising]") {
  for (const std::string choose : {"ind-orig", "ind-uniq", "seq-orig", "seq-uniq"}) {
    for (uint64_t item = 0; item < 400; ++item) {
      auto stream = stream_of(item);
      Sentences sentences(1 + stream.below(12));
      for (auto& sentence : sentences)
        for (uint64_t n = 1 + stream.below(8); n > 0; --n)
          sentence.push_back(10 + static_cast<int64_t>(stream.below(15)));
      const auto tenths = 2 + item % 7;
      const auto wanted = std::max<size_t>(1, sentences.size() * tenths / 10);
      const auto expected =
          with_gaps(sentences, principal(sentences, wanted, choose[0] == 's', choose.substr(4) == "uniq"));
      const auto out =
          gap_sentences(sentences, static_cast<double>(tenths) / 10, choice_of<SentenceChoice>(choose), 4, 1, stream);
      REQUIRE(out.source == expected.source);
      REQUIRE(out.target == expected.target);
    }
  }
}

TEST_CASE("the sentence that overlaps most with the rest is the gap; -uniq counts a repeated word once", "[noising]") {
  auto stream = stream_of(0);
  const Sentences sentences{{10, 11}, {12, 12, 12, 12}, {10, 13, 12}, {12, 14, 12, 12, 12}};
  CHECK(gap_sentences(sentences, 0.3, SentenceChoice::ind_orig, 4, 1, stream).target == Ids{12, 14, 12, 12, 12, 1});
  CHECK(gap_sentences(sentences, 0.3, SentenceChoice::ind_uniq, 4, 1, stream).target == Ids{10, 13, 12, 1});
}

TEST_CASE("lead masks the first sentences, random uniformly any, floor(share) of them", "[noising]") {
  const Sentences sentences{{10, 11}, {12}, {13, 14}, {15}, {16}, {17}, {18}};
  auto stream = stream_of(0);
  const auto lead = gap_sentences(sentences, 0.3, SentenceChoice::lead, 4, 1, stream);  // floor(2.1)
  CHECK(lead.source == Ids{4, 4, 13, 14, 15, 16, 17, 18, 1});
  CHECK(lead.target == Ids{10, 11, 12, 1});
  std::map<Ids, int> counts;
  for (int i = 0; i < 21000; ++i) ++counts[gap_sentences(sentences, 0.3, SentenceChoice::random, 4, 1, stream).target];
  check_uniform(counts, 21, 21000);
  for (const auto& [target, count] : counts) CHECK(std::is_sorted(target.begin(), target.end() - 1));
}

TEST_CASE("texts of one sentence and of none have a source and a target", "[noising]") {
  for (const std::string choose : {"random", "lead", "ind-orig", "ind-uniq", "seq-orig", "seq-uniq"}) {
    auto stream = stream_of(0);
    const auto one = gap_sentences(Sentences{{10, 11}}, 0.3, choice_of<SentenceChoice>(choose), 4, 1, stream);
    CHECK(one.source == Ids{4, 1});
    CHECK(one.target == Ids{10, 11, 1});
    for (const auto& empty : {Sentences{}, Sentences{{}, {}}}) {
      const auto none = gap_sentences(empty, 0.3, choice_of<SentenceChoice>(choose), 4, 1, stream);
      CHECK(none.source == Ids{1});
      CHECK(none.target == Ids{1});
    }
    const auto all = gap_sentences(Sentences{{10}, {}, {10}}, 5, choice_of<SentenceChoice>(choose), 4, 1, stream);
    CHECK(all.source == Ids{4, 4, 1});
    CHECK(all.target == Ids{10, 10, 1});
  }
}
