// Rows of words in languages without spaces between them.
#include "core/random.h"
#include "core/config/config.h"
#include "models/families/bart.h"
#include "objectives/kinds.h"
#include "run/config/load_config.h"
#include "tests/support/catch.h"
#include "tests/support/tiny.h"
#include "train/inspection/inspect.h"

using namespace cloze;

namespace {

using Parts = std::vector<std::string>;

/// A language: who, where and what, of which sentences are made.
struct Unspaced {
  std::string name;
  Parts who, where, what;
};

const std::vector<Unspaced> unspaced_languages = {
    {"Chinese",
     {"小猫", "老朋友", "隔壁的老师", "几个孩子", "年轻的渔夫"},
     {"在花园里", "在安静的车站", "在海边的小镇", "在山上的图书馆", "一边喝茶一边"},
     {"读一封很长的信。", "学会了新的歌。", "寻找昨天的报纸。", "慢慢地走回家。", "忘记了约定。"}},
    {"Japanese",
     {"猫は", "古い友人が", "隣の先生は", "カメラを持った旅人が", "子供たちは"},
     {"庭で", "静かな駅で", "海辺の町で", "山の上の図書館で", "コーヒーを飲みながら"},
     {"長い手紙を読んでいました。", "新しい歌を覚えました。", "昨日の新聞を探している。", "ゆっくり歩き出した。",
      "約束を忘れてしまった。"}},
    {"Thai",
     {"แมวตัวเล็ก", "เพื่อนเก่าของฉัน", "ครูที่โรงเรียน", "เด็กหลายคน", "ชาวประมง"},
     {"ในสวนหลังบ้าน", "ที่สถานีรถไฟ", "ริมทะเล", "บนภูเขาสูง", "ใต้ต้นไม้ใหญ่"},
     {"อ่านจดหมายฉบับยาว", "ร้องเพลงใหม่", "ดื่มน้ำเย็น", "เดินช้าๆกลับบ้าน", "ลืมสัญญาเมื่อวาน"}},
    {"Lao",
     {"ແມວນ້ອຍ", "ໝູ່ເກົ່າ", "ນາຍຄູ", "ເດັກນ້ອຍ", "ຊາວປະມົງ"},
     {"ໃນສວນ", "ແຄມແມ່ນ້ຳ", "ຢູ່ສະຖານີ", "ເທິງພູ", "ກ້ອງຕົ້ນໄມ້"},
     {"ອ່ານຈົດໝາຍ", "ຮ້ອງເພງໃໝ່", "ດື່ມນ້ຳເຢັນ", "ຍ່າງກັບບ້ານ", "ລືມຄຳສັນຍາ"}}};

/// Documents of paragraphs of three sentences, without any space.
std::string text_of(const Unspaced& language) {
  auto stream = Rng(7).stream("sentences");
  std::string text;
  for (int document = 0; document < 60; ++document) {
    for (int sentence = 0; sentence < 12; ++sentence) {
      for (const auto* parts : {&language.who, &language.where, &language.what})
        text += (*parts)[stream.below(parts->size())];
      if (sentence % 3 == 2) text += "\n";
    }
    text += "\n";
  }
  return text;
}

/// The text of a language by a tokenizer that is trained on it.
std::string prepare_unspaced(const TempDir& dir, const Unspaced& language, TokenizerKind kind) {
  PrepareOptions options;
  options.inputs = {dir.write(language.name + ".txt", text_of(language))};
  options.out = dir / (language.name + "-" + name_of(kind));
  options.train_kind = kind;
  options.vocab_size = kind == TokenizerKind::byte_bpe ? 400 : 200;
  options.threads = 1;
  prepare(options);
  return options.out;
}

MlmConfig words_of(MlmConfig mlm) {
  mlm.unit = MaskingUnit::word;
  return mlm;
}

void check_all(const Inspection& inspection) {
  for (const auto& check : inspection.checks) {
    INFO(check.name << " " << check.observed << " " << check.expected);
    CHECK(check.passed);
  }
}

constexpr int64_t rows_looked_at = 400;

/// The rows of `objective` predict as much as those of single tokens, and at most so many more of them nothing.
void check_as_tokens(RunConfig& config, const MlmConfig& objective, const MlmConfig& of_tokens, int64_t more_empty) {
  const auto inspected = [&](const MlmConfig& mlm) {
    config.objectives = {mlm};
    return inspect_objective(config, 0, rows_looked_at);
  };
  const auto found = inspected(objective), single = inspected(of_tokens);
  const auto share = [](const Inspection& all) { return all.facts["predicted_share"].get<double>(); };
  const auto empty = [](const Inspection& all) { return all.facts["sequences_without_prediction"].get<int64_t>(); };
  CHECK(share(found) == Approx(share(single)).epsilon(0.1));
  CHECK(empty(found) <= empty(single) + more_empty);
  check_all(found);
}

}  // namespace

TEST_CASE(
    "words of Chinese, Japanese, Thai and Lao are predicted as often as single tokens, by every tokenizer and rule",
    "[inspect]") {
  TempDir dir;
  for (const auto& language : unspaced_languages)
    for (const auto kind : {TokenizerKind::byte_bpe, TokenizerKind::unigram, TokenizerKind::wordpiece}) {
      INFO(language.name << " " << name_of(kind));
      auto config = tiny_run(dir, 1);
      config.data.tokens = prepare_unspaced(dir, language, kind);
      check_as_tokens(config, words_of({}), {}, 0);
      check_as_tokens(config, preset<MlmConfig>("albert"), {}, 0);
      // One draw for each word leaves a row of 11 words empty in 0.85^11 = 17 % of all cases, in any language.
      const auto independent = preset<MlmConfig>("huggingface");
      check_as_tokens(config, words_of(independent), independent, rows_looked_at / 5);
    }
}

TEST_CASE("the ready config of ALBERT predicts in every row of a text without spaces", "[inspect]") {
  TempDir dir;
  for (const auto& language : unspaced_languages) {
    INFO(language.name);
    const auto tokens = prepare_unspaced(dir, language, TokenizerKind::byte_bpe);
    const auto config =
        decode<RunConfig>(load_config(SOURCE_DIR "/configs/albert/tiny.yaml", {"data.tokens=" + tokens}));
    const auto found = inspect_objective(config, 0, 200);
    CHECK(found.facts["sequences_without_prediction"] == 0);
    CHECK(found.facts["predicted_share"].get<double>() == Approx(0.15).epsilon(0.1));
    check_all(found);
  }
}

TEST_CASE("the spans of BART hide as much of a text without spaces as of one with words of single tokens",
          "[inspect]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  BartConfig model;
  model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64;
  config.model = model;
  config.objectives = {DenoisingConfig{}};
  const auto hidden = [&](const std::string& tokens) {
    config.data.tokens = tokens;
    const auto found = inspect_objective(config, 0, 400);
    check_all(found);
    return found.facts["hidden_share"].get<double>();
  };
  const double with_spaces = hidden(config.data.tokens);
  for (const auto& language : unspaced_languages) {
    INFO(language.name);
    CHECK(hidden(prepare_unspaced(dir, language, TokenizerKind::byte_bpe)) == Approx(with_spaces).epsilon(0.15));
  }
}
