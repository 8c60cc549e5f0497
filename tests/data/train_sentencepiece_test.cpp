#include "data/prepare/train_tokenizer.h"

#include <ctime>

#include "core/error.h"
#include "core/interrupt.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

const std::string spec = "--model_type=unigram --num_threads=2 --hard_vocab_limit=false --vocab_size=";

std::vector<std::string> sentences(int count) {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i)
    list.push_back("The cat number " + std::to_string(i * 7919 % 1009) + " sat on mat " + std::to_string(i) + ".");
  return list;
}

}  // namespace

TEST_CASE("SentencePiece trains in a process of its own, to the same bits each time", "[tokenizer]") {
  const auto text = sentences(200);
  const auto one = train_sentencepiece(spec + "60", text, 60);
  CHECK(one.trouble.empty());
  CHECK(one.model.size() > 100);
  CHECK(train_sentencepiece(spec + "60", text, 60).model == one.model);
}

TEST_CASE("what SentencePiece refuses comes back as its words", "[tokenizer]") {
  const auto refused = train_sentencepiece("--model_type=unigram --vocab_size=9000", sentences(3), 9000);
  CHECK(refused.model.empty());
  CHECK_THAT(refused.trouble, Catch::Contains("ocabulary size"));
}

TEST_CASE("the pieces of SentencePiece's log are counted, and not its alphabet", "[tokenizer]") {
  const std::string alphabet = "trainer_interface.cc(409) LOG(INFO) Alphabet size=135\n";
  const std::string round = "unigram_model_trainer.cc(578) LOG(INFO) EM sub_iter=0 size=69585 obj=10.3 num_tokens=5\n";
  CHECK(pieces_in("") == 0);
  CHECK(pieces_in(" size=7") == 7);
  CHECK(pieces_in(alphabet) == 0);
  CHECK(pieces_in(alphabet + round) == 69585);
  CHECK(pieces_in(round + alphabet) == 69585);
}

TEST_CASE("what SentencePiece does is said by the newest line of its log that tells it, with the share that is done",
          "[tokenizer]") {
  std::string log;
  CHECK(phase_in(log) == "reading sentences");
  CHECK(fraction_done(log, 8000) < 0);
  const auto add = [&](const std::string& line) { log += "trainer_interface.cc(428) LOG(INFO) " + line + "\n"; };
  add("Normalizing sentences...");
  CHECK(phase_in(log) == "normalizing sentences");
  add("Alphabet size=135");
  auto bpe = log;
  add("Making suffix array...");
  CHECK(phase_in(log) == "looking for parts that recur");
  add("Extracting frequent sub strings... node_num=44712");
  CHECK(phase_in(log) == "choosing the most frequent parts");
  add("Initialized 88000 seed sentencepieces");
  add("Tokenizing input sentences with whitespace: 200");
  CHECK(phase_in(log) == "counting words");
  CHECK(fraction_done(log, 8000) < 0);
  add("Using 812 sentences for EM training");
  CHECK(phase_in(log) == "estimating probabilities");
  add("EM sub_iter=0 size=88000 obj=10.3 num_tokens=5");
  CHECK(phase_in(log) == "estimating probabilities");
  CHECK(fraction_done(log, 8000) == 0);
  add("EM sub_iter=1 size=27828 obj=10.3 num_tokens=5");
  CHECK(phase_in(log) == "pruning");
  CHECK(fraction_done(log, 8000) == Approx(0.5).epsilon(0.001));  // half of the way from 88,000 to 8,800 in logarithms
  add("EM sub_iter=0 size=8800 obj=10.3 num_tokens=5");
  CHECK(phase_in(log) == "estimating probabilities");
  CHECK(fraction_done(log, 8000) == 1);
  bpe += "bpe_model_trainer.cc(258) LOG(INFO) Added: freq=25 size=2000 all=812 active=75 piece=ab\n";
  CHECK(phase_in(bpe) == "joining pairs");
  CHECK(fraction_done(bpe, 8000) == 0.25);
}

TEST_CASE("a signal ends the training of a tokenizer at once", "[tokenizer]") {
  const std::clock_t start = std::clock();
  interrupts().requested = true;
  CHECK_THROWS_AS(train_sentencepiece(spec + "8000", sentences(100000), 8000), Interrupted);
  interrupts().requested = false;
  CHECK(std::clock() - start < 5 * CLOCKS_PER_SEC);
}
