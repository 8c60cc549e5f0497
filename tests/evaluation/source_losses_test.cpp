// Held-out losses by source.
#include "evaluation/source_losses.h"

#include "core/random.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// A loss with up to five predictions a sequence, some with none.
HeldOut drawn_loss(uint64_t documents) {
  HeldOut loss{.name = "mlm"};
  auto stream = Rng(5).stream("losses");
  double sum = 0, count = 0;
  for (int row = 0; row < 300; ++row) {
    SequenceLoss sequence{.document = stream.below(documents), .predictions = static_cast<int64_t>(stream.below(5))};
    sequence.count = 0.5 * static_cast<double>(sequence.predictions);
    sequence.sum = sequence.count * stream.uniform();
    sum += sequence.sum;
    count += sequence.count;
    loss.count += sequence.predictions;
    loss.sequences.push_back(sequence);
  }
  loss.loss = sum / count;
  return loss;
}

const std::vector<SourceSpan> interleaved{{"en", 10}, {"de", 1}, {"fr", 5}, {"en", 2}, {"de", 12}};

/// The source of a document, by counting.
std::string source_by_counting(uint64_t document) {
  uint64_t at = 0;
  for (const auto& span : interleaved)
    for (uint64_t d = 0; d < span.documents; ++d)
      if (at++ == document) return span.source;
  return "";
}

}  // namespace

TEST_CASE("the loss of a source is that of the rows of its documents", "[evaluation]") {
  const auto whole = drawn_loss(30);
  const auto parts = losses_by_source(whole, interleaved);
  REQUIRE(parts.size() == 3);
  const std::vector<std::string> names{"en", "de", "fr"};
  for (size_t s = 0; s < parts.size(); ++s) {
    INFO(names[s]);
    CHECK(parts[s].name == names[s]);
    double sum = 0, count = 0;
    int64_t predictions = 0;
    std::vector<SequenceLoss> own;
    std::vector<bool> documents(30);
    for (const auto& sequence : whole.sequences) {
      if (source_by_counting(sequence.document) != names[s]) continue;
      sum += sequence.sum;
      count += sequence.count;
      predictions += sequence.predictions;
      own.push_back(sequence);
      if (sequence.predictions > 0) documents[sequence.document] = true;
    }
    CHECK(parts[s].loss == Approx(sum / count).epsilon(1e-14));
    CHECK(parts[s].count == predictions);
    CHECK(*parts[s].standard_error == *standard_error(own));
    CHECK(scored_documents(parts[s]) == static_cast<uint64_t>(std::count(documents.begin(), documents.end(), true)));
  }
}

TEST_CASE("losses by source, each by its predictions, are the loss of all", "[evaluation]") {
  const auto whole = drawn_loss(30);
  double sum = 0, weight = 0;
  int64_t predictions = 0;
  for (const auto& part : losses_by_source(whole, interleaved)) {
    double own = 0;
    for (const auto& sequence : part.sequences) own += sequence.count;
    sum += part.loss * own;
    weight += own;
    predictions += part.count;
  }
  CHECK(sum / weight == Approx(whole.loss).epsilon(1e-14));
  CHECK(predictions == whole.count);
}

TEST_CASE("a source without a prediction has no loss, and a text of one source none by source", "[evaluation]") {
  const auto whole = drawn_loss(11);  // all in the first two spans
  const auto parts = losses_by_source(whole, interleaved);
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].name == "de");
  CHECK(losses_by_source(whole, {}).empty());
}
