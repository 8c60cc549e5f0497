// What a score does not depend on, and what scores add up to.
#include <ATen/Parallel.h>

#include <algorithm>
#include <random>

#include "core/tensor/ops.h"
#include "inference/scoring/passage_lines.h"
#include "objectives/clm/clm.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;

namespace {

const std::vector<std::string> all_families{"bert",    "roberta",   "albert",      "electra", "longformer",
                                            "bigbird", "performer", "modernbert",  "gpt2",    "t5",
                                            "bart",    "pegasus",   "transformer", "xlnet",   "lstm"};

}  // namespace

TEST_CASE("scores do not depend on the order of the texts, on copies of them or on the batch", "[scoring]") {
  const auto name = GENERATE_REF(from_range(all_families));
  const TempDir dir;
  INFO(name);
  const auto run = random_run(dir, name);
  const auto together = Scorer(run, {}).score(whole(some_texts));
  CHECK((together[0] == together[6]));
  std::vector<size_t> order(some_texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::reverse(order.begin(), order.end());
  std::vector<Passage> reversed;
  for (const auto i : order) reversed.push_back({.scored = some_texts[i]});
  const auto backwards = Scorer(run, {.batch_tokens = 20}).score(reversed);
  for (size_t k = 0; k < order.size(); ++k) {
    check_values(values_of(backwards[k]), values_of(together[order[k]]));
    check_values(values_of(Scorer(run, {}).score(std::vector{reversed[k]})[0]), values_of(together[order[k]]));
  }
}

TEST_CASE("scores are the same bits on any number of threads", "[scoring]") {
  const auto name = GENERATE("bert", "gpt2", "t5", "xlnet", "lstm");
  const TempDir dir;
  const auto run = random_run(dir, name);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = Scorer(run, {}).score(whole(some_texts));
  at::set_num_threads(3);
  const auto three = Scorer(run, {}).score(whole(some_texts));
  at::set_num_threads(threads);
  CHECK((one == three));
}

TEST_CASE("the kernels and the plain operators give the same scores", "[scoring]") {
  const auto name = GENERATE_REF(from_range(all_families));
  const TempDir dir;
  INFO(name);
  const auto run = random_run(dir, name);
  const auto fused = Scorer(run, {}).score(whole(some_texts));
  set_fused(false);
  const auto plain = Scorer(run, {}).score(whole(some_texts));
  set_fused(true);
  for (size_t i = 0; i < fused.size(); ++i) check_values(values_of(fused[i]), values_of(plain[i]));
}

TEST_CASE("a network in training, with weights in bf16, is scored in fp32 without dropout and left as it was",
          "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto before = Scorer(run, {}).score(whole(some_texts));
  FlatParameters flat(collect_params(*run.network), at::kCPU);
  flat.use_bf16(true);
  run.network->train();
  CHECK((Scorer(run, {}).score(whole(some_texts)) == before));
  CHECK(run.network->is_training());
  CHECK(collect_params(*run.network)[0].param.compute().scalar_type() == at::kBFloat16);
}

TEST_CASE("in bf16 scores are near those in fp32, and the weights stay as they were", "[scoring]") {
  const auto name = GENERATE("bert", "gpt2", "t5", "xlnet", "electra");
  const TempDir dir;
  INFO(name);
  const auto run = random_run(dir, name);
  const auto exact = Scorer(run, {}).score(whole(some_texts));
  const auto rough = Scorer(run, {.precision = Precision::bf16}).score(whole(some_texts));
  for (size_t i = 0; i < exact.size(); ++i)
    for (size_t k = 0; k < exact[i].tokens.size(); ++k)
      CHECK(rough[i].tokens[k].log_probability == Approx(exact[i].tokens[k].log_probability).margin(0.3).epsilon(0.05));
  for (const auto& [key, param] : collect_params(*run.network)) CHECK(param.compute().scalar_type() == at::kFloat);
  CHECK((Scorer(run, {}).score(whole(some_texts)) == exact));
}

TEST_CASE("the log-likelihood of a text is that of its beginning and that of the rest after it", "[scoring]") {
  const auto name = GENERATE("gpt2", "xlnet");
  const TempDir dir;
  const auto run = random_run(dir, name);
  const std::string left = "the cats see", right = " a dog";
  const auto scores = Scorer(run, {}).score(
      std::vector<Passage>{{.scored = left + right}, {.scored = left}, {.left = left, .scored = right}});
  if (name == std::string("gpt2")) CHECK(scores[0].sum == Approx(scores[1].sum + scores[2].sum).margin(1e-4));
  const auto& all = scores[0].tokens;
  const auto& rest = scores[2].tokens;
  check_values(values_of(scores[2]), {all[all.size() - 2].log_probability, all.back().log_probability});
  CHECK(rest.back().end == left.size() + right.size());
}

TEST_CASE("the probabilities of all completions of one token add up to 1", "[scoring]") {
  const TempDir dir;
  ClmConfig clm;
  clm.transform = true;  // with a bias
  const auto name = GENERATE("bert", "gpt2", "bart", "xlnet");
  INFO(name);
  const auto run = name == std::string("gpt2") ? random_run(dir, family(name).model, {clm}) : random_run(dir, name);
  std::vector<int64_t> unwritten;  // no text spells them
  std::vector<Passage> passages{{.left = "a dog", .scored = " %"}};
  for (int64_t id = 0; id < run.tokenizer.size(); ++id) {
    const auto piece = run.tokenizer.piece(id);
    if (run.tokenizer.is_special(id)) {
      if (id != run.tokenizer.special().unk) unwritten.push_back(id);
      continue;
    }
    passages.push_back({.left = "a dog", .scored = piece.starts_with("##") ? piece.substr(2) : " " + piece});
  }
  {
    const at::NoGradGuard no_grad;
    for (const auto& [key, param] : collect_params(*run.network))
      if (param.value().dim() == 1 && param.value().size(0) == run.tokenizer.size())
        param.value().index_fill_(0, at::tensor(unwritten, at::kLong), -1e4);
  }
  const auto form = name == std::string("bert") ? ScoringForm::pll : ScoringForm::likelihood;
  double total = 0;
  for (const auto& score : Scorer(run, {.form = form}).score(passages)) {
    CHECK(score.tokens.size() == 1);
    total += std::exp(score.sum);
  }
  CHECK(total == Approx(1).margin(1e-5));
}

TEST_CASE("the two sentences of a minimal pair have the same score where they differ in the masked token alone",
          "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  // softmax over one row: the two labels are of one distribution.
  const auto scores = Scorer(run, {}).score(std::vector<Passage>{{.left = "the cats see a ", .scored = "dog"},
                                                                 {.left = "the cats see a ", .scored = "bird"}});
  const auto& special = run.tokenizer.special();
  const auto row = joined({{special.cls}, ids_of(run, "the cats see a"), {special.mask, special.sep}});
  const auto logits = logits_of(run, {.input_ids = row_of(row)})[6];
  CHECK(scores[0].sum == Approx(log_probability(logits, ids_of(run, "dog")[0])).margin(1e-5));
  CHECK(scores[1].sum == Approx(log_probability(logits, ids_of(run, "bird")[0])).margin(1e-5));
}

TEST_CASE("progress counts every passage once", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  std::vector<int64_t> seen;
  ScoringOptions options;
  options.progress = [&](int64_t done, int64_t all) {
    CHECK(all == 8);
    seen.push_back(done);
  };
  auto passages = whole(some_texts);
  passages.push_back({.scored = ""});
  const auto scores = Scorer(run, options).score(passages);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.back() == 8);
  CHECK(scores.back().tokens.empty());
  CHECK(scores.back().sum == 0);
}

TEST_CASE("a completion follows its context after a space, unless one of them has white space there", "[scoring]") {
  CHECK(completed("a", "b").left == "a ");
  CHECK(completed("", "b").left == "");
  for (const std::string space : {" ", "\n", "\u00A0", "\u3000", "\u2028"}) {
    CHECK(completed("a" + space, "b").left == "a" + space);
    CHECK(completed("a", space + "b").left == "a");
    CHECK(completed(space, "b").left == space);
  }
}

TEST_CASE("logits that are not finite are refused with the run, the text and its line", "[scoring]") {
  const TempDir dir;
  const auto name = GENERATE("bert", "electra", "gpt2");
  const auto run = random_run(dir, name);
  {
    const at::NoGradGuard no_grad;
    for (const auto& [key, param] : collect_params(*run.network))
      if (key.ends_with("embeddings.word")) param.value()[8].fill_(std::nan(""));
  }
  CHECK_THROWS_WITH(Scorer(run, {}).score(whole({"a cat"})),
                    Catch::StartsWith("runs/random: its logits for the text 'a cat' are not finite; "));
  CHECK_THROWS_AS(Scorer(run, {}).score(whole({"a cat"})), DataError);
  const auto file = read_passages(dir.write("texts.txt", "\na cat\n"));
  CHECK_THROWS_WITH(with_lines(file, [&] { return Scorer(run, {}).score(file.passages); }),
                    Catch::Contains("texts.txt:2: runs/random: its logits for the text 'a cat' are not finite; "));
}
