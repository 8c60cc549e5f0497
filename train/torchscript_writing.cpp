// TorchScript of networks that write: forward, and generation with a cache, with no Cloze and no Python.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "core/error.h"
#include "train/torchscript_parts.h"

namespace cloze {

namespace {

/// Keys and values of all blocks as one tensor [L, B, S, 2 H C], and back.
Tensor stacked(const std::vector<BlockCache>& cache, Tensor BlockCache::*part) {
  std::vector<Tensor> list;
  for (const auto& block : cache) list.push_back(block.*part);
  return at::stack(list);
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& words) {
  for (const auto& [from, to] : words)
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

/// The searches of search.cpp, greedy and beam, in TorchScript. PREFIX makes `mask`, `kv`, `own`, `tokens` and `written`; STEP is one call
/// of the decoder. Source: as there.
constexpr const char* generate_code = R"(
def generate(self, input_ids: Tensor, ARGUMENTSmax_new_tokens: int = 20, num_beams: int = 1, length_penalty: float = 1.0, early_stopping: bool = False) -> Tensor:
    batch = input_ids.size(0)
    beams = num_beams
    assert beams >= 1, "num_beams must be at least 1"
    assert max_new_tokens >= 1, "max_new_tokens must be at least 1"
ROOMPREFIX
    start = written.size(1)
    if beams == 1:
        done = torch.zeros([batch], dtype=11, device=input_ids.device)
        for step in range(max_new_tokens):
            logits, own = STEP
            row = self._allowed(logits.to(6), step, max_new_tokens)
            best = torch.argmax(row, -1)
            best = torch.where(done, torch.full_like(best, PAD), best)
            written = torch.cat([written, best.unsqueeze(1)], 1)
            done = torch.logical_or(done, torch.eq(best, EOS))
            tokens = best.unsqueeze(1)
            if bool(torch.all(done)):
                break
        return written
    none = -1000000000.0
    running = torch.full([batch, beams], none, device=input_ids.device)
    running[:, 0] = 0.0
    longest = start + max_new_tokens
    scores = torch.full([batch, beams], none, device=input_ids.device)
    whole = torch.zeros([batch, beams], dtype=11, device=input_ids.device)
    lengths = torch.full([batch, beams], start, dtype=4, device=input_ids.device)
    texts = torch.full([batch, beams, longest], FILL, dtype=4, device=input_ids.device)
    texts[:, :, :start] = written.view(batch, beams, start)
    done = torch.zeros([batch], dtype=11, device=input_ids.device)
    for step in range(max_new_tokens):
        made = float(step + 1)
        logits, own = STEP
        vocab = logits.size(-1)
        total = self._allowed(torch.log_softmax(logits.to(6), -1), step, max_new_tokens).view(batch, beams, vocab) + running.unsqueeze(-1)
        top, index = torch.topk(total.view(batch, beams * vocab), 2 * beams, -1)
        beam = torch.div(index, vocab, rounding_mode="floor")
        token = torch.remainder(index, vocab)
        ends = torch.eq(token, EOS)
        if step + 1 == max_new_tokens:
            ends = torch.ones_like(ends)
        length = written.size(1)
        found = torch.gather(written.view(batch, beams, length), 1, beam.unsqueeze(-1).expand(batch, 2 * beams, length))
        found = torch.cat([found, token.unsqueeze(-1)], -1)
        counts = torch.logical_and(ends, torch.lt(torch.arange(2 * beams, device=input_ids.device), beams).unsqueeze(0))
        finished = top / (made ** length_penalty) + torch.logical_not(counts).to(6) * none
        filled = torch.cat([found, torch.full([batch, 2 * beams, longest - length - 1], FILL, dtype=4, device=input_ids.device)], -1)
        kept, place = torch.topk(torch.cat([scores, finished], 1), beams, -1)
        open = torch.logical_not(done).unsqueeze(1)
        texts = torch.where(open.unsqueeze(-1), torch.gather(torch.cat([texts, filled], 1), 1, place.unsqueeze(-1).expand(batch, beams, longest)), texts)
        whole = torch.where(open, torch.gather(torch.cat([whole, counts], 1), 1, place), whole)
        lengths = torch.where(open, torch.gather(torch.cat([lengths, torch.full_like(token, length + 1)], 1), 1, place), lengths)
        scores = torch.where(open, kept, scores)
        running, place = torch.topk(top + ends.to(6) * none, beams, -1)
        origin = (torch.gather(beam, 1, place) + torch.arange(batch, device=input_ids.device).unsqueeze(1) * beams).view(batch * beams)
        written = torch.gather(found, 1, place.unsqueeze(-1).expand(batch, beams, length + 1)).view(batch * beams, length + 1)
        tokens = torch.gather(token, 1, place).view(batch * beams, 1)
        own = torch.index_select(own, 1, origin)
        hope = running[:, 0] / (made ** length_penalty)
        taken = torch.any(whole, 1)
        full = torch.all(whole, 1)
        improvable = torch.logical_or(torch.logical_and(taken, torch.gt(hope, scores[:, -1])), torch.logical_and(torch.logical_not(full), torch.gt(hope, none)))
        done = torch.logical_or(done, torch.logical_not(improvable))
        if early_stopping:
            done = torch.logical_or(done, full)
        if bool(torch.all(done)):
            break
    return texts[:, 0, :int(torch.max(lengths[:, 0]))]
)";

/// Scores of the next token where one is forced: it alone is left.
constexpr const char* allowed_code = R"(
def _allowed(self, scores: Tensor, step: int, max_new_tokens: int) -> Tensor:
    forced = -1
    if step == 0:
        forced = FIRSTTOKEN
    if step + 1 == max_new_tokens and LASTTOKEN >= 0:
        forced = LASTTOKEN
    if forced >= 0:
        scores = torch.full_like(scores, -float("inf"))
        scores[:, forced] = 0.0
    return scores
)";

constexpr const char* encoder_prefix = R"(
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    memory = torch.repeat_interleave(self._encode(input_ids, mask)[0], beams, 0)
    mask = torch.repeat_interleave(mask, beams, 0)
    kv = self._memory(memory)[0]
    own = torch.zeros([LAYERS, batch * beams, 0, WIDTH], dtype=memory.dtype, device=input_ids.device)
    tokens = torch.full([batch * beams, 1], START, dtype=4, device=input_ids.device)
    written = tokens
)";
constexpr const char* decoder_prefix = R"(
    written = torch.repeat_interleave(input_ids, beams, 0)
    own = torch.zeros([LAYERS, batch * beams, 0, WIDTH], dtype=DTYPE, device=input_ids.device)
    if written.size(1) > 1:
        own = self._decode(written[:, :-1], own)[1]
    tokens = written[:, -1:]
)";

/// The logits of the newest place.
Tensor last_logits(Network& network, const Tensor& hidden) {
  for (const auto& objective : network.objectives)
    if (objective->slot() == "lm") return objective->outputs(*network.backbone, hidden)[0].second.select(1, -1);
  fail<ConfigError>("this model has no head that writes; train it with clm, span_corruption, denoising, gap_sentences or pairs");
}

}  // namespace

torch::jit::Module writing_module(Network& network) {
  at::NoGradGuard no_grad;   // plain operators, untraced too
  auto module = mirror(network, "Cloze");
  const auto& c = encoder_of(network.model_config());
  auto& backbone = *network.backbone;
  const bool two = c.is_encoder_decoder;
  const int64_t layers = two && c.num_decoder_layers > 0 ? c.num_decoder_layers : c.num_hidden_layers * c.inner_group_num;
  const int64_t width = 2 * (c.d_kv > 0 ? c.d_kv * (two && c.decoder_attention_heads > 0 ? c.decoder_attention_heads : c.num_attention_heads) : c.hidden_size);
  const auto dtype = backbone.token_embedding().value().scalar_type();
  const auto ids = at::zeros({2, 4}, at::kLong), mask = at::ones({2, 4}, at::kBool), one = at::zeros({2, 1}, at::kLong);
  const auto own = at::zeros({layers, 2, 3, width}, dtype);
  std::vector<std::string> names;
  const auto all_outputs = [&](const Inputs& in) {
    std::vector<Tensor> tensors;
    names.clear();
    for (const auto& [name, tensor] : network.outputs(in)) names.push_back(name), tensors.push_back(tensor);
    return tensors;
  };
  const auto cache_of = [&](const Tensor& past, const Tensor& memory) {
    std::vector<BlockCache> cache(static_cast<size_t>(layers));
    for (int64_t i = 0; i < layers; ++i) {
      cache[static_cast<size_t>(i)].own = past.select(0, i);
      if (memory.defined()) cache[static_cast<size_t>(i)].memory = memory.select(0, i);
    }
    return cache;
  };
  std::string forward;
  if (two) {
    add_traced(module, "_traced", {ids, mask, one}, {"input_ids", "attention_mask", "decoder_input_ids"},
               [&](const auto& in) { return all_outputs({.input_ids = in[0], .attention_mask = in[1], .decoder_input_ids = in[2]}); });
    add_traced(module, "_encode", {ids, mask}, {"input_ids", "attention_mask"}, [&](const auto& in) { return std::vector<Tensor>{backbone.encode({.input_ids = in[0], .attention_mask = in[1]}).states}; });
    const auto states = at::zeros({2, 4, c.hidden_size}, dtype);
    add_traced(module, "_memory", {states}, {"memory"}, [&](const auto& in) {
      std::vector<BlockCache> cache;
      backbone.decode(one, {in[0], {}}, cache);
      return std::vector<Tensor>{stacked(cache, &BlockCache::memory)};
    });
    add_traced(module, "_decode", {one, mask, own, at::zeros({layers, 2, 4, width}, dtype)}, {"ids", "attention_mask", "past", "memory"}, [&](const auto& in) {
      auto cache = cache_of(in[2], in[3]);
      const auto hidden = backbone.decode(in[0], {states, in[1]}, cache);
      return std::vector<Tensor>{last_logits(network, hidden), stacked(cache, &BlockCache::own)};
    });
    // Without decoder_input_ids the decoder reads the encoder's text, moved on by one.
    forward = std::string("def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, decoder_input_ids: Optional[Tensor] = None) -> Dict[str, Tensor]:\n" + ids_check(c, "input_ids", "attention_mask") +
              "    mask = torch.ones_like(input_ids, dtype=11)\n    if attention_mask is not None:\n        mask = torch.ne(attention_mask, 0)\n"
              "    first = torch.full_like(input_ids[:, :1], START)\n") +
              (c.decoder_starts_with_last ? "    first = torch.gather(input_ids, 1, torch.sum(torch.ne(input_ids, PAD), 1, keepdim=True) - 1)\n" : "") +
              "    read = torch.cat([first, input_ids[:, :-1]], 1)\n    if decoder_input_ids is not None:\n        read = decoder_input_ids\n" + ids_check(c, "read") +
              length_check(c, "max(input_ids.size(1), read.size(1))") +
              "    out = self._traced(input_ids, mask, read)\n    return {";
    module.define("def encode(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:\n" + ids_check(c, "input_ids", "attention_mask") + length_check(c, "input_ids.size(1)") +
                  "    mask = torch.ones_like(input_ids, dtype=11)\n    if attention_mask is not None:\n        mask = torch.ne(attention_mask, 0)\n    return self._encode(input_ids, mask)[0]\n");
    module.define(replaced("def decode(self, ids: Tensor, memory: Tensor, attention_mask: Optional[Tensor] = None, past: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:\n" + ids_check(c, "ids") +
                           "    assert memory.dim() == 3 and memory.size(0) == ids.size(0) and memory.size(2) == " + std::to_string(c.hidden_size) + ", \"memory is what encode gives for these rows\"\n"
                           "    mask = torch.ones_like(memory[:, :, 0], dtype=11)\n    if attention_mask is not None:\n        mask = torch.ne(attention_mask, 0)\n"
                           "    own = torch.zeros([LAYERS, ids.size(0), 0, WIDTH], dtype=memory.dtype, device=memory.device)\n    if past is not None:\n        own = past\n"
                           "    assert own.dim() == 4 and own.size(0) == LAYERS and own.size(1) == ids.size(0) and own.size(3) == WIDTH, \"past is what decode gave for these rows\"\n" + length_check(c, "own.size(2) + ids.size(1)") +
                           "    return self._decode(ids, mask, own, self._memory(memory)[0])\n", {{"LAYERS", std::to_string(layers)}, {"WIDTH", std::to_string(width)}}));
  } else {
    add_traced(module, "_traced", {ids, mask, at::zeros({2}, at::kLong)}, {"input_ids", "attention_mask", "prefix"},
               [&](const auto& in) { return all_outputs({.input_ids = in[0], .attention_mask = in[1], .prefix = c.prefix_lm ? in[2] : Tensor()}); });
    add_traced(module, "_decode", {one, own}, {"ids", "past"}, [&](const auto& in) {
      auto cache = cache_of(in[1], {});
      const auto hidden = backbone.decode(in[0], {}, cache);
      return std::vector<Tensor>{last_logits(network, hidden), stacked(cache, &BlockCache::own)};
    });
    forward = std::string("def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None") + (c.prefix_lm ? ", prefix: Optional[Tensor] = None" : "") + ") -> Dict[str, Tensor]:\n" + ids_check(c, "input_ids", "attention_mask") +
              "    mask = torch.ones_like(input_ids, dtype=11)\n    if attention_mask is not None:\n        mask = torch.ne(attention_mask, 0)\n    read = torch.zeros_like(input_ids[:, 0])\n" +
              (c.prefix_lm ? "    if prefix is not None:\n        read = prefix\n" : "") + length_check(c, "input_ids.size(1)") + "    out = self._traced(input_ids, mask, read)\n    return {";
  }
  all_outputs({.input_ids = ids, .attention_mask = mask, .decoder_input_ids = two ? one : Tensor()});
  for (size_t i = 0; i < names.size(); ++i) forward += (i ? ", \"" : "\"") + names[i] + "\": out[" + std::to_string(i) + "]";
  const std::vector<std::pair<std::string, std::string>> facts{{"ROOM", ids_check(c, "input_ids", two ? "attention_mask" : "") + (two ? length_check(c, "input_ids.size(1)") + length_check(c, "max_new_tokens + 1", "max_new_tokens is too large; lower it") : length_check(c, "input_ids.size(1) + max_new_tokens", "the text with max_new_tokens is too long; shorten it, or lower max_new_tokens"))},
                                                                {"PREFIX", two ? encoder_prefix : decoder_prefix},
                                                                {"STEP", two ? "self._decode(tokens, mask, own, kv)" : "self._decode(tokens, own)"},
                                                                {"ARGUMENTS", two ? "attention_mask: Optional[Tensor] = None, " : ""},
                                                                {"LAYERS", std::to_string(layers)},
                                                                {"WIDTH", std::to_string(width)},
                                                                {"DTYPE", dtype == at::kBFloat16 ? "15" : "6"},
                                                                {"START", std::to_string(c.decoder_start_token_id)},
                                                                {"FIRSTTOKEN", std::to_string(c.forced_bos_token_id)},
                                                                {"LASTTOKEN", std::to_string(c.forced_eos_token_id)},
                                                                {"EOS", std::to_string(c.eos_token_id)},
                                                                {"FILL", std::to_string(c.pad_token_id == 0 && c.eos_token_id >= 0 ? c.eos_token_id : c.pad_token_id)},
                                                                {"PAD", std::to_string(c.pad_token_id)}};
  module.define(replaced(forward + "}\n", facts));
  module.define(replaced(allowed_code, facts));
  module.define(replaced(generate_code, facts));
  return module;
}

}  // namespace cloze
