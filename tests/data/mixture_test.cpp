// Mixtures of texts: which rows are whose, and what the mixed text is.
#include <cmath>
#include <map>
#include <set>

#include "data/sampling/mixed_sampler.h"
#include "data/store/manifest.h"
#include "data/store/read_mixture.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"

using namespace cloze;
using Catch::Contains;

namespace {

constexpr auto all_packings = {Packing::document,      Packing::full,          Packing::sentences,
                               Packing::two_sentences, Packing::doc_sentences, Packing::full_sentences,
                               Packing::whole};

/// Two texts of one tokenizer, the first of them the longer one.
struct TwoTexts {
  TempDir of_first{}, of_second{};
  TokenStore first = tiny_store(of_first, 60), second = tiny_store(of_second, 30, 5);
  TokenStore mixed(double weight_of_first, double weight_of_second) const {
    return TokenStore::mixture(
        {{.text = first, .fraction = weight_of_first}, {.text = second, .fraction = weight_of_second}});
  }
};

std::vector<int64_t> ids_at(const TokenStore& store, uint64_t first, uint64_t count) {
  std::vector<int64_t> found(count);
  store.read(first, count, found.data());
  return found;
}

bool are_equal(const Example& a, const Example& b) {
  const auto same_span = [](const Span& x, const Span& y) { return x.first == y.first && x.count == y.count; };
  return a.epoch == b.epoch && a.item == b.item && a.document == b.document && a.first_document == b.first_document &&
         a.documents == b.documents && std::ranges::equal(a.spans, b.spans, same_span) && a.cuts == b.cuts &&
         a.target_length == b.target_length && a.random_next == b.random_next;
}

std::string error_of_mixture(const DataConfig& data) {
  try {
    read_mixture(data);
  } catch (const DataError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the texts of a mixture give their shares of the rows, each its own rows in order", "[data][mixture]") {
  for (const auto& rows : std::vector<std::vector<double>>{
           {70, 30}, {1, 1}, {999, 1}, {1, 999}, {0.2, 3.7, 11.5, 100}, {5, 5, 5, 5, 5, 5, 5}, {1e-6, 1}, {1, 1e-6}}) {
    const MixtureOrder order(rows, 5);
    double all = 0;
    for (const double n : rows) all += n;
    std::vector<uint64_t> given(rows.size());
    for (uint64_t index = 0; index < 32 * 3000; ++index) {
      if (index % 32 == 0)
        for (size_t part = 0; part < rows.size(); ++part) {
          const double asked = rows[part] / all * static_cast<double>(index);
          CHECK(std::abs(static_cast<double>(given[part]) - asked) <= static_cast<double>(rows.size()));
        }
      const auto [part, row] = order.at(index);
      REQUIRE(part < rows.size());
      REQUIRE(row == given[part]++);
    }
  }
}

TEST_CASE("a row of a mixture is a function of seed and number, also of very large numbers", "[data][mixture]") {
  const MixtureOrder order({2, 1}, 5), again({2, 1}, 5), other({2, 1}, 6);
  int differing = 0;
  for (uint64_t index = 5000; index-- > 0;) {
    const auto a = order.at(index), b = again.at(index);
    REQUIRE(a.part == b.part);
    REQUIRE(a.row == b.row);
    differing += a.part != other.at(index).part;
  }
  CHECK(differing > 1000);
  for (const uint64_t far : {uint64_t{1} << 33, (uint64_t{1} << 50) + 7}) {
    std::map<size_t, uint64_t> next;
    for (uint64_t index = far; index < far + 200; ++index) {
      const auto [part, row] = order.at(index);
      if (next.contains(part)) REQUIRE(row == next[part]);
      next[part] = row + 1;
    }
    CHECK(std::abs(static_cast<double>(next[0]) / static_cast<double>(far + 200) - 2.0 / 3) < 1e-6);
  }
}

TEST_CASE("even and odd rows of a mixture meet every text alike", "[data][mixture]") {
  const MixtureOrder order({1, 1}, 5);
  constexpr int blocks = 1000;
  int even = 0;
  for (uint64_t index = 0; index < 32 * blocks; index += 2) even += order.at(index).part == 0;
  // Of 16 rows of 32, 16 of which are of the text: hypergeometric with mean 8 and variance 16 / 4 * 16 / 31.
  CHECK(std::abs(even - 8 * blocks) < 5 * std::sqrt(blocks * 64.0 / 31));
}

TEST_CASE("a mixture has the documents and sentences of its texts, one text after the other", "[data][mixture]") {
  const TwoTexts texts;
  const auto store = texts.mixed(3, 1);
  const auto parts = store.parts();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].fraction == 0.75);
  CHECK(store.num_tokens() == texts.first.num_tokens() + texts.second.num_tokens());
  CHECK(store.num_sentences() == texts.first.num_sentences() + texts.second.num_sentences());
  CHECK(store.num_documents() == texts.first.num_documents() + texts.second.num_documents());
  for (const auto& part : parts) {
    CHECK(ids_at(store, part.first_token, part.text.num_tokens()) == ids_at(part.text, 0, part.text.num_tokens()));
    for (uint64_t d = 0; d < part.text.num_documents(); ++d) {
      const auto begin = store.document_token(part.first_document + d);
      REQUIRE(begin == part.first_token + part.text.document_token(d));
      REQUIRE(store.document_of(begin) == part.first_document + d);
      REQUIRE(store.sentence_of(begin) == store.first_sentence(part.first_document + d));
    }
  }
  CHECK(store.document_token(store.num_documents()) == store.num_tokens());
  store.verify();
  store.require_intact();
}

TEST_CASE("an epoch of a mixture is as long as its texts, and its frequencies and words are those that are read",
          "[data][mixture]") {
  const TwoTexts texts;
  const auto store = texts.mixed(1, 1);
  const auto parts = store.parts();
  const auto all = static_cast<double>(store.num_tokens());
  double tokens = 0, read_words = 0;
  for (const auto& part : parts) {
    CHECK(part.passes * static_cast<double>(part.text.num_tokens()) == Approx(all / 2));
    tokens += part.passes * static_cast<double>(part.text.num_tokens());
    read_words += part.passes * static_cast<double>(part.text.train_words().value());
  }
  CHECK(tokens == Approx(all));
  CHECK(static_cast<double>(store.train_words().value()) == Approx(read_words).margin(1));
  uint64_t counted = 0;
  for (const auto n : store.train_counts()) counted += n;
  CHECK(std::abs(static_cast<double>(counted) - all) < static_cast<double>(store.train_counts().size()));
  CHECK(texts.mixed(5, 5).train_counts() == store.train_counts());  // weights are relative
  const auto by_length = TokenStore::mixture({{.text = texts.first, .fraction = 1}}).fingerprint();
  CHECK(by_length == texts.first.fingerprint());
  CHECK(store.fingerprint() != texts.first.fingerprint());
  CHECK(TokenStore::mixture({{.text = texts.second}, {.text = texts.first}}).fingerprint() != store.fingerprint());
}

TEST_CASE("of a text alone the sampler of mixtures has the examples of the text's own", "[data][mixture]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto& alone : {store, TokenStore::mixture({{.text = store, .fraction = 0.3}})})
    for (const auto packing : all_packings) {
      const SamplerOptions options{
          .packing = packing, .length = 24, .short_seq_prob = 0.2, .random_next_prob = 0.5, .versions = 2};
      const MixedSampler mixed(alone, options, Rng(3));
      const Sampler own(store, options, Rng(3));
      REQUIRE(mixed.size() == own.size());
      CHECK(mixed.random_next_rate() == Approx(own.random_next_rate()));
      Example a, b;
      for (uint64_t index = 0; index < 3 * own.size(); ++index) {
        mixed.sample(index, a);
        own.sample(index, b);
        REQUIRE(are_equal(a, b));
      }
    }
}

TEST_CASE("each text of a mixture has its own order and epochs, and no example has tokens of two", "[data][mixture]") {
  const TwoTexts texts;
  const auto store = texts.mixed(1, 4);  // the second text is read many times before the first one ends
  const auto parts = store.parts();
  for (const auto packing : all_packings) {
    const SamplerOptions options{.packing = packing, .length = 24, .short_seq_prob = 0.1, .random_next_prob = 0.5};
    const MixedSampler mixed(store, options, Rng(3));
    const std::vector<Sampler> own{Sampler(texts.first, options, Rng(3)), Sampler(texts.second, options, Rng(3))};
    std::vector<uint64_t> rows(2);
    std::set<uint64_t> items[2];
    std::vector<double> tokens(2);
    Example example, expected;
    for (uint64_t index = 0; index < mixed.size(); ++index) {
      mixed.sample(index, example);
      const size_t part = example.document >= parts[1].first_document ? 1 : 0;
      own[part].sample(rows[part]++, expected);
      for (auto& span : expected.spans) {
        span.first += parts[part].first_token;
        tokens[part] += static_cast<double>(span.count);
      }
      expected.document += parts[part].first_document;
      expected.first_document = parts[part].first_document;
      expected.item = example.item;  // of its own for each text, below
      items[part].insert(example.item);
      REQUIRE(are_equal(example, expected));
      for (const auto& span : example.spans) {
        REQUIRE(span.first >= parts[part].first_token);
        REQUIRE(span.first + span.count <= parts[part].first_token + parts[part].text.num_tokens());
      }
    }
    for (const auto item : items[0]) REQUIRE_FALSE(items[1].contains(item));
    CHECK(example.epoch == (example.document >= parts[1].first_document ? rows[1] - 1 : rows[0] - 1) /
                               own[example.document >= parts[1].first_document ? 1 : 0].size());
    // Passes are whole only of the second text, whose last one is cut; rows of the first differ in length.
    const double fraction = tokens[1] / (tokens[0] + tokens[1]);
    CHECK(std::abs(fraction - 0.8) < 0.04);
    CHECK(std::abs(static_cast<double>(rows[1]) - parts[1].passes * static_cast<double>(own[1].size())) <= 3);
  }
}

TEST_CASE("what is no mixture of texts is refused in a sentence", "[data][mixture][errors]") {
  const TwoTexts texts;
  TempDir of_other;
  tiny_store(of_other, 10, 9, 40);  // another vocabulary
  const auto first = texts.of_first / "tokens", second = texts.of_second / "tokens", other = of_other / "tokens";
  const DataConfig good{.tokens = first, .mixture = {{first, 7}, {second, 3}}};
  const auto facts = read_mixture(good);
  const auto parts = texts.mixed(7, 3).parts();
  REQUIRE(facts.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(facts[i].fraction == Approx(parts[i].fraction));
    CHECK(facts[i].passes == Approx(parts[i].passes));
  }
  CHECK(read_mixture({.tokens = first}).empty());
  CHECK_THAT(error_of_mixture({.tokens = first, .mixture = {{first, 1}, {second + "s", 1}}}),
             Contains("no such folder; did you mean '" + second + "'?"));
  const auto tokenizer = [](const std::string& folder) { return read_manifest(folder).tokenizer_fingerprint; };
  CHECK(error_of_mixture({.tokens = first, .mixture = {{second, 1}, {other, 1}}}) ==
        "data.mixture.1.tokens, " + other + ", has the tokenizer " + tokenizer(other) + ", and data.tokens, " + first +
            ", has " + tokenizer(first) + "; prepare it again with --tokenizer " + first + "/tokenizer");
  CHECK(error_of_mixture({.tokens = first, .mixture = {{second, 1}, {first, 1}, {second + "/", 2}}}) ==
        "data.mixture.2.tokens, " + second + "/, is the text of " + second +
            ", which the mixture has already; keep one of them, with the sum of the weights");
  auto emptied = read_manifest(second);
  emptied.splits.erase("train");
  write_manifest(second, emptied);
  CHECK(error_of_mixture(good) == "data.mixture.1.tokens, " + second +
                                      ", has no text to train on; leave it out, or prepare it with less held out");
}

TEST_CASE("held-out documents that a training text has, token for token, are counted", "[data][mixture]") {
  TempDir dir;
  const auto train = tiny_store(dir);
  const TokenStore held_out(dir / "tokens", "valid");
  CHECK(shared_documents(held_out, train) == 0);
  auto options = small_text_options(dir);
  options.inputs = {dir / "text.txt"};
  options.out = dir / "all";
  options.format = TextFormat::lines;
  options.tokenizer = dir / "vocab.txt";
  prepare(options);
  CHECK(shared_documents(held_out, TokenStore(dir / "all", "train")) == held_out.num_documents());
  CHECK(shared_documents(held_out, TokenStore::mixture({{.text = train}, {.text = {dir / "all", "train"}}})) ==
        held_out.num_documents());
}

TEST_CASE("a text that is read more than 40 times is warned of", "[data][mixture]") {
  CHECK(repeats_warning("b", 40).empty());
  CHECK(repeats_warning("b", 52.4) ==
        "b: is read about 52 times within the budget, and after 40 passes repeated text teaches almost nothing; lower "
        "its weight, add text to it, or train for less");
}
