#include "data/reading/decoder.h"

#include <iconv.h>

#include "core/error.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

struct Decoder::Handle {
  explicit Handle(const std::string& encoding) : converter(iconv_open("UTF-8", encoding.c_str())) {
    auto plain = encoding;  // iconv has latin1, and Python latin-1, too
    std::erase_if(plain, [](char c) { return c == '-' || c == '_'; });
    if (!is_open()) converter = iconv_open("UTF-8", plain.c_str());
    require<ConfigError>(is_open(), "--encoding is '", encoding,
                         "', which is no encoding that is known here; iconv -l lists them: latin1, cp1252, gb18030");
  }
  ~Handle() {
    if (is_open()) iconv_close(converter);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  bool is_open() const { return converter != reinterpret_cast<iconv_t>(-1); }
  iconv_t converter;
};

Decoder::Decoder(const std::string& encoding) : handle_(std::make_unique<Handle>(encoding)) {
  constexpr std::string_view utf8 = "\u00E9";
  bool has_others = decode(utf8) && decoded_ == utf8;  // characters that begin beyond ASCII
  for (int byte = 0x80; byte < 0x100; ++byte)
    has_others = decode(std::string(2, static_cast<char>(byte))) || has_others;
  constexpr std::string_view ascii = "AZaz09 \t\n\"{},";
  require<ConfigError>(has_others && decode(ascii) && decoded_ == ascii, "--encoding is '", encoding,
                       "', whose lines cannot be told from ASCII or UTF-8; convert such files: iconv -f ", encoding,
                       " -t utf-8");
}

Decoder::~Decoder() = default;

bool Decoder::decode(std::string_view line) {
  constexpr size_t most_bytes = 4;  // of a character in UTF-8
  constexpr auto failed = static_cast<size_t>(-1);
  iconv(handle_->converter, nullptr, nullptr, nullptr, nullptr);
  decoded_.resize(most_bytes * line.size());
  auto* in = const_cast<char*>(line.data());
  auto* out = decoded_.data();
  size_t left = line.size(), room = decoded_.size();
  const bool is_whole = iconv(handle_->converter, &in, &left, &out, &room) != failed &&
                        iconv(handle_->converter, nullptr, nullptr, &out, &room) != failed;
  decoded_.resize(decoded_.size() - room);
  return is_whole;
}

std::string_view Decoder::utf8(std::string_view line) {
  const bool is_decoded = find_invalid_utf8(line) != line.npos && decode(line);
  return is_decoded ? std::string_view(decoded_) : line;
}

}  // namespace cloze
