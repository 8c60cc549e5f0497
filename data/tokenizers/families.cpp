#include "data/tokenizers/families.h"

#include <algorithm>

#include "core/contains.h"

namespace cloze {

namespace {

const FrameRule bert_frame{
    .before = {FrameToken::cls}, .between = {FrameToken::sep}, .after = {FrameToken::sep}, .segments = true};
const FrameRule roberta_frame{
    .before = {FrameToken::cls}, .between = {FrameToken::sep, FrameToken::sep}, .after = {FrameToken::sep}};
/// XLM-R's and CamemBERT's class frames by bos and eos, whatever sep_token is.
const FrameRule xlm_roberta_frame{
    .before = {FrameToken::bos}, .between = {FrameToken::eos, FrameToken::eos}, .after = {FrameToken::eos}};

OwnSteps of_bytes() { return {.pre_tokenizer = "ByteLevel", .space = OwnSteps::Space::bytes}; }

/// Unigram over words; `space`: whether add_prefix_space changes anything.
OwnSteps of_words(const std::string& normalizer, OwnSteps::Space space) {
  return {.normalizer = normalizer, .pre_tokenizer = "WhitespaceSplit Metaspace", .space = space};
}

/// fairseq's dictionary: four tokens of its own instead of SentencePiece's three.
Renumbering fairseq_pieces(std::vector<std::string> back) {
  back.emplace_back("<mask>");
  return {.front = {"<s>", "<pad>", "</s>", "<unk>"}, .dropped = 3, .back = std::move(back)};
}

const std::vector<std::string> mbart_languages{
    "ar_AR", "cs_CZ", "de_DE", "en_XX", "es_XX", "et_EE", "fi_FI", "fr_XX", "gu_IN", "hi_IN", "it_IT", "ja_XX", "kk_KZ",
    "ko_KR", "lt_LT", "lv_LV", "my_MM", "ne_NP", "nl_XX", "ro_RO", "ru_RU", "si_LK", "tr_TR", "vi_VN", "zh_CN"};

std::vector<std::string> mbart50_languages() {
  auto all = mbart_languages;
  for (const auto* more : {"af_ZA", "az_AZ", "bn_IN", "fa_IR", "he_IL", "hr_HR", "id_ID", "ka_GE", "km_KH",
                           "mk_MK", "ml_IN", "mn_MN", "mr_IN", "pl_PL", "ps_AF", "pt_XX", "sv_SE", "sw_KE",
                           "ta_IN", "te_IN", "th_TH", "tl_XX", "uk_UA", "ur_PK", "xh_ZA", "gl_ES", "sl_SI"})
    all.emplace_back(more);
  return all;
}

/// PEGASUS: padding, end, two masks and 101 unknown tokens instead of SentencePiece's padding and end.
Renumbering pegasus_pieces() {
  Renumbering pieces{.front = {"<pad>", "</s>", "<mask_1>", "<mask_2>"}, .dropped = 2};
  for (int k = 2; k < 103; ++k) pieces.front.push_back("<unk_" + std::to_string(k) + ">");
  return pieces;
}

std::vector<TokenizerFamily> all_families() {
  return {
      {.name = "bert",
       .classes = {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer",
                   "ConvBertTokenizer", "DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer",
                   "DPRReaderTokenizer", "LayoutLMTokenizer", "LxmertTokenizer", "RetriBertTokenizer",
                   "SqueezeBertTokenizer"},
       .model_types = {"bert", "distilbert", "electra", "mobilebert", "convbert", "dpr", "ernie", "layoutlm", "lxmert",
                       "megatron-bert", "nezha", "nomic_bert", "qdqbert", "realm", "retribert", "squeezebert",
                       "visual_bert"},
       .kinds = {"bert", "distilbert", "electra", "performer"},
       .frame = bert_frame,
       .vocabulary = "wordpiece",
       .own_steps = {.normalizer = "BertNormalizer", .pre_tokenizer = "BertPreTokenizer", .lowercases = true}},
      {.name = "modernbert",
       .classes = {},
       .model_types = {},
       .kinds = {"modernbert"},
       .frame = bert_frame,
       .vocabulary = "byte_bpe"},
      {.name = "roberta",
       .classes = {"RobertaTokenizer", "LongformerTokenizer", "BartTokenizer", "LEDTokenizer"},
       .model_types = {"roberta", "longformer", "bart", "led", "data2vec-text", "ibert", "lilt", "mega", "mra",
                       "roberta-prelayernorm"},
       .kinds = {"roberta", "longformer", "bart"},
       .frame = roberta_frame,
       .vocabulary = "byte_bpe",
       .own_steps = of_bytes()},
      {.name = "gpt2",
       .classes = {"GPT2Tokenizer", "CodeGenTokenizer"},
       .model_types = {"gpt2", "codegen", "gpt_neo", "gptj"},
       .kinds = {"gpt2"},
       .frame = {},
       .vocabulary = "byte_bpe",
       .own_steps = of_bytes()},
      {.name = "deberta",
       .classes = {"DebertaTokenizer"},
       .model_types = {"deberta"},
       .kinds = {},
       .frame = bert_frame,
       .vocabulary = "byte_bpe",
       .roles = {{"bos", "[CLS]"}, {"eos", "[SEP]"}},
       .own_steps = of_bytes()},
      {.name = "albert",
       .classes = {"AlbertTokenizer"},
       .model_types = {"albert"},
       .kinds = {"albert"},
       .frame = bert_frame,
       .rules = {.lowercase = true, .strip_accents = true, .split_digit_commas = true, .join_spaces = true},
       .roles = {{"bos", "[CLS]"}, {"eos", "[SEP]"}},
       .own_steps = {.normalizer = "Replace Replace NFKD? StripAccents? Lowercase? Precompiled?",
                     .pre_tokenizer = "WhitespaceSplit Metaspace",
                     .lowercases = true,
                     .may_keep_accents = true,
                     .space = OwnSteps::Space::marks}},
      {.name = "xlnet",
       .classes = {"XLNetTokenizer"},
       .model_types = {"xlnet"},
       .kinds = {"xlnet"},
       .frame = {.between = {FrameToken::sep},
                 .after = {FrameToken::sep, FrameToken::cls},
                 .segments = true,
                 .pads_left = true},
       .rules = {.strip_accents = true, .split_digit_commas = true, .join_spaces = true},
       .own_steps = {.normalizer = "Replace Replace NFKD StripAccents Lowercase? Precompiled?",
                     .pre_tokenizer = "WhitespaceSplit Metaspace",
                     .lowercases = false}},
      {.name = "big_bird",
       .classes = {"BigBirdTokenizer"},
       .model_types = {"big_bird"},
       .kinds = {"bigbird"},
       .frame = bert_frame,
       .own_steps = {.normalizer = "Strip Replace", .pre_tokenizer = "Metaspace", .space = OwnSteps::Space::marks}},
      {.name = "t5",
       .classes = {"T5Tokenizer", "MT5Tokenizer"},
       .model_types = {"t5", "mt5"},
       .kinds = {"t5"},
       .frame = {.between = {FrameToken::eos}, .after = {FrameToken::eos}},
       .sentinels = 100,
       .own_steps = of_words("Precompiled?", OwnSteps::Space::fixed)},
      {.name = "pegasus",
       .classes = {"PegasusTokenizer"},
       .model_types = {"pegasus"},
       .kinds = {"pegasus"},
       .frame = {.after = {FrameToken::eos}},
       .pieces = pegasus_pieces(),
       .own_steps = {.normalizer = "Precompiled Replace", .pre_tokenizer = "Metaspace"}},
      {.name = "xlm_roberta",
       .classes = {"XLMRobertaTokenizer"},
       .model_types = {"xlm-roberta", "xlm-roberta-xl", "xmod"},
       .kinds = {"roberta", "longformer"},
       .frame = xlm_roberta_frame,
       .pieces = fairseq_pieces({}),
       .own_steps = of_words("Precompiled?", OwnSteps::Space::marks)},
      {.name = "camembert",
       .classes = {"CamembertTokenizer"},
       .model_types = {"camembert"},
       .kinds = {"roberta"},
       .frame = xlm_roberta_frame,
       .pieces = {.front = {"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"},
                  .dropped = 1,
                  .back = {"<mask>"}},
       .own_steps = of_words("Precompiled?", OwnSteps::Space::marks)},
      {.name = "barthez",
       .classes = {"BarthezTokenizer"},
       .model_types = {},
       .kinds = {"bart", "mbart"},
       .frame = roberta_frame,
       .own_steps = {.normalizer = "Replace NFC Strip", .pre_tokenizer = "Metaspace", .space = OwnSteps::Space::marks}},
      {.name = "mbart",
       .classes = {"MBartTokenizer"},
       .model_types = {"mbart"},
       .kinds = {"mbart"},
       .frame = {.after = {FrameToken::eos, FrameToken::language}},
       .pieces = fairseq_pieces(mbart_languages),
       .language = "en_XX",
       .own_steps = of_words("", OwnSteps::Space::fixed)},
      {.name = "mbart50",
       .classes = {"MBart50Tokenizer"},
       .model_types = {},
       .kinds = {"mbart"},
       .frame = {.before = {FrameToken::language}, .after = {FrameToken::eos}},
       .pieces = fairseq_pieces(mbart50_languages()),
       .language = "en_XX",
       .own_steps = {.normalizer = "Precompiled? Replace", .pre_tokenizer = "Metaspace"}},
      {.name = "deberta_v2",
       .classes = {"DebertaV2Tokenizer"},
       .model_types = {"deberta-v2"},
       .kinds = {},
       .frame = bert_frame,
       .pieces = {.back = {"[MASK]"}},
       .roles = {{"bos", "[CLS]"}, {"eos", "[SEP]"}},
       .own_steps = {.normalizer = "Lowercase? Replace NFC Strip",
                     .pre_tokenizer = "Punctuation? Metaspace",
                     .lowercases = false,
                     .space = OwnSteps::Space::marks,
                     .without_space = "first"}},
  };
}

template <class Has>
const TokenizerFamily* first(const Has& has) {
  const auto& all = tokenizer_families();
  const auto found = std::find_if(all.begin(), all.end(), has);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

/// Source: transformers 4.57, models/*/tokenization_*.py (the classes over the sentencepiece library);
/// transformers 5.23, convert_slow_tokenizer.py; fairseq, data/dictionary.py.
const std::vector<TokenizerFamily>& tokenizer_families() {
  static const auto families = all_families();
  return families;
}

const TokenizerFamily* family_called(const std::string& name) {
  return first([&](const auto& family) { return family.name == name; });
}

const TokenizerFamily* family_of_class(const std::string& tokenizer_class) {
  const bool fast = tokenizer_class.ends_with("Fast");
  const auto slow = fast ? tokenizer_class.substr(0, tokenizer_class.size() - 4) : tokenizer_class;
  return first([&](const auto& family) { return contains(family.classes, slow); });
}

const TokenizerFamily* family_of_model_type(const std::string& model_type) {
  return first([&](const auto& family) { return contains(family.model_types, model_type); });
}

const TokenizerFamily* family_of_kind(const std::string& kind) {
  return first([&](const auto& family) { return contains(family.kinds, kind); });
}

std::string kind_of_model_type(const std::string& model_type) {
  if (model_type == "xlm-roberta" || model_type == "camembert") return "roberta";
  if (model_type == "big_bird") return "bigbird";
  return model_type == "mt5" ? "t5" : model_type;
}

}  // namespace cloze
