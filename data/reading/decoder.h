#pragma once
// Text in another encoding than UTF-8.
#include <memory>
#include <string>
#include <string_view>

namespace cloze {

/// Makes UTF-8 of lines in another encoding, in which ASCII is as it is: Latin-1, Windows-1252, Shift JIS, GB 18030.
class Decoder {
 public:
  /// encoding   as iconv(1) names it
  /// Throws ConfigError for one that is not known, and for one in which ASCII is something else.
  explicit Decoder(const std::string& encoding);
  ~Decoder();
  /// A line, which is decoded where it is not UTF-8, and all of it belongs to the encoding; valid until the next call.
  std::string_view utf8(std::string_view line);

 private:
  bool decode(std::string_view line);
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::string decoded_{};
};

}  // namespace cloze
