#include "generation/generate.h"

#include <algorithm>
#include <map>

#include "core/interrupt.h"
#include "data/tokenizers/utf8.h"
#include "objectives/generative_rows.h"

namespace cloze {

namespace {

/// Next-token scores of rows that each keep the keys and values of what they read.
class CachedScores final : public NextToken {
 public:
  CachedScores(Network& network, Memory memory) : network_(network), memory_(std::move(memory)) {
    for (const auto& objective : network.objectives)
      if (objective->slot() == "lm") head_ = objective.get();
    require<ConfigError>(head_ != nullptr,
                         "this model was not trained to write text; train it with clm, span_corruption, denoising, "
                         "gap_sentences or pairs, or fill blanks with `cloze fill`");
  }

  /// Reads tokens [rows, n] without asking what follows.
  void read(const Tensor& tokens) { hidden_ = network_.backbone->decode(tokens, memory_, cache_); }

  const float* step(const std::vector<int64_t>& tokens, const std::vector<int64_t>& origins) override {
    if (interrupted) throw Interrupted("stopped; nothing was written to a file");
    const auto ids = at::tensor(tokens, at::kLong).unsqueeze(1);
    bool moved = false;
    for (size_t i = 0; i < origins.size(); ++i) moved = moved || origins[i] != static_cast<int64_t>(i);
    if (moved) {
      const auto rows = at::tensor(origins, at::kLong);
      for (auto& block : cache_)
        if (block.own.defined()) block.own = block.own.index_select(0, rows);  // rows of one prompt share their memory
    }
    read(ids);
    logits_ =
        head_->outputs(*network_.backbone, hidden_)[0].second.select(1, 0).to(at::kFloat).contiguous();  // [rows, V]
    return logits_.data_ptr<float>();
  }
  int64_t vocab() const override { return backbone_of(network_.model_config()).vocab_size; }

 private:
  Network& network_;
  Memory memory_;
  std::vector<BlockCache> cache_;
  Objective* head_ = nullptr;
  Tensor hidden_, logits_;
};

/// Rows of ids, padded on the right, and which are real (undefined: all).
std::pair<Tensor, Tensor> padded(const std::vector<std::vector<int64_t>>& rows, int64_t pad) {
  size_t longest = 0, shortest = SIZE_MAX;
  for (const auto& row : rows) longest = std::max(longest, row.size()), shortest = std::min(shortest, row.size());
  auto ids = at::full({static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, pad, at::kLong);
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy(rows[r].begin(), rows[r].end(), ids.data_ptr<int64_t>() + r * longest);
  if (shortest == longest) return {ids, Tensor()};
  auto mask = at::zeros(ids.sizes(), at::kBool);
  for (size_t r = 0; r < rows.size(); ++r)
    mask[static_cast<int64_t>(r)].narrow(0, 0, static_cast<int64_t>(rows[r].size())).fill_(true);
  return {ids, mask};
}

}  // namespace

std::vector<std::vector<Generated>> generate_ids(Network& network, const std::vector<Prompt>& prompts,
                                                 const SearchConfig& config, const std::function<void(int64_t)>& emit) {
  at::NoGradGuard no_grad;
  check(config);
  const auto& model = backbone_of(network.model_config());
  const int64_t rows = rows_of_prompt(config);
  std::map<size_t, std::vector<size_t>> by_length;  // of the beginning: a search goes on from one length
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto& p = prompts[i];
    const auto most = model.longest_input(), wanted = static_cast<int64_t>(p.beginning.size()) + config.max_new_tokens;
    require<ConfigError>(!p.beginning.empty(), "there is nothing to go on from; give a text");
    require<ConfigError>(wanted <= most, "text ", p.number + 1, " has ", p.beginning.size(), " tokens and ",
                         config.max_new_tokens, " are to follow, the model has ", most,
                         " places; shorten the text, or lower --max-new-tokens");
    require<ConfigError>(static_cast<int64_t>(p.source.size()) <= most, "text ", p.number + 1, " has ", p.source.size(),
                         " tokens, the model reads ", most, "; shorten it");
    by_length[p.beginning.size()].push_back(i);
  }
  std::vector<std::vector<Generated>> found(prompts.size());
  for (const auto& [length, members] : by_length) {
    std::vector<std::vector<int64_t>> sources, beginnings;
    std::vector<uint64_t> numbers;
    for (const auto i : members)
      sources.push_back(prompts[i].source), beginnings.push_back(prompts[i].beginning),
          numbers.push_back(prompts[i].number);
    Memory memory;
    if (model.is_encoder_decoder()) {
      const auto [ids, mask] = padded(sources, model.pad_token_id);
      memory = network.backbone->encode({.input_ids = ids, .attention_mask = mask});  // which all rows of a prompt read
    }
    CachedScores scores(network, memory);
    if (length > 1)
      scores.read(
          padded(beginnings, 0).first.narrow(1, 0, static_cast<int64_t>(length) - 1).repeat_interleave(rows, 0));
    auto texts = search(scores, beginnings, config, emit, numbers);
    for (size_t k = 0; k < members.size(); ++k) found[members[k]] = std::move(texts[k]);
  }
  return found;
}

namespace {

/// What ids read as; bytes that are no text are U+FFFD.
std::string text_of(const Tokenizer& tokenizer, std::span<const int64_t> ids) {
  uint64_t replaced = 0;
  return replace_invalid_utf8(tokenizer.decode(ids), replaced);
}

}  // namespace

std::vector<std::vector<Written>> generate(const LoadedRun& run, const std::vector<std::string>& texts,
                                           const GenerateOptions& options) {
  require<CheckpointError>(run.has_tokenizer, run.folder,
                           ": has no tokenizer, so it cannot read text; import it with its tokenizer files");
  const auto& model = backbone_of(run.config.model);
  const auto& special = run.tokenizer.special();
  const auto decoding = decoding_ids_of(run.config.model);
  auto search = options.search;
  if (search.eos_token_id < 0) search.eos_token_id = model.eos_token_id;
  if (search.forced_bos_token_id < 0) search.forced_bos_token_id = decoding.forced_bos_token_id;
  if (search.forced_eos_token_id < 0) search.forced_eos_token_id = decoding.forced_eos_token_id;
  search.pad_token_id = model.pad_token_id;
  // A decoder alone goes on with a text, or writes what belongs to it behind its end.
  const auto* objective = generative_of(run.config.objectives);
  const auto* spans = objective ? std::get_if<SpanCorruptionConfig>(objective) : nullptr;
  const bool goes_on = !model.is_encoder_decoder() && (!objective || std::holds_alternative<ClmConfig>(*objective) ||
                                                       (spans && spans->corruption == Corruption::prefix_lm));
  if (options.cut)
    search.max_new_tokens = std::clamp<int64_t>(
        search.max_new_tokens, 1,
        model.is_encoder_decoder() ? model.longest_input() - 1 : std::max<int64_t>(1, model.longest_input() / 2));
  const int64_t room =
      model.is_encoder_decoder() ? model.longest_input() : model.longest_input() - search.max_new_tokens;
  std::vector<Prompt> prompts;
  for (const auto& text : texts) {
    const auto pieces = run.tokenizer.encode(text);
    auto& prompt = prompts.emplace_back();
    auto& ids = model.is_encoder_decoder() ? prompt.source : prompt.beginning;
    if (model.texts_begin) ids.push_back(special.cls);
    ids.insert(ids.end(), pieces.begin(), pieces.end());
    const bool ends = model.eos_token_id >= 0 &&
                      (model.is_encoder_decoder() || ids.empty() || !goes_on);  // what stands between texts begins one
    if (ends) ids.push_back(model.eos_token_id);
    if (options.cut && static_cast<int64_t>(ids.size()) > room)
      ids.resize(static_cast<size_t>(room)), ids.back() = ends ? model.eos_token_id : ids.back();
    if (model.is_encoder_decoder()) prompt.beginning = {decoding.decoder_start_token_id};
    prompt.number = prompts.size() - 1;
  }
  const PackedWeights packed(*run.network);
  std::vector<std::vector<Written>> all;
  for (size_t first = 0; first < prompts.size(); first += static_cast<size_t>(options.batch_size)) {
    const std::vector<Prompt> some(
        prompts.begin() + static_cast<int64_t>(first),
        prompts.begin() +
            static_cast<int64_t>(std::min(prompts.size(), first + static_cast<size_t>(options.batch_size))));
    // A text is decoded from its beginning each time: a piece alone does not know its spaces.
    const size_t from = goes_on ? 0 : some[0].beginning.size();
    std::vector<int64_t> so_far = some[0].beginning;
    std::string shown;
    std::function<void(int64_t)> emit;
    if (options.emit && texts.size() == 1)
      emit = [&](int64_t id) {
        so_far.push_back(id);
        const auto text = text_of(run.tokenizer, std::span(so_far).subspan(from));
        if (text.size() >= 3 && text.compare(text.size() - 3, 3, "\xEF\xBF\xBD") == 0) return;  // part of a character
        if (text.size() > shown.size() && text.compare(0, shown.size(), shown) == 0)
          options.emit(text.substr(shown.size())), shown = text;
      };
    const auto lists = generate_ids(*run.network, some, search, emit);
    for (size_t i = 0; i < lists.size(); ++i) {
      auto& written = all.emplace_back();
      for (const auto& one : lists[i]) {
        const auto& prompt = some[i].beginning;
        const auto begin = one.ids.begin() + static_cast<int64_t>(prompt.size());
        const auto end = std::find(begin, one.ids.end(), search.eos_token_id);
        const std::vector<int64_t> ids(one.ids.begin(), end == one.ids.end() ? end : end + 1);
        const auto all_ids = std::span(ids), new_ids = all_ids.subspan(prompt.size());
        const auto text = text_of(run.tokenizer, goes_on ? all_ids : new_ids);
        const auto before = goes_on ? text_of(run.tokenizer, prompt) : "";
        // A piece alone does not know its spaces, so the continuation is what follows the prompt in the whole text.
        const bool follows = text.compare(0, before.size(), before) == 0;
        written.push_back({.text = text,
                           .continuation = follows ? text.substr(before.size()) : text_of(run.tokenizer, new_ids),
                           .prompt_ids = prompt,
                           .ids = {new_ids.begin(), new_ids.end()},
                           .score = one.score});
      }
    }
    if (emit) {  // what was held back, and the prompt where nothing came
      const auto& text = all.back()[0].text;
      options.emit(text.compare(0, shown.size(), shown) == 0 ? text.substr(shown.size()) : "");
    }
  }
  return all;
}

}  // namespace cloze
