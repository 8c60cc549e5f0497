#include "train/fill.h"

namespace cloze {

namespace {

constexpr std::string_view blank = "[MASK]";

/// The text between the blanks.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t at = 0; (at = text.find(blank, begin)) != std::string::npos; begin = at + blank.size()) parts.push_back(text.substr(begin, at - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

std::vector<std::vector<Candidate>> fill(const LoadedRun& given, const std::string& text, int64_t top) {
  LoadedRun run = given;
  for (const auto& o : given.config.objectives)
    if (std::holds_alternative<RtdConfig>(o)) take_generator(run);   // the discriminator tells, the generator fills
  at::NoGradGuard no_grad;
  const auto parts = parts_of(text);
  require<ConfigError>(parts.size() > 1, "'", text, "' has no [MASK] to fill; write [MASK] for each blank");
  const bool predicts = std::any_of(run.config.objectives.begin(), run.config.objectives.end(), [](const auto& o) { return std::holds_alternative<MlmConfig>(o); });
  require<ConfigError>(predicts, run.folder, ": was trained without masked language modelling, so it cannot fill blanks; train it with `kind: mlm`");
  require<CheckpointError>(run.has_tokenizer, run.folder, ": has no tokenizer, so it cannot read text; import it with its tokenizer files");
  const auto& special = run.tokenizer.special();
  std::vector<int64_t> ids{special.cls}, places;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto part = parts[i];
    // Byte-level pieces carry the space before a word: that of the blank goes with it.
    if (run.tokenizer.kind() == "byte_bpe" && i + 1 < parts.size() && !part.empty() && part.back() == ' ') part.pop_back();
    for (const auto id : run.tokenizer.encode(part)) ids.push_back(id);
    if (i + 1 == parts.size()) break;
    places.push_back(static_cast<int64_t>(ids.size()));
    ids.push_back(special.mask);
  }
  ids.push_back(special.sep);
  const int64_t most = encoder_of(run.config.model).longest_input();
  require<ConfigError>(static_cast<int64_t>(ids.size()) <= most, "the text has ", ids.size(), " tokens, the model reads ", most, "; shorten it");
  const auto outputs = run.network->outputs({.input_ids = at::tensor(ids, at::kLong).unsqueeze(0)});
  Tensor logits;
  for (const auto& [name, tensor] : outputs)
    if (name == "prediction_logits") logits = tensor[0];   // [T, V]
  std::vector<std::vector<Candidate>> found;
  for (const auto place : places) {
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
