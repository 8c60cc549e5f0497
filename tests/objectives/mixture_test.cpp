// Rows of a mixture of texts, of every kind of rows.
#include <set>

#include "models/families/families.h"
#include "objectives/collator.h"
#include "objectives/kinds.h"
#include "objectives/segment_pairs.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

using MixedRow = std::vector<int64_t>;

MixedRow ids_of_row(const Batch& batch, int64_t row) {
  const auto ids = batch.input_ids[row].contiguous();
  return {ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel()};
}

/// Prepares documents of words [first, first + 20) of a vocabulary of 40, some of them of one sentence.
TokenStore text_of_words(const TempDir& dir, const std::string& name, int documents, int first) {
  std::string text;
  for (int d = 0; d < documents; ++d) {
    for (int s = 0; s < 1 + d % 8; ++s) {
      for (int k = 0; k < 3 + (d + s) % 7; ++k) text += "w" + std::to_string(first + (d * 7 + s * 3 + k) % 20) + "q ";
      text += "\n";
    }
    text += "\n";
  }
  PrepareOptions options;
  options.inputs = {dir.write(name + ".txt", text)};
  options.out = dir / name;
  options.format = TextFormat::lines;
  options.tokenizer = dir.write("vocab.txt", tiny_vocabulary(40));
  options.held_out = 0;
  options.threads = 1;
  options.sentinels = 20;
  prepare(options);
  return {options.out, "train"};
}

/// Two texts that share no word.
struct DisjointTexts {
  TempDir dir{};
  TokenStore first = text_of_words(dir, "first", 90, 0), second = text_of_words(dir, "second", 40, 20);
  TokenStore mixed = TokenStore::mixture({{.text = first, .fraction = 1}, {.text = second, .fraction = 1}});
  /// Which of the texts has a word: 0 or 1; -1 for other tokens.
  std::vector<int> text_of = texts_by_id();

 private:
  std::vector<int> texts_by_id() const {
    std::vector<int> found(static_cast<size_t>(mixed.tokenizer().size()), -1);
    for (int text = 0; text < 2; ++text) {
      const auto& counts = (text == 0 ? first : second).train_counts();
      for (size_t id = 0; id < counts.size(); ++id)
        if (counts[id] > 0) found[id] = text;
    }
    return found;
  }
};

DataConfig mixed_rows(int64_t length, RowPacking packing) {
  DataConfig data;
  data.max_seq_length = length;
  data.short_seq_prob = 0;
  data.packing = packing;
  return data;
}

struct RowKind {
  const char* name;
  Objectives objectives;
  DataConfig data;
  ModelConfig model{};
};

std::vector<RowKind> row_kinds() {
  MlmConfig mlm;
  mlm.mask_prob = 0.9;
  mlm.random_prob = 0;  // a random token may be of the other text
  XlnetConfig xlnet;
  xlnet.mem_len = xlnet.reuse_len = 0;
  PlmConfig plm;
  return {{"mlm", {mlm}, mixed_rows(24, RowPacking::document)},
          {"mlm, full", {mlm}, mixed_rows(24, RowPacking::full)},
          {"mlm, full sentences", {mlm}, mixed_rows(24, RowPacking::full_sentences)},
          {"mlm, nsp", {mlm, NspConfig{}}, mixed_rows(32, RowPacking::document)},
          {"mlm, sop", {mlm, SopConfig{}}, mixed_rows(32, RowPacking::document)},
          {"clm", {ClmConfig{}}, mixed_rows(24, RowPacking::full), Gpt2Config{}},
          {"span corruption", {SpanCorruptionConfig{}}, mixed_rows(24, RowPacking::full), T5Config{}},
          {"plm", {plm}, mixed_rows(24, RowPacking::full), xlnet},
          {"plm, pairs", {plm}, mixed_rows(24, RowPacking::segment_pair), xlnet}};
}

/// The text whose words a row has, -1 for one without words; fails for a row with words of both.
int text_of_row(const MixedRow& row, const std::vector<int>& text_of) {
  int found = -1;
  for (const auto id : row) {
    const int text = text_of.at(static_cast<size_t>(id));
    if (text < 0) continue;
    REQUIRE((found == -1 || found == text));
    found = text;
  }
  return found;
}

}  // namespace

TEST_CASE("no row of a mixture has words of two texts, and each text has its share, whatever the rows",
          "[objectives][mixture]") {
  const DisjointTexts texts;
  for (const auto& kind : row_kinds()) {
    INFO(kind.name);
    const Collator collator(texts.mixed, kind.objectives, kind.data, Rng(5), "train", kind.model, {8, 1});
    int64_t rows[2] = {0, 0};
    for (uint64_t first = 0; first < 640; first += 8) {
      const auto batch = collator.batch(first, 8);
      for (int64_t r = 0; r < batch.input_ids.size(0); ++r) {
        const auto text = text_of_row(ids_of_row(batch, r), texts.text_of);
        if (text >= 0) ++rows[text];
      }
    }
    // Rows of both texts are about as long, so that half of the tokens are about half of the rows.
    CHECK(std::abs(static_cast<double>(rows[0]) / static_cast<double>(rows[0] + rows[1]) - 0.5) < 0.1);
  }
}

TEST_CASE("a row of a mixture is the same in any batch", "[objectives][mixture]") {
  const DisjointTexts texts;
  for (const auto& kind : row_kinds()) {
    INFO(kind.name);
    const Collator collator(texts.mixed, kind.objectives, kind.data, Rng(5), "train", kind.model);
    const auto batch = collator.batch(150, 40);
    for (int64_t r = 0; r < 40; r += 13) {
      const auto alone = collator.batch(150 + static_cast<uint64_t>(r), 1);
      const auto width = alone.input_ids.size(1);
      const bool pads_left = batch.target_positions.defined();
      const auto begin = pads_left ? batch.input_ids.size(1) - width : 0;
      CHECK(at::equal(batch.input_ids[r].slice(0, begin, begin + width), alone.input_ids[0]));
    }
  }
}

TEST_CASE("a random second segment is of the text of the first, and of another document of it",
          "[objectives][mixture]") {
  const DisjointTexts texts;
  const MixedSampler sampler(texts.mixed, {.packing = Packing::sentences, .length = 29, .random_next_prob = 0.5},
                             Rng(1));
  const auto boundary = texts.mixed.parts()[1].first_document;
  Example example;
  std::set<uint64_t> seconds;
  for (uint64_t index = 0; index < 20'000; ++index) {
    sampler.sample(index, example);
    if (!example.random_next) continue;
    const auto pair = make_segment_pair({}, texts.mixed, example, 29, Stream(1, 0, index));
    const auto document = texts.mixed.document_of(pair.b.first);
    seconds.insert(document);
    REQUIRE(document != example.document);
    REQUIRE((document >= boundary) == (example.document >= boundary));
  }
  CHECK(seconds.size() == texts.mixed.num_documents());  // all of them
}

TEST_CASE("a text of one document is no part of a mixture for sentence pairs", "[objectives][mixture][errors]") {
  TempDir dir;
  const auto many = text_of_words(dir, "many", 20, 0), one = text_of_words(dir, "one", 1, 20);
  const auto mixed = TokenStore::mixture({{.text = many}, {.text = one}});
  CHECK_THROWS_WITH(Collator(mixed, {MlmConfig{}, NspConfig{}}, mixed_rows(32, RowPacking::document), Rng(5), "train"),
                    Contains("need at least two documents, " + dir / "one has one, and no B is taken from another "
                                                                     "text; leave it out of data.mixture"));
}
