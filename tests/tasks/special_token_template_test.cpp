// Texts are framed as the published tokenizers frame them, and the class token stands where the family reads it.
#include "tasks/rows/special_token_template.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "models/families/families.h"
#include "tasks/rows/rows.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

using Ids = std::vector<int32_t>;

TaskRow row_of(const Tokenizer& tokenizer, const ModelConfig& model, const TaskItem& item,
               AnyTaskKind kind = "classification") {
  const TaskRowMaker maker(tokenizer, special_token_template(tokenizer, model), {.kind = kind, .max_length = 64});
  std::vector<TaskRow> rows;
  RowCounts counts;
  maker.add(item, 0, rows, counts);
  REQUIRE(rows.size() == 1);
  return rows[0];
}

/// A tokenizer folder of a byte-level vocabulary without merges: ids 0 to 3 are <s>, <pad>, </s> and <unk>.
Tokenizer byte_level(const TempDir& dir, const std::string& name) {
  nlohmann::json vocabulary{{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
  int next = 256, id = 4;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const int code = printable ? b : next++;
    const std::string symbol =
        code < 0x80 ? std::string(1, static_cast<char>(code))
                    : std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    vocabulary[symbol] = id++;
  }
  dir.write(name + "/vocab.json", vocabulary.dump());
  dir.write(name + "/merges.txt", "#version: 0.2\n");
  dir.write(name + "/config.json", nlohmann::json{{"model_type", name}}.dump());
  return Tokenizer::open(dir / name);
}

/// The model of a family as it is when it has its tokenizer.
template <class Family>
ModelConfig model_of(const Tokenizer& tokenizer) {
  Family config;
  config.eos_token_id = tokenizer.special().sep;
  config.pad_token_id = tokenizer.special().filler();
  return config;
}

}  // namespace

TEST_CASE("BERT's family frames [CLS] A [SEP] B [SEP], with segments where it has them", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto item = pair_item("a b", "c");
  for (const auto& model : {model_of<BertConfig>(tokenizer), model_of<AlbertConfig>(tokenizer),
                            model_of<ElectraConfig>(tokenizer), model_of<BigBirdConfig>(tokenizer)}) {
    INFO(kind_of(model));
    const auto row = row_of(tokenizer, model, item);
    CHECK((row.ids == Ids{2, 5, 6, 3, 7, 3}));
    CHECK((row.segments == Ids{0, 0, 0, 0, 1, 1}));
    CHECK(row.class_token == 0);
    CHECK((std::array{row.first_begin, row.first_end, row.second_begin, row.second_end} ==
           std::array<int64_t, 4>{1, 3, 4, 5}));
  }
  for (const auto& model : {model_of<DistilBertConfig>(tokenizer), model_of<ModernBertConfig>(tokenizer)}) {
    const auto row = row_of(tokenizer, model, item);
    CHECK((row.ids == Ids{2, 5, 6, 3, 7, 3}));
    CHECK(row.segments.empty());
  }
  const auto single = row_of(tokenizer, model_of<BertConfig>(tokenizer), text_item("a b"));
  CHECK((single.ids == Ids{2, 5, 6, 3}));
  CHECK((single.segments == Ids{0, 0, 0, 0}));
  CHECK(single.second_begin == single.second_end);
  const auto empty_second = row_of(tokenizer, model_of<BertConfig>(tokenizer), pair_item("a", ""));
  CHECK((empty_second.ids == Ids{2, 5, 3, 3}));
}

TEST_CASE("RoBERTa, Longformer and BART put two </s> between texts; BART's class token is the last one", "[tasks]") {
  TempDir dir;
  const auto tokenizer = byte_level(dir, "roberta");
  const auto a = tokenizer.encode("a")[0], b = tokenizer.encode("b")[0];
  const auto item = pair_item("a", "b");
  for (const auto& model : {model_of<RobertaConfig>(tokenizer), model_of<LongformerConfig>(tokenizer)}) {
    const auto row = row_of(tokenizer, model, item);
    CHECK((row.ids == Ids{0, a, 2, 2, b, 2}));
    CHECK(row.segments.empty());
    CHECK(row.class_token == 0);
  }
  const auto bart = model_of<BartConfig>(tokenizer);
  CHECK((row_of(tokenizer, bart, item).ids == Ids{0, a, 2, 2, b, 2}));
  CHECK(row_of(tokenizer, bart, item).class_token == 5);
  CHECK(row_of(tokenizer, bart, text_item("ab")).class_token == 3);
  // Text that spells the end of a text has no such token, so that the last one is that of the frame.
  const auto spelled = row_of(tokenizer, bart, text_item("a</s>b"));
  CHECK(std::count(spelled.ids.begin(), spelled.ids.end(), 2) == 1);
  CHECK(spelled.class_token == static_cast<int64_t>(spelled.ids.size()) - 1);
  // A window without the answer points at <s>, as in transformers.
  CHECK(row_of(tokenizer, bart, pair_item("a", "b", spans_answer({})), "spans").class_token == 0);
}

TEST_CASE("XLNet's [CLS] is the last token, with a segment of its own", "[tasks]") {
  TempDir dir;
  std::filesystem::create_directories(dir / "xlnet");
  std::filesystem::copy_file(SOURCE_DIR "/tests/data/tokenizers/families/xlnet.model", dir / "xlnet/spiece.model");
  dir.write("xlnet/config.json", R"({"model_type": "xlnet"})");
  const auto tokenizer = Tokenizer::open(dir / "xlnet");
  const auto model = model_of<XlnetConfig>(tokenizer);
  const auto cls = static_cast<int32_t>(tokenizer.special().cls), sep = static_cast<int32_t>(tokenizer.special().sep);
  const auto row = row_of(tokenizer, model, pair_item("cat", "mat"));
  auto wanted = tokenizer.encode("cat");
  const auto first = wanted.size();
  wanted.push_back(sep);
  for (const auto id : tokenizer.encode("mat")) wanted.push_back(id);
  wanted.insert(wanted.end(), {sep, cls});
  CHECK(row.ids == wanted);
  CHECK(row.class_token == static_cast<int64_t>(row.ids.size()) - 1);
  CHECK(row.segments.back() == 2);
  CHECK(row.segments[row.segments.size() - 2] == 1);
  CHECK(row.segments[first] == 0);
  CHECK(row.segments[first + 1] == 1);
  const auto single = row_of(tokenizer, model, text_item("cat"));
  CHECK(single.segments[single.segments.size() - 2] == 0);
  CHECK(single.segments.back() == 2);
  const auto unanswered = row_of(tokenizer, model, pair_item("cat", "mat", spans_answer({})), "spans");
  CHECK(unanswered.gold.labels.at(0) == row.class_token);
}

TEST_CASE("T5 ends each text with </s> and reads its class at the last one", "[tasks]") {
  TempDir dir;
  std::filesystem::create_directories(dir / "t5");
  std::filesystem::copy_file(SOURCE_DIR "/tests/data/tokenizers/families/t5.model", dir / "t5/spiece.model");
  dir.write("t5/config.json", R"({"model_type": "t5"})");
  const auto tokenizer = Tokenizer::open(dir / "t5");
  const auto row = row_of(tokenizer, model_of<T5Config>(tokenizer), pair_item("cat", "mat"));
  const auto end = static_cast<int32_t>(tokenizer.special().sep);
  CHECK(std::count(row.ids.begin(), row.ids.end(), end) == 2);
  CHECK(row.ids.back() == end);
  CHECK(row.class_token == static_cast<int64_t>(row.ids.size()) - 1);
  CHECK(row.segments.empty());
  auto encoder = model_of<T5Config>(tokenizer);
  backbone_of(encoder).architecture = Architecture::encoder;  // as of a run that is fine-tuned on tags
  const auto alone = row_of(tokenizer, encoder, pair_item("cat", "mat"));
  CHECK(alone.ids == row.ids);
  CHECK(alone.class_token == row.class_token);
}

TEST_CASE("GPT-2 reads texts as they are, and its class at the last token, whatever its id", "[tasks]") {
  TempDir dir;
  const auto tokenizer = byte_level(dir, "gpt2");
  const auto model = model_of<Gpt2Config>(tokenizer);
  const auto row = row_of(tokenizer, model, pair_item("a", " b"));
  CHECK(row.ids == tokenizer.encode("a b"));
  CHECK(row.class_token == 2);
  CHECK_THROWS_WITH(row_of(tokenizer, model, text_item("")), Catch::Contains("has no tokens"));
}

TEST_CASE("an encoder's tokenizer without [CLS] is refused", "[tasks]") {
  TempDir dir;
  dir.write("bare/vocab.txt", "[UNK]\na\nb\n");
  const auto tokenizer = Tokenizer::open(dir / "bare");
  CHECK_THROWS_WITH(special_token_template(tokenizer, model_of<BertConfig>(tokenizer)),
                    Catch::Contains("the tokenizer of bert puts no [CLS] or <s> around a text"));
  CHECK_THROWS_WITH(special_token_template(tokenizer, model_of<BartConfig>(tokenizer)),
                    Catch::Contains("the tokenizer of bart puts no </s> after a text"));
}
