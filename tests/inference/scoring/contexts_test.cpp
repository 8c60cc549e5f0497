// Long contexts, which a causal model reads once for all of their completions.
#include "tests/inference/scoring/random_run.h"

using namespace cloze;

namespace {

const std::string long_context =
    "the cats see a dog by the river and the older bird sings by the old river and the dogs";
const std::string as_long_context = "a" + long_context.substr(3);  // of as many tokens
const std::vector<std::string> completions{" sing", " see a bird", " see the river .", " see a cat",
                                           " see a dog and sing"};

/// GPT-2's with positions that rotate; the runs of other families by their name.
LoadedRun causal_run(const TempDir& dir, const std::string& name) {
  if (name != "rotary") return random_run(dir, name);
  auto one = family("gpt2");
  transformer_of(one.model).positions = Rotary{};
  return random_run(dir, one.model, one.objectives);
}

/// Passages of each completion after each context.
std::vector<Passage> after(const std::vector<std::string>& contexts) {
  std::vector<Passage> passages;
  for (const auto& completion : completions)
    for (const auto& context : contexts) passages.push_back({.left = context, .scored = completion});
  return passages;
}

std::vector<double> last(const std::vector<double>& values, size_t count) {
  return {values.end() - static_cast<ptrdiff_t>(count), values.end()};
}

}  // namespace

TEST_CASE("completions of a long context have the scores that they have at the end of whole texts", "[scoring]") {
  const auto name = GENERATE("gpt2", "rotary", "lstm");
  const TempDir dir;
  const auto run = causal_run(dir, name);
  const auto passages = after({long_context, as_long_context, long_context + " and cats"});
  const auto scores = Scorer(run, {}).score(passages);
  const auto in_small_batches = Scorer(run, {.batch_tokens = 30}).score(passages);
  for (size_t i = 0; i < passages.size(); ++i) {
    INFO(passages[i].text());
    const auto whole_text = Scorer(run, {}).score(whole({passages[i].text()}))[0];
    check_values(values_of(scores[i]), last(values_of(whole_text), scores[i].tokens.size()));
    check_values(values_of(in_small_batches[i]), values_of(scores[i]));
  }
}

TEST_CASE("a completion after a long context has the same score with and without others", "[scoring]") {
  const auto name = GENERATE("gpt2", "rotary", "lstm", "t5", "bart", "xlnet", "bert");
  INFO(name);
  const TempDir dir;
  const auto run = causal_run(dir, name);
  const auto passages = after({long_context, as_long_context});
  const auto together = Scorer(run, {}).score(passages);
  for (size_t i = 0; i < passages.size(); ++i)
    check_values(values_of(Scorer(run, {}).score(std::vector{passages[i]})[0]), values_of(together[i]));
}

TEST_CASE("the same tokens after two cuts of a text are scored from one row", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "gpt2");
  const auto scores = Scorer(run, {}).score(std::vector<Passage>{{.left = long_context + " see", .scored = " a dog"},
                                                                 {.left = long_context, .scored = " see a dog"}});
  check_values(values_of(scores[0]), last(values_of(scores[1]), 2));
}
