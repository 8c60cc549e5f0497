#include "inference/generation/generate.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/tensor/parallel.h"
#include "core/text.h"
#include "data/tokenizers/utf8.h"
#include "objectives/generative_rows.h"
#include "run/device.h"

namespace cloze {

namespace {

/// Next-token logits from a network that keeps a state of each row.
class DecodingModel final : public NextTokenModel {
 public:
  DecodingModel(Network& network, EncoderOutput encoder_output)
      : network_(network), device_(device_of(network)), encoder_output_(std::move(encoder_output)) {
    for (const auto& objective : network.objectives)
      if (objective->head_name() == "lm") head_ = objective.get();
    require<ConfigError>(head_ != nullptr,
                         "this model was not trained to generate text; train it with clm, span_corruption, denoising, "
                         "gap_sentences or pairs, or fill blanks with `cloze fill`");
  }

  /// Feeds tokens [rows, n] without computing logits.
  void feed(const Tensor& tokens) { hidden_ = network_.backbone->decode(tokens.to(device_), encoder_output_, state_); }

  const float* step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) override {
    if (interrupted) throw Interrupted("stopped");
    const auto ids = at::tensor(tokens, at::kLong).unsqueeze(1);
    bool reordered = false;
    for (size_t i = 0; i < origins.size(); ++i) reordered = reordered || origins[i] != static_cast<int64_t>(i);
    if (reordered) state_ = state_.select(at::tensor(origins, at::kLong).to(device_));
    feed(ids);
    const auto logits = head_->outputs(*network_.backbone, hidden_)[0].second.select(1, 0);  // [rows, V]
    logits_ = logits.to(at::kCPU).to(at::kFloat).contiguous();
    return logits_.data_ptr<float>();
  }
  int64_t vocab() const override { return backbone_of(network_.model_config()).vocab_size; }

 private:
  Network& network_;
  at::Device device_;
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

/// What prompts of one search have in common: the length of the prefix, with padding and without, and padding before
/// the first token.
struct PrefixShape {
  size_t length = 0, real = 0, padding = 0;
  auto operator<=>(const PrefixShape&) const = default;
};

/// The numbers of the prompts of each shape. Throws ConfigError for an empty prompt, and for one that does not fit.
std::map<PrefixShape, std::vector<size_t>> prompts_by_shape(const std::vector<Prompt>& prompts, int64_t max_length,
                                                            int64_t max_new_tokens) {
  std::map<PrefixShape, std::vector<size_t>> shapes;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& p = prompts[i];
    const auto real = real_prefix(p).size();
    require<ConfigError>(real > 0, "the prompt is empty; give a text");
    require<ConfigError>(static_cast<int64_t>(real) + max_new_tokens <= max_length, "text ", p.number + 1, " has ",
                         counted(real, "token"), " and is to get ", max_new_tokens, " more, the model has ", max_length,
                         " positions; shorten the text, or lower --max-new-tokens");
    require<ConfigError>(static_cast<int64_t>(p.source.size()) <= max_length, "text ", p.number + 1, " has ",
                         p.source.size(), " tokens, the model reads at most ", max_length, "; shorten it");
    const auto first = std::find(p.prefix_mask.begin(), p.prefix_mask.end(), true);
    const auto padding = static_cast<size_t>(first - p.prefix_mask.begin());
    shapes[{.length = p.prefix.size(), .real = real, .padding = padding}].push_back(i);
  }
  return shapes;
}

}  // namespace

std::vector<std::vector<GeneratedIds>> generate_ids(Network& network, const std::vector<Prompt>& prompts,
                                                    const SearchConfig& config,
                                                    const std::function<void(int64_t)>& emit) {
  at::NoGradGuard no_grad;
  check(config);
  const auto& model = backbone_of(network.model_config());
  const int64_t rows = rows_of_prompt(config);
  const auto shapes = prompts_by_shape(prompts, model.max_input_length(), config.max_new_tokens);
  std::vector<std::vector<GeneratedIds>> generated_ids(prompts.size());
  for (const auto& [shape, members] : shapes) {
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
      const auto device = device_of(network);
      encoder_output = network.backbone->encode(  // shared by all rows of a prompt
          {.input_ids = ids.to(device), .attention_mask = mask.defined() ? mask.to(device) : mask});
    }
    DecodingModel decoding(network, encoder_output);
    if (const auto real = static_cast<int64_t>(shape.real); real > 1)
      decoding.feed(padded(fed, 0).first.narrow(1, 0, real - 1).repeat_interleave(rows, 0));
    auto settings = config;
    settings.prompt_ignore_length = static_cast<int64_t>(shape.padding);
    auto texts = search(decoding, prefixes, settings, emit, numbers);
    for (size_t k = 0; k < members.size(); ++k) generated_ids[members[k]] = std::move(texts[k]);
  }
  return generated_ids;
}

std::vector<std::vector<GeneratedIds>> generate_in_batches(Network& network, const std::vector<Prompt>& prompts,
                                                           const SearchConfig& config, int64_t batch_size) {
  const auto length = [&](size_t i) { return std::pair(prompts[i].prefix.size(), prompts[i].source.size()); };
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, length);
  std::optional<PackedWeights> packed;
  if (device_of(network).is_cpu()) packed.emplace(network);
  std::vector<std::vector<GeneratedIds>> all(prompts.size());
  const auto run = [&](int64_t begin, int64_t end) {
    std::vector<Prompt> batch;
    for (auto i = begin; i < end; ++i) batch.push_back(prompts[order[static_cast<size_t>(i)]]);
    auto lists = generate_ids(network, batch, config);
    for (auto i = begin; i < end; ++i)
      all[order[static_cast<size_t>(i)]] = std::move(lists[static_cast<size_t>(i - begin)]);
  };
  const auto count = std::ssize(prompts);
  if (packed)
    each_range(count, batch_size, run);
  else
    for (int64_t begin = 0; begin < count; begin += batch_size) run(begin, std::min(count, begin + batch_size));
  return all;
}

namespace {

/// The decoded text of ids; invalid UTF-8 is replaced by U+FFFD.
std::string decoded_text(const Tokenizer& tokenizer, std::span<const int64_t> ids) {
  uint64_t replaced = 0;
  return replace_invalid_utf8(tokenizer.decode(ids), replaced);
}

}  // namespace

SearchConfig search_of(const ModelConfig& config, const GenerateOptions& options) {
  const auto& model = backbone_of(config);
  const auto decoding = decoding_ids_of(config);
  auto search = options.search;
  if (search.eos_token_id < 0) search.eos_token_id = model.eos_token_id;
  if (search.forced_bos_token_id < 0) search.forced_bos_token_id = decoding.forced_bos_token_id;
  if (search.forced_eos_token_id < 0) search.forced_eos_token_id = decoding.forced_eos_token_id;
  search.pad_token_id = model.pad_token_id;
  const int64_t longest = model.max_input_length();
  if (options.truncate)
    search.max_new_tokens = std::clamp<int64_t>(
        search.max_new_tokens, 1, model.is_encoder_decoder() ? longest - 1 : std::max<int64_t>(1, longest / 2));
  return search;
}

namespace {

/// The prompts of texts. A decoder-only model `continues` a text, or generates its target after the end token.
/// `max_length`: to which prompts are truncated; -1: they are not.
std::vector<Prompt> prompts_of(const LoadedRun& run, const std::vector<std::string>& texts, bool continues,
                               int64_t max_length) {
  const auto& model = backbone_of(run.config.model);
  std::vector<Prompt> prompts;
  for (const auto& text : texts) {
    const auto tokens = run.tokenizer.encode(text);
    auto& prompt = prompts.emplace_back();
    auto& ids = model.is_encoder_decoder() ? prompt.source : prompt.prefix;
    if (model.prepend_bos) ids.push_back(run.tokenizer.special().cls);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    const bool ends = model.eos_token_id >= 0 &&
                      (model.is_encoder_decoder() || ids.empty() || !continues);  // the separator of texts starts one
    if (ends) ids.push_back(model.eos_token_id);
    if (max_length >= 0 && static_cast<int64_t>(ids.size()) > max_length) {
      ids.resize(static_cast<size_t>(max_length));
      ids.back() = ends ? model.eos_token_id : ids.back();
    }
    if (model.is_encoder_decoder()) prompt.prefix = {decoding_ids_of(run.config.model).decoder_start_token_id};
    prompt.number = prompts.size() - 1;
  }
  return prompts;
}

/// Hands on a text while it is generated.
class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, const std::vector<int64_t>& prompt, bool continues,
             const std::function<void(const std::string&)>& emit)
      : tokenizer_(tokenizer), ids_(prompt), begin_(continues ? 0 : prompt.size()), emit_(emit) {}

  /// The text is decoded from its start each time, since the spaces around a token depend on the tokens before it.
  void add(int64_t id) {
    ids_.push_back(id);
    const auto text = decoded_text(tokenizer_, std::span(ids_).subspan(begin_));
    if (text.ends_with("\xEF\xBF\xBD")) return;  // incomplete character
    if (text.size() <= shown_.size() || !text.starts_with(shown_)) return;
    emit_(text.substr(shown_.size()));
    shown_ = text;
  }

  /// Hands on what was held back, and the prompt if no token was generated.
  void end(const std::string& text) { emit_(text.starts_with(shown_) ? text.substr(shown_.size()) : ""); }

 private:
  const Tokenizer& tokenizer_;
  std::vector<int64_t> ids_;
  size_t begin_;
  const std::function<void(const std::string&)>& emit_;
  std::string shown_;
};

}  // namespace

Generated decoded(const Tokenizer& tokenizer, const GeneratedIds& one, const std::vector<int64_t>& prompt,
                  bool continues, int64_t eos) {
  const auto begin = one.ids.begin() + static_cast<int64_t>(prompt.size());
  const auto end = std::find(begin, one.ids.end(), eos);
  const std::vector<int64_t> ids(one.ids.begin(), end == one.ids.end() ? end : end + 1);
  const auto all_ids = std::span(ids), new_ids = all_ids.subspan(prompt.size());
  const auto text = decoded_text(tokenizer, continues ? all_ids : new_ids);
  const auto prompt_text = continues ? decoded_text(tokenizer, prompt) : "";
  // The continuation is cut from the whole text, which has the right spaces.
  return {.text = text,
          .continuation =
              text.starts_with(prompt_text) ? text.substr(prompt_text.size()) : decoded_text(tokenizer, new_ids),
          .prompt_ids = prompt,
          .ids = {new_ids.begin(), new_ids.end()},
          .score = one.score};
}

std::vector<std::vector<Generated>> generate(const LoadedRun& run, const std::vector<std::string>& texts,
                                             const GenerateOptions& options) {
  require_tokenizer(run);
  const auto& model = backbone_of(run.config.model);
  const auto search = search_of(run.config.model, options);
  const auto* objective = generative_of(run.config.objectives);
  const bool continues = !model.is_encoder_decoder() && (!objective || as_kind(*objective).continues_source());
  const int64_t max_length = model.max_input_length() - (model.is_encoder_decoder() ? 0 : search.max_new_tokens);
  const auto prompts = prompts_of(run, texts, continues, options.truncate ? max_length : -1);
  for (const auto& one : run.config.objectives)
    if (const auto warning = as_kind(one).generation_warning(); !warning.empty())
      log_warning("generate", run.folder + ": " + warning);
  const PackedWeights packed(*run.network);
  const auto batch_size = static_cast<size_t>(options.batch_size);
  std::vector<std::vector<Generated>> all;
  for (size_t first = 0; first < prompts.size(); first += batch_size) {
    const auto of_batch = std::span(prompts).subspan(first, std::min(batch_size, prompts.size() - first));
    const std::vector<Prompt> batch(of_batch.begin(), of_batch.end());
    std::optional<TextStream> stream;
    if (options.emit && texts.size() == 1) stream.emplace(run.tokenizer, batch[0].prefix, continues, options.emit);
    const auto emit = [&](int64_t id) { stream->add(id); };
    const auto lists = generate_ids(*run.network, batch, search, stream ? std::function<void(int64_t)>(emit) : nullptr);
    for (size_t i = 0; i < lists.size(); ++i) {
      auto& generated = all.emplace_back();
      for (const auto& one : lists[i])
        generated.push_back(decoded(run.tokenizer, one, batch[i].prefix, continues, search.eos_token_id));
    }
    if (stream) stream->end(all.back()[0].text);
  }
  return all;
}

}  // namespace cloze
