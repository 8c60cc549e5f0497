#include "data/tokenizers/decoders.h"

#include <charconv>
#include <unordered_map>

#include "core/text.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/normalized_text.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

using Pieces = std::vector<std::string>;

void add_decoder(const Field& field, const std::string& type, const std::shared_ptr<SearchTime>& time,
                 std::vector<Decoder>& steps) {
  if (type == "WordPiece") {
    steps.emplace_back(
        WordPieceDecoder{.prefix = field["prefix"].text_or("##"), .cleanup = field["cleanup"].flag(true)});
  } else if (type == "ByteLevel") {
    steps.emplace_back(ByteLevelDecoder{});
  } else if (type == "Metaspace") {
    const auto scheme = field["prepend_scheme"].text_or(field["add_prefix_space"].flag(true) ? "always" : "never");
    steps.emplace_back(MetaspaceDecoder{.mark = field["replacement"].text(), .drops_first = scheme != "never"});
  } else if (type == "BPEDecoder") {
    steps.emplace_back(BpeDecoder{.suffix = field["suffix"].text_or("</w>")});
  } else if (type == "Fuse") {
    steps.emplace_back(FuseDecoder{});
  } else if (type == "Strip") {
    const auto stop = field["stop"].count(0, INT32_MAX);
    steps.emplace_back(
        StripDecoder{.content = field["content"].text(), .start = field["start"].count(0, INT32_MAX), .stop = stop});
  } else if (type == "Replace") {
    steps.emplace_back(ReplaceDecoder{Pattern(field["pattern"], time), field["content"].text()});
  } else if (type == "ByteFallback") {
    steps.emplace_back(ByteFallbackDecoder{});
  } else if (type == "CTC") {
    field.refuse("is CTC, which decodes speech; Cloze supports tokenizers of text only");
  } else {
    field.refuse(concat("is of the kind '", type, "', a decoder that Cloze does not support"));
  }
}

void apply(const WordPieceDecoder& step, Pieces& pieces) {
  struct Change {
    const char *from, *to;
  };
  static constexpr Change changes[] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                       {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                       {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto& piece = pieces[i];
    if (i > 0 && piece.starts_with(step.prefix))
      piece.erase(0, step.prefix.size());
    else if (i > 0)
      piece.insert(0, 1, ' ');
    if (!step.cleanup) continue;
    for (const auto& change : changes) replace_all(piece, change.from, change.to);
  }
}

void apply(const ByteLevelDecoder&, Pieces& pieces) {
  static const auto values = [] {
    std::unordered_map<int32_t, char> of;
    for (int byte = 0; byte < 256; ++byte) of[byte_code(static_cast<uint8_t>(byte))] = static_cast<char>(byte);
    return of;
  }();
  std::string text;
  for (const auto& piece : pieces) {
    std::string bytes;
    bool all = true;
    for (size_t at = 0; at < piece.size() && all;) {
      const auto found = values.find(next_code_point(piece, at));
      all = found != values.end();
      if (all) bytes += found->second;
    }
    text += all ? bytes : piece;
  }
  pieces = {std::move(text)};
}

void apply(const MetaspaceDecoder& step, Pieces& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], step.mark, i == 0 && step.drops_first ? "" : " ");
}

void apply(const BpeDecoder& step, Pieces& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], step.suffix, i + 1 == pieces.size() ? "" : " ");
}

void apply(const FuseDecoder&, Pieces& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += piece;
  pieces = {std::move(text)};
}

void apply(const StripDecoder& step, Pieces& pieces) {
  if (step.content.empty()) return;
  for (auto& piece : pieces) {
    for (int64_t i = 0; i < step.start && piece.starts_with(step.content); ++i) piece.erase(0, step.content.size());
    for (int64_t i = 0; i < step.stop && piece.ends_with(step.content); ++i)
      piece.erase(piece.size() - step.content.size());
  }
}

size_t bytes_of(const Pieces& pieces) {
  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  return bytes;
}

void check_growth(size_t bytes, size_t source_bytes) {
  require<DataError>(bytes <= most_bytes(source_bytes), "the rules of the tokenizer make more than ",
                     most_bytes(source_bytes), " bytes of tokens of ", source_bytes, "; correct its decoder");
}

void apply(const ReplaceDecoder& step, Pieces& pieces) {
  const size_t source_bytes = bytes_of(pieces);
  size_t written = 0;
  std::vector<PatternSpan> spans;
  for (auto& piece : pieces) {
    spans.clear();
    step.pattern.split(piece, spans);
    std::string text;
    for (const auto& span : spans) {
      if (span.matched)
        text += step.content;
      else
        text.append(piece, span.begin, span.end - span.begin);
      check_growth(written + text.size(), source_bytes);
    }
    written += text.size();
    piece = std::move(text);
  }
}

void apply(const ByteFallbackDecoder&, Pieces& pieces) {
  Pieces out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (find_invalid_utf8(bytes) == std::string::npos)
      out.push_back(bytes);
    else
      out.insert(out.end(), bytes.size(), "\uFFFD");
    bytes.clear();
  };
  for (auto& piece : pieces) {
    uint8_t byte = 0;
    const bool framed = piece.size() == 6 && piece.starts_with("<0x") && piece.back() == '>';
    if (framed && std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16).ptr == piece.data() + 5) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(piece));
  }
  flush();
  pieces = std::move(out);
}

}  // namespace

std::vector<Decoder> read_decoders(const Field& field, const std::shared_ptr<SearchTime>& time) {
  return read_steps<Decoder>(field, "decoders", [&](const Field& one, const std::string& type, auto& steps) {
    add_decoder(one, type, time, steps);
  });
}

std::string decode_pieces(const std::vector<Decoder>& steps, std::vector<std::string> pieces) {
  const size_t source_bytes = bytes_of(pieces);
  for (const auto& step : steps) {
    std::visit([&](const auto& rule) { apply(rule, pieces); }, step);
    check_growth(bytes_of(pieces), source_bytes);
  }
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && steps.empty()) text += ' ';
    text += pieces[i];
  }
  return text;
}

}  // namespace cloze
