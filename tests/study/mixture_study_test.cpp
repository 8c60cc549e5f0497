// Studies whose arms are trained on mixtures of texts.
#include "study/costs/costs.h"
#include "tests/objectives/store.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// Two texts of one tokenizer, and a third one of another.
struct MixtureStudy {
  MixtureStudy() : study("") {
    tiny_store(of_web, 40);
    tiny_store(of_books, 20, 5);
    tiny_store(of_other, 10, 9, 40);
  }
  /// The study of a text alone and of a mixture.
  void write(const std::string& second, double weight) const {
    study.write("set: {data.tokens: " + web + "}\nseeds: 2\nbudget: {epochs: 3}\narms:\n  web: {}\n" +
                "  mixed: {data.mixture: [{tokens: " + web + ", weight: 1}, {tokens: " + second +
                ", weight: " + concat(weight) + "}]}\n");
  }
  std::string fingerprint() const { return study.stages().compared().runs[1].fingerprint; }
  TempDir of_web{}, of_books{}, of_other{};
  std::string web = of_web / "tokens", books = of_books / "tokens", other = of_other / "tokens";
  Study study;
};

}  // namespace

TEST_CASE("an arm of a study may be trained on a mixture, and is scored on the text of data.tokens", "[study]") {
  const MixtureStudy of;
  of.write(of.books, 3);
  const auto plan = of.study.stages().compared();
  const auto& data = plan.runs[1].config.data;
  REQUIRE(data.mixture.size() == 2);
  CHECK(data.tokens == of.web);
  CHECK(data.mixture[1].tokens == of.books);
  CHECK(data.mixture[1].weight == 3);
  CHECK(plan.documents == static_cast<int64_t>(TokenStore(of.web, "valid").num_documents()));
  CHECK(plan.runs[0].config.data.mixture.empty());
  CHECK(plan.runs[0].fingerprint != plan.runs[1].fingerprint);
}

TEST_CASE("runs of a mixture are others where a weight or the text of a part is, and not where a part was moved",
          "[study]") {
  const MixtureStudy of;
  of.write(of.books, 3);
  const auto first = of.fingerprint();
  of.write(of.books, 2);
  CHECK(of.fingerprint() != first);
  std::filesystem::rename(of.books, of.of_books / "moved");
  of.write(of.of_books / "moved", 3);
  CHECK(of.fingerprint() == first);
  tiny_store(of.of_books, 21, 5);
  of.write(of.books, 3);
  CHECK(of.fingerprint() != first);
}

TEST_CASE("a plan refuses the mixture that its runs would, and names the arm", "[study]") {
  const MixtureStudy of;
  of.write(of.other, 1);
  CHECK_THAT(of.study.error(), Contains("arm 'mixed': data.mixture.1.tokens, " + of.other + ", has the tokenizer "));
  of.write(of.web, 1);
  CHECK_THAT(of.study.error(), Contains("arm 'mixed': data.mixture.1.tokens, " + of.web + ", is the text of "));
  of.write(of.books, 0);
  CHECK_THAT(of.study.error(), Contains("arm 'mixed': data.mixture.1.weight is 0, and a text needs a share above 0"));
  of.write("not-yet", 1);
  CHECK(of.study.error().empty());  // as for data.tokens: it may be prepared before the study runs
}

TEST_CASE("a plan warns of a text of a mixture that its budget reads too often", "[study]") {
  const MixtureStudy of;
  const Probe probe{.parameters = 10, .seconds = 1, .tokens = 100, .sequences_per_epoch = 40};
  of.write(of.books, 3);
  const auto table = [&] { return plan_table(of.study.stages().compared(), {probe, probe}, 1, 400); };
  CHECK_THAT(table(), !Contains("teaches almost nothing"));
  of.write(of.books, 200);
  CHECK_THAT(table(), !Contains("teaches almost nothing"));  // three epochs of all tokens
  of.study.write("set: {data.tokens: " + of.web + "}\nseeds: 2\nbudget: {epochs: 30}\narms:\n  web: {}\n" +
                 "  mixed: {data.mixture: [{tokens: " + of.books + ", weight: 9}, {tokens: " + of.web +
                 ", weight: 1}]}\n");
  CHECK_THAT(table(), Contains("warning") && Contains("arm 'mixed': " + of.books + ": is read about ") &&
                          Contains("after 40 passes repeated text teaches almost nothing"));
}
