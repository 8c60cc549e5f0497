#include "generation/generate.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/tokenizers/utf8.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// Next-token logits from a network that keeps a state of each row.
class DecodingModel final : public NextTokenModel {
 public:
  DecodingModel(Network& network, EncoderOutput encoder_output)
      : network_(network), encoder_output_(std::move(encoder_output)) {
    for (const auto& objective : network.objectives)
      if (objective->head_name() == "lm") head_ = objective.get();
    require<ConfigError>(head_ != nullptr,
                         "this model was not trained to generate text; train it with clm, span_corruption, denoising, "
                         "gap_sentences or pairs, or fill blanks with `cloze fill`");
  }

  /// Feeds tokens [rows, n] without computing logits.
  void feed(const Tensor& tokens) { hidden_ = network_.backbone->decode(tokens, encoder_output_, state_); }

  const float* step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) override {
    if (interrupted) throw Interrupted("stopped");
    const auto ids = at::tensor(tokens, at::kLong).unsqueeze(1);
    bool reordered = false;
    for (size_t i = 0; i < origins.size(); ++i) reordered = reordered || origins[i] != static_cast<int64_t>(i);
    if (reordered) state_ = state_.select(at::tensor(origins, at::kLong));
    feed(ids);
    logits_ =
        head_->outputs(*network_.backbone, hidden_)[0].second.select(1, 0).to(at::kFloat).contiguous();  // [rows, V]
    return logits_.data_ptr<float>();
  }
  int64_t vocab() const override { return backbone_of(network_.model_config()).vocab_size; }

 private:
  Network& network_;
  EncoderOutput encoder_output_;
  DecoderState state_;
  Objective* head_ = nullptr;
  Tensor hidden_, logits_;
};

/// Ids padded on the right, and their attention mask (true = token; undefined: no padding). `masks`: of each row before
/// that, or empty.
std::pair<Tensor, Tensor> padded(const std::vector<std::vector<int64_t>>& rows, int64_t pad,
                                 const std::vector<std::vector<bool>>& masks = {}) {
  size_t longest = 0, shortest = SIZE_MAX;
  for (const auto& row : rows) {
    longest = std::max(longest, row.size());
    shortest = std::min(shortest, row.size());
  }
  auto ids = at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, pad, at::kLong);
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy(rows[r].begin(), rows[r].end(), ids.data_ptr<int64_t>() + r * longest);
  const bool masked = std::any_of(masks.begin(), masks.end(), [](const auto& mask) { return !mask.empty(); });
  if (shortest == longest && !masked) return {ids, Tensor()};
  auto mask = at::zeros(ids.sizes(), at::kBool);
  for (size_t r = 0; r < rows.size(); ++r) {
    auto* real = mask.data_ptr<bool>() + r * longest;
    for (size_t i = 0; i < rows[r].size(); ++i) real[i] = masks.empty() || masks[r].empty() || masks[r][i];
  }
  return {ids, mask};
}

/// The real tokens of a prompt's prefix.
std::vector<int64_t> real_prefix(const Prompt& prompt) {
  if (prompt.prefix_mask.empty()) return prompt.prefix;
  std::vector<int64_t> real;
  for (size_t i = 0; i < prompt.prefix.size(); ++i)
    if (prompt.prefix_mask[i]) real.push_back(prompt.prefix[i]);
  return real;
}

}  // namespace

std::vector<std::vector<GeneratedIds>> generate_ids(Network& network, const std::vector<Prompt>& prompts,
                                                    const SearchConfig& config,
                                                    const std::function<void(int64_t)>& emit) {
  at::NoGradGuard no_grad;
  check(config);
  const auto& model = backbone_of(network.model_config());
  const int64_t rows = rows_of_prompt(config);
  // By prefix length, with padding and without, and padding before the first token: those of a search have the same.
  std::map<std::array<size_t, 3>, std::vector<size_t>> by_length;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& p = prompts[i];
    const auto real = real_prefix(p).size();
    const auto max_length = model.max_input_length(), length = static_cast<int64_t>(real) + config.max_new_tokens;
    require<ConfigError>(real > 0, "the prompt is empty; give a text");
    require<ConfigError>(length <= max_length, "text ", p.number + 1, " has ", counted(real, "token"),
                         " and is to get ", config.max_new_tokens, " more, the model has ", max_length,
                         " positions; shorten the text, or lower --max-new-tokens");
    require<ConfigError>(static_cast<int64_t>(p.source.size()) <= max_length, "text ", p.number + 1, " has ",
                         p.source.size(), " tokens, the model reads at most ", max_length, "; shorten it");
    const auto first = std::find(p.prefix_mask.begin(), p.prefix_mask.end(), true);
    by_length[{p.prefix.size(), real, static_cast<size_t>(first - p.prefix_mask.begin())}].push_back(i);
  }
  std::vector<std::vector<GeneratedIds>> generated_ids(prompts.size());
  for (const auto& [lengths, members] : by_length) {
    std::vector<std::vector<int64_t>> sources, prefixes, fed;
    std::vector<std::vector<bool>> masks;
    std::vector<uint64_t> numbers;
    for (const auto i : members) {
      sources.push_back(prompts[i].source);
      masks.push_back(prompts[i].source_mask);
      prefixes.push_back(prompts[i].prefix);
      fed.push_back(real_prefix(prompts[i]));
      numbers.push_back(prompts[i].number);
    }
    EncoderOutput encoder_output;
    if (model.is_encoder_decoder()) {
      const auto [ids, mask] = padded(sources, model.pad_token_id, masks);
      encoder_output =
          network.backbone->encode({.input_ids = ids, .attention_mask = mask});  // shared by all rows of a prompt
    }
    DecodingModel decoding(network, encoder_output);
    if (const auto real = static_cast<int64_t>(lengths[1]); real > 1)
      decoding.feed(padded(fed, 0).first.narrow(1, 0, real - 1).repeat_interleave(rows, 0));
    auto settings = config;
    settings.prompt_ignore_length = static_cast<int64_t>(lengths[2]);
    auto texts = search(decoding, prefixes, settings, emit, numbers);
    for (size_t k = 0; k < members.size(); ++k) generated_ids[members[k]] = std::move(texts[k]);
  }
  return generated_ids;
}

namespace {

/// The decoded text of ids; invalid UTF-8 is replaced by U+FFFD.
std::string text_of(const Tokenizer& tokenizer, std::span<const int64_t> ids) {
  uint64_t replaced = 0;
  return replace_invalid_utf8(tokenizer.decode(ids), replaced);
}

}  // namespace

std::vector<std::vector<Generated>> generate(const LoadedRun& run, const std::vector<std::string>& texts,
                                             const GenerateOptions& options) {
  require_tokenizer(run);
  const auto& model = backbone_of(run.config.model);
  const auto& special = run.tokenizer.special();
  const auto decoding = decoding_ids_of(run.config.model);
  auto search = options.search;
  if (search.eos_token_id < 0) search.eos_token_id = model.eos_token_id;
  if (search.forced_bos_token_id < 0) search.forced_bos_token_id = decoding.forced_bos_token_id;
  if (search.forced_eos_token_id < 0) search.forced_eos_token_id = decoding.forced_eos_token_id;
  search.pad_token_id = model.pad_token_id;
  // A decoder-only model continues the text, or generates its target after the end token.
  const auto* objective = generative_of(run.config.objectives);
  const bool continues = !model.is_encoder_decoder() && (!objective || as_kind(*objective).continues_source());
  if (options.truncate)
    search.max_new_tokens = std::clamp<int64_t>(
        search.max_new_tokens, 1,
        model.is_encoder_decoder() ? model.max_input_length() - 1 : std::max<int64_t>(1, model.max_input_length() / 2));
  const int64_t max_length =
      model.is_encoder_decoder() ? model.max_input_length() : model.max_input_length() - search.max_new_tokens;
  std::vector<Prompt> prompts;
  for (const auto& text : texts) {
    const auto tokens = run.tokenizer.encode(text);
    auto& prompt = prompts.emplace_back();
    auto& ids = model.is_encoder_decoder() ? prompt.source : prompt.prefix;
    if (model.prepend_bos) ids.push_back(special.cls);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    const bool ends = model.eos_token_id >= 0 &&
                      (model.is_encoder_decoder() || ids.empty() || !continues);  // the separator of texts starts one
    if (ends) ids.push_back(model.eos_token_id);
    if (options.truncate && static_cast<int64_t>(ids.size()) > max_length) {
      ids.resize(static_cast<size_t>(max_length));
      ids.back() = ends ? model.eos_token_id : ids.back();
    }
    if (model.is_encoder_decoder()) prompt.prefix = {decoding.decoder_start_token_id};
    prompt.number = prompts.size() - 1;
  }
  for (const auto& one : run.config.objectives)
    if (const auto warning = as_kind(one).generation_warning(); !warning.empty())
      log_warning("generate", run.folder + ": " + warning);
  const PackedWeights packed(*run.network);
  std::vector<std::vector<Generated>> all;
  for (size_t first = 0; first < prompts.size(); first += static_cast<size_t>(options.batch_size)) {
    const std::vector<Prompt> batch(
        prompts.begin() + static_cast<int64_t>(first),
        prompts.begin() +
            static_cast<int64_t>(std::min(prompts.size(), first + static_cast<size_t>(options.batch_size))));
    // The text is decoded from its start each time, since the spaces around a token depend on the tokens before it.
    const size_t from = continues ? 0 : batch[0].prefix.size();
    std::vector<int64_t> so_far = batch[0].prefix;
    std::string shown;
    std::function<void(int64_t)> emit;
    if (options.emit && texts.size() == 1)
      emit = [&](int64_t id) {
        so_far.push_back(id);
        const auto text = text_of(run.tokenizer, std::span(so_far).subspan(from));
        if (text.size() >= 3 && text.compare(text.size() - 3, 3, "\xEF\xBF\xBD") == 0) return;  // incomplete character
        if (text.size() > shown.size() && text.compare(0, shown.size(), shown) == 0)
          options.emit(text.substr(shown.size())), shown = text;
      };
    const auto lists = generate_ids(*run.network, batch, search, emit);
    for (size_t i = 0; i < lists.size(); ++i) {
      auto& generated = all.emplace_back();
      for (const auto& one : lists[i]) {
        const auto& prompt = batch[i].prefix;
        const auto begin = one.ids.begin() + static_cast<int64_t>(prompt.size());
        const auto end = std::find(begin, one.ids.end(), search.eos_token_id);
        const std::vector<int64_t> ids(one.ids.begin(), end == one.ids.end() ? end : end + 1);
        const auto all_ids = std::span(ids), new_ids = all_ids.subspan(prompt.size());
        const auto text = text_of(run.tokenizer, continues ? all_ids : new_ids);
        const auto prompt_text = continues ? text_of(run.tokenizer, prompt) : "";
        // The continuation is cut from the whole text, which has the right spaces.
        const bool follows = text.compare(0, prompt_text.size(), prompt_text) == 0;
        generated.push_back(
            {.text = text,
             .continuation = follows ? text.substr(prompt_text.size()) : text_of(run.tokenizer, new_ids),
             .prompt_ids = prompt,
             .ids = {new_ids.begin(), new_ids.end()},
             .score = one.score});
      }
    }
    if (emit) {  // text that was held back, and the prompt if no token was generated
      const auto& text = all.back()[0].text;
      options.emit(text.compare(0, shown.size(), shown) == 0 ? text.substr(shown.size()) : "");
    }
  }
  return all;
}

}  // namespace cloze
