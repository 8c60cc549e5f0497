#include "inference/generation/fill.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "core/contains.h"
#include "data/tokenizers/scripts.h"
#include "data/tokenizers/utf8.h"
#include "objectives/plm/permutation.h"
#include "objectives/rows.h"
#include "run/device.h"
#include "inference/generation/generate.h"

namespace cloze {

namespace {

constexpr std::string_view mask_text = "[MASK]";

/// The segments of text between the masks, of which there is at least one.
std::vector<std::string> segments_of(const std::string& text) {
  std::vector<std::string> segments;
  size_t begin = 0;
  for (size_t at = 0; (at = text.find(mask_text, begin)) != std::string::npos; begin = at + mask_text.size())
    segments.push_back(text.substr(begin, at - begin));
  segments.push_back(text.substr(begin));
  require<FillError>(segments.size() > 1, "'", text, "' has no [MASK] to fill; write [MASK] for each blank");
  return segments;
}

void check_length(size_t tokens, int64_t max_tokens) {
  require<FillError>(static_cast<int64_t>(tokens) <= max_tokens, "the text has ", tokens,
                     " tokens, the model reads at most ", max_tokens, "; shorten it");
}

/// Logits [masks, V] at the `masked` positions of a text. Two-stream models predict them as target positions that no
/// token attends to; other models read [MASK] there.
Tensor mask_logits(const LoadedRun& run, std::vector<int64_t> text, const std::vector<int64_t>& masked) {
  const auto& special = run.tokenizer.special();
  const auto device = device_of(*run.network);
  const auto row = [&](const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong).unsqueeze(0).to(device); };
  if (backbone_of(run.config.model).is_two_stream()) {
    const auto line = plm_row(std::move(text), false, special);
    const auto length = static_cast<int64_t>(line.ids.size());
    const auto visible = at::ones({1, length, length}, at::kBool).index_fill_(2, at::tensor(masked, at::kLong), false);
    return run.network
        ->outputs({.input_ids = row(line.ids),
                   .token_type_ids = row(line.segments),
                   .visible = visible.to(device),
                   .target_positions = row(masked)})
        .back()
        .second[0]
        .to(at::kCPU);
  }
  if (predicts_shifted(run.config.objectives)) {
    const auto& model = backbone_of(run.config.model);
    // The text begins and ends like the rows of training; a separator precedes a mask at the beginning of a text.
    const bool has_bos = !model.is_decoder() || model.prepend_bos;
    const int64_t begins = has_bos || masked[0] == 0 ? 1 : 0;
    if (begins) text.insert(text.begin(), has_bos ? special.cls : special.sep);
    if (!model.is_decoder()) text.push_back(special.sep);
    Inputs inputs{.input_ids = row(text)};
    if (model.is_decoder()) inputs.prefix = row({std::ssize(text)}).squeeze(0);
    for (const auto& [name, tensor] : run.network->outputs(inputs))
      if (name == "logits") return tensor[0].to(at::kCPU).index_select(0, at::tensor(masked, at::kLong) + begins - 1);
  }
  text.insert(text.begin(), special.cls);
  text.push_back(special.sep);
  for (const auto& [name, tensor] : run.network->outputs({.input_ids = row(text)}))
    if (name == "prediction_logits") return tensor[0].to(at::kCPU).index_select(0, at::tensor(masked, at::kLong) + 1);
  return {};
}

/// Throws if the run cannot fill blanks.
void check_fills(const LoadedRun& run) {
  const auto& objectives = run.config.objectives;
  const bool predicts = any_that(objectives, &ObjectiveKind::fills_masks);
  require<ConfigError>(
      predicts, run.folder,
      ": was trained without masked or permutation language modelling, so it cannot fill blanks; train a model with "
      "`kind: mlm`, `kind: mntp`, `kind: plm`, or an encoder-decoder with span_corruption or denoising");
  require_tokenizer(run);
  require<ConfigError>(
      run.tokenizer.special().mask >= 0, run.folder,
      ": its tokenizer has no [MASK] or <mask>, which replaces a blank; fill with a model that has one");
}

bool is_letter(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0 || (byte & 0x80) != 0; }

/// Whether a text begins in a script that has no spaces between words.
bool begins_without_spaces(const std::string& text) {
  size_t at = 0;
  return is_written_without_spaces(next_code_point(text, at));
}

/// A token as a reader sees it: a word, or `-` and the rest of one in a script with spaces between words.
std::string shown_word(const Tokenizer& tokenizer, int64_t id) {
  auto word = tokenizer.decode(std::vector<int64_t>{id});
  word.erase(0, word.find_first_not_of(' '));
  if (word.empty()) {
    const auto piece = tokenizer.piece(id);
    const bool is_space = piece == "\u2581" || piece == "\u0120";  // of SentencePiece, and of byte-level vocabularies
    return is_space ? "(space)" : piece;
  }
  const bool is_whole = tokenizer.starts_word(id) || !is_letter(word[0]) || begins_without_spaces(word);
  return is_whole ? word : "-" + word;
}

/// The tokens that continue a word with letters, so that they cannot follow a space; none for a vocabulary that does
/// not mark where words begin.
std::vector<int64_t> continuations(const Tokenizer& tokenizer) {
  std::vector<int64_t> ids;
  bool marks_words = false;
  for (int64_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.is_special(id)) continue;
    if (tokenizer.starts_word(id)) {
      marks_words = true;
      continue;
    }
    const auto text = tokenizer.decode(std::vector<int64_t>{id});
    if (!text.empty() && is_letter(text[0])) ids.push_back(id);
  }
  return marks_words ? ids : std::vector<int64_t>{};
}

/// The `top` most probable tokens. Special tokens and rows beyond the tokenizer's vocabulary are excluded.
std::vector<MaskPrediction> candidates(const Tokenizer& tokenizer, const Tensor& logits, int64_t top,
                                       const std::vector<int64_t>& excluded) {
  auto probabilities = at::softmax(logits.to(at::kFloat), 0);
  for (int64_t id = 0; id < probabilities.size(0); ++id)
    if (tokenizer.is_special(id)) probabilities[id] = 0;
  if (!excluded.empty()) probabilities.index_fill_(0, at::tensor(excluded, at::kLong), 0);
  const auto [values, order] = probabilities.topk(std::min(top, probabilities.size(0)));
  std::vector<MaskPrediction> list;
  for (int64_t i = 0; i < values.size(0); ++i) {
    const auto id = order[i].item<int64_t>();
    list.push_back({id, tokenizer.piece(id), shown_word(tokenizer, id), values[i].item<double>()});
  }
  return list;
}

}  // namespace

std::vector<std::vector<MaskPrediction>> fill(const LoadedRun& opened, const std::string& text, int64_t top) {
  LoadedRun run = opened;
  // Of rtd the generator predicts tokens, not the discriminator.
  if (any_that(opened.config.objectives, &ObjectiveKind::replaces_tokens)) take_generator(run);
  at::NoGradGuard no_grad;
  const auto segments = segments_of(text);
  check_fills(run);
  std::vector<int64_t> ids, masked;
  for (size_t i = 0; i < segments.size(); ++i) {
    auto segment = segments[i];
    // Byte-level tokens include the space before a word, so the predicted token brings its own.
    if (run.tokenizer.kind() == "byte_bpe" && i + 1 < segments.size() && !segment.empty() && segment.back() == ' ')
      segment.pop_back();
    for (const auto id : i > 0 ? run.tokenizer.encode_after(segment) : run.tokenizer.encode(segment)) ids.push_back(id);
    if (i + 1 == segments.size()) break;
    masked.push_back(static_cast<int64_t>(ids.size()));
    ids.push_back(run.tokenizer.special().mask);
  }
  check_length(ids.size() + 2, backbone_of(run.config.model).max_input_length());
  const auto logits = mask_logits(run, std::move(ids), masked);  // [masks, V]
  const auto continuing = continuations(run.tokenizer);
  std::vector<std::vector<MaskPrediction>> predictions;
  for (int64_t mask = 0; mask < logits.size(0); ++mask) {
    const auto& before = segments[static_cast<size_t>(mask)];
    const bool begins_word = !before.empty() && std::isspace(static_cast<unsigned char>(before.back())) != 0;
    predictions.push_back(
        candidates(run.tokenizer, logits[mask], top, begins_word ? continuing : std::vector<int64_t>{}));
  }
  return predictions;
}

namespace {

/// The token that replaces masked text in the encoder's input.
Placeholder masked_by(const LoadedRun& run) {
  if (!backbone_of(run.config.model).is_encoder_decoder()) return Placeholder::none;
  const auto* objective = generative_of(run.config.objectives);
  return objective ? as_kind(*objective).blank() : Placeholder::none;
}

/// The segments of a text with the tokens between them that `generated` has after each sentinel.
std::vector<int64_t> with_spans(const std::vector<int64_t>& generated,
                                const std::vector<std::vector<int32_t>>& segments,
                                const std::vector<int64_t>& sentinels, int64_t eos) {
  const auto ends = [&](int64_t id) { return id == eos || contains(sentinels, id); };
  std::vector<int64_t> ids;
  for (size_t i = 0; i < segments.size(); ++i) {
    ids.insert(ids.end(), segments[i].begin(), segments[i].end());
    if (i + 1 == segments.size()) break;
    const auto at = std::find(generated.begin(), generated.end(), sentinels[i]);
    if (at != generated.end()) std::copy(at + 1, std::find_if(at + 1, generated.end(), ends), std::back_inserter(ids));
  }
  return ids;
}

/// A text with blanks as a prompt, and the segments between these.
struct BlankedText {
  std::vector<std::vector<int32_t>> segments{};
  Prompt prompt{};
};

/// `spans`: blanks are sentinels, not masks.
BlankedText blanked_text(const LoadedRun& run, const std::vector<std::string>& segments, bool spans) {
  const auto& model = backbone_of(run.config.model);
  const auto& special = run.tokenizer.special();
  BlankedText text{.prompt = {.prefix = {decoding_ids_of(run.config.model).decoder_start_token_id}}};
  auto& source = text.prompt.source;
  if (model.prepend_bos) source.push_back(special.cls);
  for (size_t i = 0; i < segments.size(); ++i) {
    const auto& ids =
        text.segments.emplace_back(i > 0 ? run.tokenizer.encode_after(segments[i]) : run.tokenizer.encode(segments[i]));
    source.insert(source.end(), ids.begin(), ids.end());
    if (i + 1 < segments.size()) source.push_back(spans ? run.tokenizer.sentinels()[i] : special.mask);
  }
  if (model.eos_token_id >= 0) source.push_back(model.eos_token_id);
  return text;
}

/// The search for the texts of blanks, wide enough for `top` different ones.
SearchConfig search_of_blanks(const LoadedRun& run, const BlankedText& text, int64_t top, bool spans) {
  const auto& model = backbone_of(run.config.model);
  const auto& sentinels = run.tokenizer.sentinels();
  const auto segments = text.segments.size();
  const int64_t num_beams = std::max<int64_t>(4, std::min(2 * top, top + 16));
  const int64_t expected =
      spans ? 12 * static_cast<int64_t>(segments) : static_cast<int64_t>(text.prompt.source.size()) + 16;
  const int64_t max_new_tokens = std::min(expected, model.max_input_length() - 1);
  // If text follows the last mask, a span corruption model generates the next sentinel after the last span.
  const bool ends_with_sentinel = spans && segments <= sentinels.size() && !text.segments.back().empty();
  return {.max_new_tokens = std::max<int64_t>(1, max_new_tokens),
          .num_beams = num_beams,
          .num_return_sequences = num_beams,
          .eos_token_id = ends_with_sentinel ? sentinels[segments - 1] : model.eos_token_id,
          .pad_token_id = model.pad_token_id,
          .forced_bos_token_id = decoding_ids_of(run.config.model).forced_bos_token_id};
}

}  // namespace

bool fills_by_generating(const LoadedRun& run) { return masked_by(run) != Placeholder::none; }

std::vector<std::pair<std::string, double>> fill_spans(const LoadedRun& run, const std::string& text, int64_t top) {
  require_tokenizer(run);
  const auto segments = segments_of(text);
  const auto& model = backbone_of(run.config.model);
  const auto& sentinels = run.tokenizer.sentinels();
  const bool spans = masked_by(run) == Placeholder::sentinel;
  require<FillError>(!spans || segments.size() <= sentinels.size() + 1, "the text has ", segments.size() - 1,
                     " blanks, the tokenizer has ", sentinels.size(),
                     sentinels.size() == 1 ? " sentinel" : " sentinels", "; fill fewer at once");
  require<ConfigError>(
      spans || run.tokenizer.special().mask >= 0, run.folder,
      ": its tokenizer has no [MASK] or <mask>, which replaces a blank; fill with a model that has one");
  const auto blanked = blanked_text(run, segments, spans);
  check_length(blanked.prompt.source.size(), model.max_input_length());
  std::vector<std::pair<std::string, double>> filled_texts;
  const auto texts = generate_ids(*run.network, {blanked.prompt}, search_of_blanks(run, blanked, top, spans));
  for (const auto& one : texts[0]) {
    const auto text_ids = spans ? with_spans(one.ids, blanked.segments, sentinels, model.eos_token_id) : one.ids;
    // Hypotheses that differ only after the last mask give the same text: the best one is kept.
    auto filled = run.tokenizer.decode(text_ids);
    if (std::none_of(filled_texts.begin(), filled_texts.end(),
                     [&](const auto& other) { return other.first == filled; }))
      filled_texts.emplace_back(std::move(filled), one.score);
    if (static_cast<int64_t>(filled_texts.size()) == top) break;
  }
  return filled_texts;
}

std::string filled_text(const Tokenizer& tokenizer, const std::string& text, const std::vector<MaskPrediction>& choice,
                        const FilledMarks& marks) {
  const auto segments = segments_of(text);
  std::string out = segments[0];
  for (size_t i = 0; i < choice.size() && i + 1 < segments.size(); ++i) {
    auto word = tokenizer.decode(std::vector<int64_t>{choice[i].id});
    const bool joins = !tokenizer.starts_word(choice[i].id);
    const bool has_space = !word.empty() && word[0] == ' ';
    if (has_space) word.erase(0, 1);
    if (has_space && !out.empty() && out.back() != ' ') out += ' ';
    while (joins && !out.empty() && out.back() == ' ') out.pop_back();
    out += marks.before + word + marks.after + segments[i + 1];
  }
  return out;
}

}  // namespace cloze
