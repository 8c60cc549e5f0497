#include <set>

#include "data/sampling/sampler.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"

using namespace cloze;

namespace {

/// How often each token occurs in the examples of an epoch.
std::vector<int> times_seen(const TokenStore& store, const Sampler& sampler, uint64_t epoch) {
  std::vector<int> seen(store.num_tokens());
  Example example;
  for (uint64_t i = epoch * sampler.size(); i < (epoch + 1) * sampler.size(); ++i) {
    sampler.sample(i, example);
    for (const auto& span : example.spans)
      for (uint64_t t = span.first; t < span.first + span.count; ++t) ++seen[t];
  }
  return seen;
}

constexpr auto every_packing = {Packing::document,      Packing::full,          Packing::sentences,
                                Packing::two_sentences, Packing::doc_sentences, Packing::full_sentences,
                                Packing::whole};

}  // namespace

TEST_CASE("every chunk is read once an epoch, in a different order each time, from any position", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto packing : every_packing) {
    const Sampler sampler(store, {.packing = packing, .length = 24, .random_next_prob = 0.5}, Rng(3));
    std::vector<uint64_t> order[2];
    Example example;
    for (uint64_t i = 0; i < 2 * sampler.size(); ++i) {
      sampler.sample(i, example);
      order[i / sampler.size()].push_back(example.item);
      CHECK(example.epoch == i / sampler.size());
      uint64_t tokens = 0;
      for (const auto& span : example.spans) tokens += span.count;
      if (packing == Packing::document || packing == Packing::full) CHECK(tokens <= 24);
    }
    CHECK(std::set<uint64_t>(order[0].begin(), order[0].end()).size() == sampler.size());
    CHECK(order[0] != order[1]);
    Example again;
    sampler.sample(17, again);
    sampler.sample(17, example);
    CHECK(again.item == example.item);
  }
}

TEST_CASE("every token is read once an epoch, for all packings, short sequences and random segments",
          "[data][sampler]") {
  TempDir dir;
  const auto tiny = tiny_store(dir);
  // Sentences of 70 tokens, longer than a row, and documents with remainders of 1 to 9 tokens.
  std::string text;
  for (int d = 1; d < 10; ++d) {
    for (int k = 0; k < 70 + 24 * (d % 3) + d; ++k)
      text += "w" + std::to_string((d + k) % 50) + (k % 70 == 69 ? "q\n" : "q ");
    text += "\n\n";
  }
  auto options = small_text_options(dir);
  options.inputs = {dir.write("long.txt", text)};
  options.out = dir / "long";
  options.tokenizer = dir / "vocab.txt";
  options.format = TextFormat::lines;
  prepare(options);
  for (const auto& store : {tiny, TokenStore(dir / "long", "train")})
    for (const auto packing : every_packing)
      for (const double short_seq_prob : {0.0, 0.3, 1.0})
        for (const double random_next_prob : {0.0, 0.5, 1.0}) {
          CAPTURE(static_cast<int>(packing), short_seq_prob, random_next_prob);
          const Sampler sampler(store,
                                {.packing = packing,
                                 .length = 24,
                                 .short_seq_prob = short_seq_prob,
                                 .random_next_prob = random_next_prob},
                                Rng(3));
          for (const uint64_t epoch : {0, 3})
            CHECK(times_seen(store, sampler, epoch) == std::vector<int>(store.num_tokens(), 1));
        }
}

TEST_CASE("a remainder of less than eight tokens is filled up from the previous chunk", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, {.packing = Packing::document, .length = 24}, Rng(3));
  Example example;
  for (uint64_t i = 0; i < sampler.size(); ++i) {
    sampler.sample(i, example);
    REQUIRE(example.spans.size() == 1);
    CHECK(example.spans[0].count >= 8);
    CHECK(example.target_length == example.spans[0].count);
  }
}

TEST_CASE("the requested share of the sequences of an epoch has a random second segment, single sentences included",
          "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto packing : {Packing::sentences, Packing::two_sentences})
    for (const double asked : {0.0, 0.3, 0.5, 1.0}) {
      CAPTURE(static_cast<int>(packing), asked);
      const Sampler sampler(store, {.packing = packing, .length = 24, .short_seq_prob = 0.1, .random_next_prob = asked},
                            Rng(3));
      const auto chunks = Sampler(store, {.packing = packing, .length = 24, .short_seq_prob = 0.1}, Rng(3)).size();
      uint64_t random = 0, single = 0;
      Example example;
      for (uint64_t i = 5 * sampler.size(); i < 6 * sampler.size(); ++i) {
        sampler.sample(i, example);
        random += example.random_next;
        single += example.cuts.empty() && example.item < chunks && asked == 0;
        CHECK((example.random_next || !example.cuts.empty()));
      }
      const auto share = static_cast<double>(random) / static_cast<double>(sampler.size());
      CHECK(share == Approx(sampler.random_next_rate()));
      if (asked == 0)
        CHECK(random == single);
      else
        CHECK(std::abs(share - asked) <= 1.0 / static_cast<double>(sampler.size()));
    }
}

TEST_CASE("whole sentences are packed as long as they fit, across documents or not", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto packing : {Packing::doc_sentences, Packing::full_sentences}) {
    const Sampler sampler(store, {.packing = packing, .length = 24}, Rng(3));
    std::vector<Example> chunks(sampler.size());
    for (uint64_t i = 0; i < sampler.size(); ++i) {
      Example example;
      sampler.sample(i, example);
      chunks[example.item] = example;
    }
    bool crosses = false;
    for (size_t p = 0; p < chunks.size(); ++p) {
      const auto& spans = chunks[p].spans;
      uint64_t length = spans.size() - 1;
      for (const auto& span : spans) {
        length += span.count;
        CHECK(store.first_token(store.sentence_of(span.first)) == span.first);  // starts with a sentence, ends with one
        const uint64_t end = span.first + span.count;
        CHECK((end == store.num_tokens() || store.first_token(store.sentence_of(end)) == end));
      }
      crosses = crosses || spans.size() > 1;
      const uint64_t sentence = store.sentence_of(spans.front().first),
                     first_length = store.first_token(sentence + 1) - store.first_token(sentence);
      CHECK((length <= 24 || (spans.size() == 1 && spans[0].count == first_length)));
      CHECK(chunks[p].target_length == length);
      if (p + 1 == chunks.size()) continue;
      const uint64_t next = chunks[p + 1].spans.front().first, following = store.sentence_of(next);
      const bool new_document =
          chunks[p + 1].document != chunks[p].document && store.document_token(chunks[p + 1].document) == next;
      if (packing == Packing::doc_sentences && new_document) continue;
      CHECK(length + (new_document ? 1 : 0) + store.first_token(following + 1) - next >
            24);  // the next sentence did not fit
    }
    CHECK(crosses == (packing == Packing::full_sentences));
  }
}

TEST_CASE("a tenth of the sequences are cut to a random shorter length", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, {.packing = Packing::sentences, .length = 6, .short_seq_prob = 0.1}, Rng(3));
  Example example;
  double cut = 0;
  const auto all = static_cast<double>(sampler.size());
  for (uint64_t i = 0; i < sampler.size(); ++i) {
    sampler.sample(i, example);
    REQUIRE(example.target_length >= 2);
    REQUIRE(example.target_length <= 6);
    cut += example.target_length < 6;
  }
  REQUIRE(all > 300);
  CHECK(std::abs(cut - all * 0.1 * 4 / 5) < 4.5 * std::sqrt(all * 0.08));
}
