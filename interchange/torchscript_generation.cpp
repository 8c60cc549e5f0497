// TorchScript of generative networks: forward, and generation with a cache, with no Cloze and no Python.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "core/error.h"
#include "interchange/torchscript_parts.h"

namespace cloze {

namespace {

/// Keys and values of all blocks as one tensor [L, B, S, 2 H C], and back.
Tensor stacked(const std::vector<BlockCache>& cache, Tensor BlockCache::* part) {
  std::vector<Tensor> list;
  for (const auto& block : cache) list.push_back(block.*part);
  return at::stack(list);
}
std::vector<BlockCache> unstacked(int64_t layers, const Tensor& past, const Tensor& memory = {}) {
  std::vector<BlockCache> cache(static_cast<size_t>(layers));
  for (int64_t i = 0; i < layers; ++i) {
    auto& block = cache[static_cast<size_t>(i)];
    block.own = past.select(0, i);
    if (memory.defined()) block.memory = memory.select(0, i);
  }
  return cache;
}

// ---- Methods in TorchScript. @NAME@ stands for a fact of the model; a fact of several lines has a line of its own.
// ----

constexpr const char* decoder_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    out = self._traced(input_ids, mask, torch.zeros_like(input_ids[:, 0]))
    return @OUTPUTS@
)";

constexpr const char* prefix_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, prefix: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    read = torch.zeros_like(input_ids[:, 0])
    if prefix is not None:
        read = prefix
    out = self._traced(input_ids, mask, read)
    return @OUTPUTS@
)";

/// Without decoder_input_ids the decoder reads the encoder's text, moved on by one.
constexpr const char* encoder_decoder_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, decoder_input_ids: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    first = @FIRST_READ@
    read = torch.cat([first, input_ids[:, :-1]], 1)
    if decoder_input_ids is not None:
        read = decoder_input_ids
@CHECK_READ@
    out = self._traced(input_ids, mask, read)
    return @OUTPUTS@
)";

constexpr const char* encode_method = R"(
def encode(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:
@CHECK_TEXT@
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    return self._encode(input_ids, mask)[0]
)";

constexpr const char* decode_method = R"(
def decode(self, ids: Tensor, memory: Tensor, attention_mask: Optional[Tensor] = None, past: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
@CHECK_IDS@
    assert memory.dim() == 3 and memory.size(0) == ids.size(0) and memory.size(2) == @HIDDEN@, "memory is what encode gives for these rows"
    mask = torch.ones_like(memory[:, :, 0], dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    own = torch.zeros([@LAYERS@, ids.size(0), 0, @WIDTH@], dtype=memory.dtype, device=memory.device)
    if past is not None:
        own = past
    assert own.dim() == 4 and own.size(0) == @LAYERS@ and own.size(1) == ids.size(0) and own.size(3) == @WIDTH@, "past is what decode gave for these rows"
@CHECK_PAST@
    return self._decode(ids, mask, own, self._memory(memory)[0])
)";

/// What generate begins with: `written` [rows, length], of which all but the last `tokens` [rows, 1] stand in the cache
/// `own`, and `mask`, of the encoder's text or of what was written.
constexpr const char* encoder_beginning = R"(
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    memory = torch.repeat_interleave(self._encode(input_ids, mask)[0], beams, 0)
    mask = torch.repeat_interleave(mask, beams, 0)
    kv = self._memory(memory)[0]
    own = torch.zeros([@LAYERS@, batch * beams, 0, @WIDTH@], dtype=memory.dtype, device=input_ids.device)
    tokens = torch.full([batch * beams, 1], @START@, dtype=4, device=input_ids.device)
    written = tokens
)";
constexpr const char* decoder_beginning = R"(
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
        assert bool(torch.all(mask[:, -1])), "prompts of several lengths are padded on the left"
    mask = torch.repeat_interleave(mask, beams, 0)
    written = torch.repeat_interleave(input_ids, beams, 0)
    own = torch.zeros([@LAYERS@, batch * beams, 0, @WIDTH@], dtype=@DTYPE@, device=input_ids.device)
    if written.size(1) > 1:
        own = self._decode(written[:, :-1], mask[:, :-1], own)[1]
    tokens = written[:, -1:]
)";

/// The rules of search_rules.cpp, on scores [rows, V] of the token after `written` [rows, length], of which `real` are
/// no padding. A penalty passes padding over, as transformers does, whose n-grams count it.
constexpr const char* ruled_method = R"(
def _ruled(self, scores: Tensor, written: Tensor, real: Tensor, last: bool, no_repeat_ngram_size: int, repetition_penalty: float, shortest: int) -> Tensor:
    length = written.size(1)
    if repetition_penalty != 1.0:
        ids = torch.where(real, written, torch.full_like(written, scores.size(1)))
        scores = torch.cat([scores, scores[:, :1]], 1)
        seen = torch.gather(scores, 1, ids)
        seen = torch.where(torch.lt(seen, 0.0), seen * repetition_penalty, seen / repetition_penalty)
        scores = torch.scatter(scores, 1, ids, seen)[:, :-1]
    n = no_repeat_ngram_size
    if n > 0 and length >= n:
        grams = written.unfold(1, n, 1)
        again = torch.all(torch.eq(grams[:, :, :n - 1], written[:, length - n + 1:].unsqueeze(1)), -1)
        times = torch.scatter_add(torch.zeros_like(scores), 1, grams[:, :, n - 1], again.to(scores.dtype))
        scores = torch.masked_fill(scores, torch.gt(times, 0.0), -float("inf"))
    if @EOS@ >= 0 and length < shortest:
        scores[:, @EOS@] = -float("inf")
    forced = -1
    if length == 1:
        forced = @FIRST_TOKEN@
    if last and @LAST_TOKEN@ >= 0:
        forced = @LAST_TOKEN@
    if forced >= 0:
        scores = torch.full_like(scores, -float("inf"))
        scores[:, forced] = 0.0
    return scores
)";

/// The searches of search.cpp, greedy and beam. Source: as there.
constexpr const char* generate_method = R"(
def generate(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, max_new_tokens: int = 20, num_beams: int = 1, length_penalty: float = 1.0, early_stopping: bool = False, no_repeat_ngram_size: int = 0, repetition_penalty: float = 1.0, min_length: int = 0, min_new_tokens: int = 0) -> Tensor:
    batch = input_ids.size(0)
    beams = num_beams
    assert beams >= 1, "num_beams must be at least 1"
    assert max_new_tokens >= 1, "max_new_tokens must be at least 1"
    assert no_repeat_ngram_size >= 0, "no_repeat_ngram_size must be at least 0"
    assert repetition_penalty > 0.0, "repetition_penalty must be above 0"
    assert min_length >= 0, "min_length must be at least 0"
    assert min_new_tokens >= 0 and min_new_tokens <= max_new_tokens, "min_new_tokens must be from 0 to max_new_tokens"
@CHECK_ROOM@
@BEGINNING@
    start = written.size(1)
    shortest = min_length
    if min_new_tokens > 0:
        shortest = start + min_new_tokens
    if beams == 1:
        done = torch.zeros([batch], dtype=11, device=input_ids.device)
        for step in range(max_new_tokens):
            logits, own = @STEP@
            row = self._ruled(logits.to(6), written, @REAL@, step + 1 == max_new_tokens, no_repeat_ngram_size, repetition_penalty, shortest)
            best = torch.argmax(row, -1)
            best = torch.where(done, torch.full_like(best, @PAD@), best)
            written = torch.cat([written, best.unsqueeze(1)], 1)
            mask = @MASK_AFTER@
            done = torch.logical_or(done, torch.eq(best, @EOS@))
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
    texts = torch.full([batch, beams, longest], @FILL@, dtype=4, device=input_ids.device)
    texts[:, :, :start] = written.view(batch, beams, start)
    done = torch.zeros([batch], dtype=11, device=input_ids.device)
    for step in range(max_new_tokens):
        made = float(step + 1)
        last = step + 1 == max_new_tokens
        logits, own = @STEP@
        vocab = logits.size(-1)
        row = self._ruled(torch.log_softmax(logits.to(6), -1), written, @REAL@, last, no_repeat_ngram_size, repetition_penalty, shortest)
        total = row.view(batch, beams, vocab) + running.unsqueeze(-1)
        top, index = torch.topk(total.view(batch, beams * vocab), 2 * beams, -1)
        beam = torch.div(index, vocab, rounding_mode="floor")
        token = torch.remainder(index, vocab)
        ends = torch.eq(token, @EOS@)
        if last:
            ends = torch.ones_like(ends)
        length = written.size(1)
        found = torch.gather(written.view(batch, beams, length), 1, beam.unsqueeze(-1).expand(batch, 2 * beams, length))
        found = torch.cat([found, token.unsqueeze(-1)], -1)
        counts = torch.logical_and(ends, torch.lt(torch.arange(2 * beams, device=input_ids.device), beams).unsqueeze(0))
        finished = top / (made ** length_penalty) + torch.logical_not(counts).to(6) * none
        filled = torch.cat([found, torch.full([batch, 2 * beams, longest - length - 1], @FILL@, dtype=4, device=input_ids.device)], -1)
        kept, place = torch.topk(torch.cat([scores, finished], 1), beams, -1)
        open = torch.logical_not(done).unsqueeze(1)
        texts = torch.where(open.unsqueeze(-1), torch.gather(torch.cat([texts, filled], 1), 1, place.unsqueeze(-1).expand(batch, beams, longest)), texts)
        whole = torch.where(open, torch.gather(torch.cat([whole, counts], 1), 1, place), whole)
        lengths = torch.where(open, torch.gather(torch.cat([lengths, torch.full_like(token, length + 1)], 1), 1, place), lengths)
        scores = torch.where(open, kept, scores)
        running, place = torch.topk(top + ends.to(6) * none, beams, -1)
        origin = (torch.gather(beam, 1, place) + torch.arange(batch, device=input_ids.device).unsqueeze(1) * beams).view(batch * beams)
        written = torch.gather(found, 1, place.unsqueeze(-1).expand(batch, beams, length + 1)).view(batch * beams, length + 1)
        mask = @MASK_AFTER@
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

/// The template with its facts in place; facts may name facts that stand after them.
std::string filled(std::string text, const Facts& facts) {
  for (const auto& [name, fact] : facts) {
    const auto marked = "@" + name + "@";
    for (size_t at = 0; (at = text.find(marked, at)) != std::string::npos; at += fact.size())
      text.replace(at, marked.size(), fact);
  }
  return text;
}

/// The head that scores the next token, or null.
Objective* head_of(Network& network) {
  for (const auto& objective : network.objectives)
    if (objective->slot() == "lm") return objective.get();
  return nullptr;
}

/// What the traced parts of a generative network read and keep.
struct Shapes {
  int64_t layers;  ///< blocks of the decoder
  int64_t width;   ///< keys and values of a token in one of them, 2 H C
  at::ScalarType dtype;
  Tensor ids = at::zeros({2, 4}, at::kLong), mask = at::ones({2, 4}, at::kBool),
         one = at::zeros({2, 1}, at::kLong);  ///< examples
};

Shapes shapes_of(Network& network) {
  const auto& c = backbone_of(network.model_config());
  const auto* both = c.is_encoder_decoder() ? as<EncoderDecoderConfig>(network.model_config()) : nullptr;
  const int64_t heads = both ? both->decoder_heads() : c.num_attention_heads;
  return {.layers = both ? both->decoder_layers() : c.num_hidden_layers * c.inner_group_num,
          .width = 2 * (c.d_kv > 0 ? c.d_kv * heads : c.hidden_size),
          .dtype = network.backbone->token_embedding().value().scalar_type()};
}

/// True where a decoder keeps what it read, as generation needs it: it has layers, and attention with keys and values.
bool keeps_cache(Network& network, const Shapes& s) {
  const auto& c = backbone_of(network.model_config());
  std::vector<BlockCache> cache;
  try {
    network.backbone->decode(
        s.one, c.is_encoder_decoder() ? Memory{at::zeros({2, 4, c.hidden_size}, s.dtype), {}} : Memory{}, cache);
  } catch (const ConfigError&) {
    return false;
  }
  return true;
}

/// Logits of the newest token.
Tensor last_logits(Network& network, const Tensor& hidden) {
  return head_of(network)->outputs(*network.backbone, hidden)[0].second.select(1, -1);
}

/// Adds `_memory` and `_decode` of a decoder that reads an encoder.
void trace_decoding_with_memory(torch::jit::Module& module, Network& network, const Shapes& s) {
  auto& backbone = *network.backbone;
  const auto states = at::zeros({2, 4, backbone_of(network.model_config()).hidden_size}, s.dtype);
  add_traced(module, "_memory", {states}, {"memory"}, [&](const auto& in) {
    std::vector<BlockCache> cache;
    backbone.decode(s.one, {in[0], {}}, cache);
    return std::vector<Tensor>{stacked(cache, &BlockCache::memory)};
  });
  const auto own = at::zeros({s.layers, 2, 3, s.width}, s.dtype), kv = at::zeros({s.layers, 2, 4, s.width}, s.dtype);
  add_traced(module, "_decode", {s.one, s.mask, own, kv}, {"ids", "attention_mask", "past", "memory"},
             [&](const auto& in) {
               auto cache = unstacked(s.layers, in[2], in[3]);
               const auto hidden = backbone.decode(in[0], {states, in[1]}, cache);
               return std::vector<Tensor>{last_logits(network, hidden), stacked(cache, &BlockCache::own)};
             });
}

/// Adds `_decode` of a decoder alone.
void trace_decoding(torch::jit::Module& module, Network& network, const Shapes& s) {
  const auto own = at::zeros({s.layers, 2, 3, s.width}, s.dtype);
  add_traced(module, "_decode", {s.one, s.mask, own}, {"ids", "attention_mask", "past"}, [&](const auto& in) {
    auto cache = unstacked(s.layers, in[2]);
    const auto hidden = network.backbone->decode(in[0], {}, cache, in[1]);
    return std::vector<Tensor>{last_logits(network, hidden), stacked(cache, &BlockCache::own)};
  });
}

/// Adds `_traced`, and `_encode` where there is an encoder; returns what forward returns, as TorchScript.
std::string trace_forward(torch::jit::Module& module, Network& network, const Shapes& s) {
  const auto& c = backbone_of(network.model_config());
  std::vector<std::string> names;
  const auto outputs = [&](const Inputs& in) {
    std::vector<Tensor> tensors;
    names.clear();
    for (const auto& [name, tensor] : network.outputs(in)) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    return tensors;
  };
  if (c.is_encoder_decoder()) {
    add_traced(module, "_traced", {s.ids, s.mask, s.one}, {"input_ids", "attention_mask", "decoder_input_ids"},
               [&](const auto& in) {
                 return outputs({.input_ids = in[0], .attention_mask = in[1], .decoder_input_ids = in[2]});
               });
    add_traced(module, "_encode", {s.ids, s.mask}, {"input_ids", "attention_mask"}, [&](const auto& in) {
      return std::vector<Tensor>{network.backbone->encode({.input_ids = in[0], .attention_mask = in[1]}).states};
    });
  } else {
    add_traced(
        module, "_traced", {s.ids, s.mask, at::zeros({2}, at::kLong)}, {"input_ids", "attention_mask", "prefix"},
        [&](const auto& in) {
          return outputs({.input_ids = in[0], .attention_mask = in[1], .prefix = c.prefix_lm ? in[2] : Tensor()});
        });
  }
  return outputs_code(names);
}

Facts facts_of(const ModelConfig& model, const Shapes& s, const std::string& outputs) {
  const auto& c = backbone_of(model);
  const auto decoding = decoding_ids_of(model);
  const bool two = c.is_encoder_decoder();
  const auto room = two ? length_check(c, "input_ids.size(1)") +
                              length_check(c, "max_new_tokens + 1", "max_new_tokens is too large; lower it")
                        : length_check(c, "input_ids.size(1) + max_new_tokens",
                                       "the text with max_new_tokens is too long; shorten it, or lower max_new_tokens");
  const auto first = decoding.decoder_starts_with_last
                         ? "torch.gather(input_ids, 1, torch.sum(torch.ne(input_ids, @PAD@), 1, keepdim=True) - 1)"
                         : "torch.full_like(input_ids[:, :1], @START@)";
  const auto fill = c.pad_token_id == 0 && c.eos_token_id >= 0 ? c.eos_token_id : c.pad_token_id;
  return {{"CHECK_TEXT", ids_check(c, "input_ids", "attention_mask") + length_check(c, "input_ids.size(1)")},
          {"CHECK_READ", ids_check(c, "read") + length_check(c, "read.size(1)")},
          {"CHECK_IDS", ids_check(c, "ids")},
          {"CHECK_PAST", length_check(c, "own.size(2) + ids.size(1)")},
          {"CHECK_ROOM", ids_check(c, "input_ids", "attention_mask") + room},
          {"BEGINNING", two ? encoder_beginning : decoder_beginning},
          {"STEP", two ? "self._decode(tokens, mask, own, kv)" : "self._decode(tokens, mask, own)"},
          {"MASK_AFTER", two ? "mask" : "torch.cat([mask, torch.ones_like(mask[:, :1])], 1)"},
          {"REAL", two ? "torch.ones_like(written, dtype=11)" : "mask"},
          {"FIRST_READ", first},
          {"OUTPUTS", outputs},
          {"HIDDEN", std::to_string(c.hidden_size)},
          {"LAYERS", std::to_string(s.layers)},
          {"WIDTH", std::to_string(s.width)},
          {"DTYPE", s.dtype == at::kBFloat16 ? "15" : "6"},
          {"START", std::to_string(decoding.decoder_start_token_id)},
          {"FIRST_TOKEN", std::to_string(decoding.forced_bos_token_id)},
          {"LAST_TOKEN", std::to_string(decoding.forced_eos_token_id)},
          {"EOS", std::to_string(c.eos_token_id)},
          {"FILL", std::to_string(fill)},
          {"PAD", std::to_string(c.pad_token_id)}};
}

}  // namespace

bool can_generate(Network& network) {
  const at::NoGradGuard no_grad;
  const auto& c = backbone_of(network.model_config());
  return (c.is_decoder() || c.is_encoder_decoder()) && head_of(network) && keeps_cache(network, shapes_of(network));
}

torch::jit::Module generative_module(Network& network) {
  const at::NoGradGuard no_grad;  // plain operators, untraced too
  auto module = mirror(network, "Cloze");
  const auto& c = backbone_of(network.model_config());
  const auto shapes = shapes_of(network);
  const auto facts = facts_of(network.model_config(), shapes, trace_forward(module, network, shapes));
  const auto define = [&](const char* method) { module.define(filled(method, facts)); };
  if (c.is_encoder_decoder()) {
    define(encoder_decoder_forward_method);
    define(encode_method);
  } else {
    define(c.prefix_lm ? prefix_forward_method : decoder_forward_method);
  }
  if (!can_generate(network)) return module;
  if (c.is_encoder_decoder()) {
    trace_decoding_with_memory(module, network, shapes);
    define(decode_method);
  } else {
    trace_decoding(module, network, shapes);
  }
  define(ruled_method);
  define(generate_method);
  return module;
}

}  // namespace cloze
