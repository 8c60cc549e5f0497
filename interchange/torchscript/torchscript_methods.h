#pragma once
// The methods of exported generative networks, written in TorchScript. @NAME@ is a placeholder; one of several lines
// has a line of its own.

namespace cloze::torchscript {

inline constexpr const char* decoder_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
@READ_MASK@
    out = self._traced(input_ids, mask, torch.zeros_like(input_ids[:, 0]))
    return @OUTPUTS@
)";

inline constexpr const char* prefix_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None,
            prefix: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
@READ_MASK@
    prefix_lengths = torch.zeros_like(input_ids[:, 0])
    if prefix is not None:
        prefix_lengths = prefix
    out = self._traced(input_ids, mask, prefix_lengths)
    return @OUTPUTS@
)";

/// Without decoder_input_ids the decoder reads the encoder's text, shifted right by one.
inline constexpr const char* encoder_decoder_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None,
            decoder_input_ids: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
@READ_MASK@
    if decoder_input_ids is not None:
        decoder_ids = decoder_input_ids
    else:
        decoder_ids = torch.cat([@FIRST_DECODER_ID@, input_ids[:, :-1]], 1)
@CHECK_DECODER_IDS@
    out = self._traced(input_ids, mask, decoder_ids)
    return @OUTPUTS@
)";

inline constexpr const char* encode_method = R"(
def encode(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None) -> Tensor:
@CHECK_TEXT@
@READ_MASK@
    return self._encode(input_ids, mask)[0]
)";

inline constexpr const char* decode_method = R"(
def decode(self, ids: Tensor, memory: Tensor, attention_mask: Optional[Tensor] = None,
           past: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
@CHECK_IDS@
    rows = ids.size(0)
    is_encoded = memory.dim() == 3 and memory.size(0) == rows and memory.size(2) == @HIDDEN@
    assert is_encoded, "memory must be the output of encode for these rows"
    mask = torch.ones_like(memory[:, :, 0], dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
    cache = torch.zeros([@LAYERS@, rows, 0, @WIDTH@], dtype=memory.dtype, device=memory.device)
    if past is not None:
        cache = past
    is_cache = cache.dim() == 4 and cache.size(0) == @LAYERS@ and cache.size(1) == rows and cache.size(3) == @WIDTH@
    assert is_cache, "past must be the cache that decode returned for these rows"
@CHECK_PAST@
    return self._decode(ids, mask, cache, self._memory(memory)[0])
)";

/// The start of generate: `sequences` [rows, length], of which all but the last `tokens` [rows, 1] are in the cache
/// `cache`, and `mask`, of the encoder's text or of `sequences`.
inline constexpr const char* encoder_beginning = R"(
@READ_MASK@
    memory = torch.repeat_interleave(self._encode(input_ids, mask)[0], beams, 0)
    mask = torch.repeat_interleave(mask, beams, 0)
    cross = self._memory(memory)[0]
    cache = torch.zeros([@LAYERS@, batch * beams, 0, @WIDTH@], dtype=memory.dtype, device=input_ids.device)
    tokens = torch.full([batch * beams, 1], @START@, dtype=4, device=input_ids.device)
    sequences = tokens
)";
inline constexpr const char* decoder_beginning = R"(
    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0)
        assert bool(torch.all(mask[:, -1])), "prompts of different lengths must be padded on the left"
    mask = torch.repeat_interleave(mask, beams, 0)
    sequences = torch.repeat_interleave(input_ids, beams, 0)
    cache = torch.zeros([@LAYERS@, batch * beams, 0, @WIDTH@], dtype=@DTYPE@, device=input_ids.device)
    if sequences.size(1) > 1:
        cache = self._decode(sequences[:, :-1], mask[:, :-1], cache)[1]
    tokens = sequences[:, -1:]
)";

/// The rules of search_rules.cpp, on scores [rows, V] of the token after `sequences` [rows, length]; `mask` is false at
/// padding. The repetition penalty skips padding; n-grams include it, as in transformers.
inline constexpr const char* apply_rules_method = R"(
def _apply_rules(self, scores: Tensor, sequences: Tensor, mask: Tensor, last: bool, no_repeat_ngram_size: int,
                 repetition_penalty: float, min_length: int) -> Tensor:
    length = sequences.size(1)
    if repetition_penalty != 1.0:
        ids = torch.where(mask, sequences, torch.full_like(sequences, scores.size(1)))
        scores = torch.cat([scores, scores[:, :1]], 1)
        repeated = torch.gather(scores, 1, ids)
        repeated = torch.where(torch.lt(repeated, 0.0), repeated * repetition_penalty, repeated / repetition_penalty)
        scores = torch.scatter(scores, 1, ids, repeated)[:, :-1]
    n = no_repeat_ngram_size
    if n > 0 and length >= n:
        grams = sequences.unfold(1, n, 1)
        again = torch.all(torch.eq(grams[:, :, :n - 1], sequences[:, length - n + 1:].unsqueeze(1)), -1)
        counts = torch.scatter_add(torch.zeros_like(scores), 1, grams[:, :, n - 1], again.to(scores.dtype))
        scores = torch.masked_fill(scores, torch.gt(counts, 0.0), -float("inf"))
    if @EOS@ >= 0 and length < min_length:
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

/// Greedy and beam search as in search.cpp. Source: see there. Of the 2 * beams best continuations, `found`, those that
/// end compete with the finished texts, and the others are extended.
inline constexpr const char* generate_method = R"(
def generate(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None, max_new_tokens: int = 20,
             num_beams: int = 1, length_penalty: float = 1.0, early_stopping: bool = False,
             no_repeat_ngram_size: int = 0, repetition_penalty: float = 1.0, min_length: int = 0,
             min_new_tokens: int = 0) -> Tensor:
    batch = input_ids.size(0)
    beams = num_beams
    assert beams >= 1, "num_beams must be at least 1"
    assert max_new_tokens >= 1, "max_new_tokens must be at least 1"
    assert no_repeat_ngram_size >= 0, "no_repeat_ngram_size must be at least 0"
    assert repetition_penalty > 0.0, "repetition_penalty must be above 0"
    assert min_length >= 0, "min_length must be at least 0"
    assert min_new_tokens >= 0 and min_new_tokens <= max_new_tokens, "min_new_tokens must be from 0 to max_new_tokens"
@CHECK_LENGTH@
@BEGINNING@
    device = input_ids.device
    start = sequences.size(1)
    shortest = min_length
    if min_new_tokens > 0:
        shortest = start + min_new_tokens
    if beams == 1:
        done = torch.zeros([batch], dtype=11, device=device)
        for step in range(max_new_tokens):
            last = step + 1 == max_new_tokens
            logits, cache = @STEP@
            row = self._apply_rules(logits.to(6), sequences, @SEQUENCE_MASK@, last, no_repeat_ngram_size,
                                    repetition_penalty, shortest)
            best = torch.argmax(row, -1)
            best = torch.where(done, torch.full_like(best, @PAD@), best)
            sequences = torch.cat([sequences, best.unsqueeze(1)], 1)
            mask = @MASK_AFTER@
            done = torch.logical_or(done, torch.eq(best, @EOS@))
            tokens = best.unsqueeze(1)
            if bool(torch.all(done)):
                break
        return sequences
    none = -1000000000.0
    running = torch.full([batch, beams], none, device=device)
    running[:, 0] = 0.0
    longest = start + max_new_tokens
    scores = torch.full([batch, beams], none, device=device)
    is_text = torch.zeros([batch, beams], dtype=11, device=device)
    lengths = torch.full([batch, beams], start, dtype=4, device=device)
    texts = torch.full([batch, beams, longest], @FILL@, dtype=4, device=device)
    texts[:, :, :start] = sequences.view(batch, beams, start)
    done = torch.zeros([batch], dtype=11, device=device)
    for step in range(max_new_tokens):
        norm = float(step + 1) ** length_penalty
        last = step + 1 == max_new_tokens
        logits, cache = @STEP@
        vocab = logits.size(-1)
        row = self._apply_rules(torch.log_softmax(logits.to(6), -1), sequences, @SEQUENCE_MASK@, last,
                                no_repeat_ngram_size, repetition_penalty, shortest)
        total = row.view(batch, beams, vocab) + running.unsqueeze(-1)
        top, index = torch.topk(total.view(batch, beams * vocab), 2 * beams, -1)
        beam = torch.div(index, vocab, rounding_mode="floor")
        token = torch.remainder(index, vocab)
        ends = torch.eq(token, @EOS@)
        if last:
            ends = torch.ones_like(ends)
        length = sequences.size(1)
        found = torch.gather(sequences.view(batch, beams, length), 1,
                             beam.unsqueeze(-1).expand(batch, 2 * beams, length))
        found = torch.cat([found, token.unsqueeze(-1)], -1)
        counts = torch.logical_and(ends, torch.lt(torch.arange(2 * beams, device=device), beams).unsqueeze(0))
        finished = top / norm + torch.logical_not(counts).to(6) * none
        fill = torch.full([batch, 2 * beams, longest - length - 1], @FILL@, dtype=4, device=device)
        filled = torch.cat([found, fill], -1)
        kept, chosen = torch.topk(torch.cat([scores, finished], 1), beams, -1)
        active = torch.logical_not(done).unsqueeze(1)
        chosen_ids = chosen.unsqueeze(-1).expand(batch, beams, longest)
        texts = torch.where(active.unsqueeze(-1), torch.gather(torch.cat([texts, filled], 1), 1, chosen_ids), texts)
        is_text = torch.where(active, torch.gather(torch.cat([is_text, counts], 1), 1, chosen), is_text)
        all_lengths = torch.cat([lengths, torch.full_like(token, length + 1)], 1)
        lengths = torch.where(active, torch.gather(all_lengths, 1, chosen), lengths)
        scores = torch.where(active, kept, scores)
        running, chosen = torch.topk(top + ends.to(6) * none, beams, -1)
        offset = torch.arange(batch, device=device).unsqueeze(1) * beams
        origin = (torch.gather(beam, 1, chosen) + offset).view(batch * beams)
        chosen_ids = chosen.unsqueeze(-1).expand(batch, beams, length + 1)
        sequences = torch.gather(found, 1, chosen_ids).view(batch * beams, length + 1)
        mask = @MASK_AFTER@
        tokens = torch.gather(token, 1, chosen).view(batch * beams, 1)
        cache = torch.index_select(cache, 1, origin)
        hope = running[:, 0] / norm
        any_text = torch.any(is_text, 1)
        full = torch.all(is_text, 1)
        better = torch.logical_and(any_text, torch.gt(hope, scores[:, -1]))
        missing = torch.logical_and(torch.logical_not(full), torch.gt(hope, none))
        done = torch.logical_or(done, torch.logical_not(torch.logical_or(better, missing)))
        if early_stopping:
            done = torch.logical_or(done, full)
        if bool(torch.all(done)):
            break
    return texts[:, 0, :int(torch.max(lengths[:, 0]))]
)";

}  // namespace cloze::torchscript
