#include "data/source_bytes.h"

#include <algorithm>

namespace cloze {

std::vector<uint32_t> source_bytes(const Tokenizer& tokenizer, const std::string& sentence,
                                   std::span<const int32_t> ids, bool follows) {
  const auto fits = [&](const std::vector<TokenSpan>& tokens) {
    return std::equal(tokens.begin(), tokens.end(), ids.begin(), ids.end(),
                      [](const auto& token, int32_t id) { return token.id == id; });
  };
  size_t before = 0;  // spaces inserted before the sentence
  auto tokens = tokenizer.encode_with_offsets(sentence);
  if (!fits(tokens) && follows) {  // byte-level BPE includes the space before a text in its first token
    before = 1;
    tokens = tokenizer.encode_with_offsets(" " + sentence);
  }
  const bool has_offsets = fits(tokens);
  std::vector<uint32_t> bytes(ids.size());
  size_t done = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    // Without offsets, the bytes are shared equally.
    const size_t wanted =
        has_offsets ? tokens[i].end - std::min(tokens[i].end, before) : sentence.size() * (i + 1) / ids.size();
    const size_t end = i + 1 == ids.size() ? sentence.size() : std::clamp(wanted, done, sentence.size());
    bytes[i] = static_cast<uint32_t>(end - done);
    done = end;
  }
  bytes[0] += follows;
  return bytes;
}

}  // namespace cloze
