#include "generation/fill.h"

#include <algorithm>

#include "objectives/permutation.h"
#include "generation/generate.h"

namespace cloze {

namespace {

constexpr std::string_view blank = "[MASK]";

/// The text between the blanks.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at = 0; (at = text.find(blank, begin)) != std::string::npos; begin = at + blank.size())
    parts.push_back(text.substr(begin, at - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

/// Scores [blanks, V] of what stands at `places` of a text. Two streams are asked for places whose content nobody sees;
/// others read [MASK] there.
Tensor blank_logits(const LoadedRun& run, std::vector<int64_t> text, const std::vector<int64_t>& places) {
  const auto& special = run.tokenizer.special();
  const auto row = [](const std::vector<int64_t>& ids) { return at::tensor(ids, at::kLong).unsqueeze(0); };
  if (backbone_of(run.config.model).is_two_stream()) {
    const auto line = plm_row(std::move(text), false, special);
    const auto length = static_cast<int64_t>(line.ids.size());
    const auto visible = at::ones({1, length, length}, at::kBool).index_fill_(2, at::tensor(places, at::kLong), false);
    return run.network
        ->outputs({.input_ids = row(line.ids),
                   .token_type_ids = row(line.segments),
                   .visible = visible,
                   .target_positions = row(places)})
        .back()
        .second[0];
  }
  text.insert(text.begin(), special.cls), text.push_back(special.sep);
  for (const auto& [name, tensor] : run.network->outputs({.input_ids = row(text)}))
    if (name == "prediction_logits") return tensor[0].index_select(0, at::tensor(places, at::kLong) + 1);
  return {};
}

}  // namespace

std::vector<std::vector<Candidate>> fill(const LoadedRun& given, const std::string& text, int64_t top) {
  LoadedRun run = given;
  for (const auto& o : given.config.objectives)
    if (std::holds_alternative<RtdConfig>(o)) take_generator(run);  // the discriminator tells, the generator fills
  at::NoGradGuard no_grad;
  const auto parts = parts_of(text);
  require<ConfigError>(parts.size() > 1, "'", text, "' has no [MASK] to fill; write [MASK] for each blank");
  const bool predicts = std::any_of(run.config.objectives.begin(), run.config.objectives.end(), [](const auto& o) {
    return std::holds_alternative<MlmConfig>(o) || std::holds_alternative<PlmConfig>(o);
  });
  require<ConfigError>(
      predicts, run.folder,
      ": was trained without masked or permutation language modelling, so it cannot fill blanks; train a model with "
      "`kind: mlm`, `kind: plm`, or one that writes with span_corruption or denoising");
  require<CheckpointError>(run.has_tokenizer, run.folder,
                           ": has no tokenizer, so it cannot read text; import it with its tokenizer files");
  const auto& special = run.tokenizer.special();
  require<ConfigError>(
      special.mask >= 0, run.folder,
      ": its tokenizer has no [MASK] or <mask>, the token in the place of a blank; fill with a model that has one");
  std::vector<int64_t> ids, places;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto part = parts[i];
    // Byte-level pieces carry the space before a word: that of the blank goes with it.
    if (run.tokenizer.kind() == "byte_bpe" && i + 1 < parts.size() && !part.empty() && part.back() == ' ')
      part.pop_back();
    for (const auto id : i > 0 ? run.tokenizer.encode_after(part) : run.tokenizer.encode(part)) ids.push_back(id);
    if (i + 1 == parts.size()) break;
    places.push_back(static_cast<int64_t>(ids.size()));
    ids.push_back(special.mask);
  }
  const int64_t most = backbone_of(run.config.model).longest_input();
  require<ConfigError>(static_cast<int64_t>(ids.size()) + 2 <= most, "the text has ", ids.size() + 2,
                       " tokens, the model reads ", most, "; shorten it");
  const auto logits = blank_logits(run, std::move(ids), places);  // [blanks, V]
  std::vector<std::vector<Candidate>> found;
  for (int64_t place = 0; place < logits.size(0); ++place) {
    // Special tokens and rows beyond the tokenizer are no answers.
    auto probabilities = at::softmax(logits[place].to(at::kFloat), 0);
    for (int64_t id = 0; id < probabilities.size(0); ++id)
      if (run.tokenizer.is_special(id)) probabilities[id] = 0;
    const auto [values, order] = probabilities.topk(std::min(top, probabilities.size(0)));
    auto& list = found.emplace_back();
    for (int64_t i = 0; i < values.size(0); ++i) {
      const auto id = order[i].item<int64_t>();
      list.push_back({id, run.tokenizer.piece(id), values[i].item<double>()});
    }
  }
  return found;
}

namespace {

/// What a decoder was trained to read in the place of hidden text.
enum class Blank { none, sentinel, mask };

Blank blank_of(const LoadedRun& run) {
  if (!backbone_of(run.config.model).is_encoder_decoder()) return Blank::none;
  for (const auto& o : run.config.objectives) {
    if (std::holds_alternative<DenoisingConfig>(o)) return Blank::mask;
    const auto* spans = std::get_if<SpanCorruptionConfig>(&o);
    if (!spans) continue;
    if (uses_sentinels(spans->corruption)) return Blank::sentinel;
    const bool masks = spans->corruption == Corruption::mass || spans->corruption == Corruption::bert;
    return masks ? Blank::mask : Blank::none;
  }
  return Blank::none;
}

}  // namespace

bool fills_by_generating(const LoadedRun& run) { return blank_of(run) != Blank::none; }

std::vector<std::pair<std::string, double>> fill_spans(const LoadedRun& run, const std::string& text, int64_t top) {
  require<CheckpointError>(run.has_tokenizer, run.folder,
                           ": has no tokenizer, so it cannot read text; import it with its tokenizer files");
  const auto parts = parts_of(text);
  require<ConfigError>(parts.size() > 1, "'", text, "' has no [MASK] to fill; write [MASK] for each blank");
  const auto& model = backbone_of(run.config.model);
  const auto& special = run.tokenizer.special();
  const auto& sentinels = run.tokenizer.sentinels();
  const bool spans = blank_of(run) == Blank::sentinel;
  require<ConfigError>(!spans || parts.size() <= sentinels.size() + 1, "the text has ", parts.size() - 1,
                       " blanks, the tokenizer ", sentinels.size(), " sentinels; fill fewer at once");
  require<ConfigError>(
      spans || special.mask >= 0, run.folder,
      ": its tokenizer has no [MASK] or <mask>, the token in the place of a blank; fill with a model that has one");
  const auto decoding = decoding_ids_of(run.config.model);
  Prompt prompt{.beginning = {decoding.decoder_start_token_id}};
  if (model.texts_begin) prompt.source.push_back(special.cls);
  std::vector<std::vector<int32_t>> pieces;
  for (size_t i = 0; i < parts.size(); ++i) {
    pieces.push_back(i > 0 ? run.tokenizer.encode_after(parts[i]) : run.tokenizer.encode(parts[i]));
    prompt.source.insert(prompt.source.end(), pieces.back().begin(), pieces.back().end());
    if (i + 1 < parts.size()) prompt.source.push_back(spans ? sentinels[i] : special.mask);
  }
  if (model.eos_token_id >= 0) prompt.source.push_back(model.eos_token_id);
  const int64_t beams = std::max<int64_t>(4, std::min(2 * top, top + 16)),
                length = static_cast<int64_t>(prompt.source.size());
  const int64_t wanted = spans ? 12 * static_cast<int64_t>(parts.size()) : length + 16;
  const int64_t most = std::min(wanted, model.longest_input() - 1);
  // Where text follows the last blank a model of spans goes on with the next sentinel, and what is wanted ends there.
  const bool goes_on = spans && parts.size() <= sentinels.size() && !pieces.back().empty();
  const SearchConfig search{.max_new_tokens = std::max<int64_t>(1, most),
                            .num_beams = beams,
                            .num_return_sequences = beams,
                            .eos_token_id = goes_on ? sentinels[parts.size() - 1] : model.eos_token_id,
                            .pad_token_id = model.pad_token_id,
                            .forced_bos_token_id = decoding.forced_bos_token_id};
  std::vector<std::pair<std::string, double>> found;
  const auto texts = generate_ids(*run.network, {prompt}, search);
  for (const auto& one : texts[0]) {
    std::vector<int64_t> whole = one.ids;
    if (spans) {  // what stands behind each sentinel goes to its blank
      whole.clear();
      for (size_t i = 0; i < parts.size(); ++i) {
        whole.insert(whole.end(), pieces[i].begin(), pieces[i].end());
        const auto at = i + 1 < parts.size() ? std::find(one.ids.begin(), one.ids.end(), sentinels[i]) : one.ids.end();
        for (auto id = at == one.ids.end() ? at : at + 1;
             id != one.ids.end() && std::find(sentinels.begin(), sentinels.end(), *id) == sentinels.end() &&
             *id != model.eos_token_id;
             ++id)
          whole.push_back(*id);
      }
    }
    // Several endings behind the last blank give one text: its best counts.
    auto text_of = run.tokenizer.decode(whole);
    if (std::none_of(found.begin(), found.end(), [&](const auto& other) { return other.first == text_of; }))
      found.emplace_back(std::move(text_of), one.score);
    if (static_cast<int64_t>(found.size()) == top) break;
  }
  return found;
}

std::string filled_text(const Tokenizer& tokenizer, const std::string& text, const std::vector<Candidate>& choice) {
  const auto parts = parts_of(text);
  std::string out = parts[0];
  for (size_t i = 0; i < choice.size() && i + 1 < parts.size(); ++i) {
    auto word = tokenizer.decode(std::vector<int64_t>{choice[i].id});
    const bool joins = !tokenizer.starts_word(choice[i].id);
    if (!word.empty() && word[0] == ' ' && (out.empty() || out.back() == ' ')) word.erase(0, 1);
    while (joins && !out.empty() && out.back() == ' ') out.pop_back();
    out += word + parts[i + 1];
  }
  return out;
}

}  // namespace cloze
