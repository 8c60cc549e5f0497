#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <string_view>

namespace cloze {

namespace {

using namespace std::string_view_literals;

enum class Change { flip, set, cut, remove, repeat, insert };
constexpr Change changes[] = {Change::flip,   Change::set,    Change::cut,   Change::remove,
                              Change::repeat, Change::insert, Change::insert};

constexpr std::string_view stumbling_blocks[] = {"-1"sv,
                                                 "0"sv,
                                                 "9223372036854775808"sv,
                                                 "18446744073709551616"sv,
                                                 "1e999"sv,
                                                 "nan"sv,
                                                 "null"sv,
                                                 "true"sv,
                                                 "\"\""sv,
                                                 "[]"sv,
                                                 "{}"sv,
                                                 "[["sv,
                                                 "{\""sv,
                                                 "]"sv,
                                                 "}"sv,
                                                 ","sv,
                                                 ":"sv,
                                                 "\n"sv,
                                                 "\t"sv,
                                                 "\0"sv,
                                                 "\xFF\xFE"sv,
                                                 "\xC3"sv,
                                                 "\\ud800"sv,
                                                 "\xED\xA0\x80"sv,
                                                 "&a *a"sv,
                                                 "- "sv,
                                                 "%"sv,
                                                 "<<: *a"sv,
                                                 "(?<a>"sv,
                                                 "../"sv,
                                                 "\x80\x80\x80\x80\x01"sv};

/// A part of at most 16 bytes.
std::pair<size_t, size_t> part_of(const std::string& bytes, Stream& random) {
  const size_t begin = random.below(bytes.size());
  return {begin, std::min<size_t>(1 + random.below(16), bytes.size() - begin)};
}

void change(std::string& bytes, Stream& random) {
  const auto kind = bytes.empty() ? Change::insert : changes[random.below(std::size(changes))];
  const auto [begin, size] = bytes.empty() ? std::pair<size_t, size_t>{0, 0} : part_of(bytes, random);
  switch (kind) {
    case Change::flip:
      bytes[begin] = static_cast<char>(bytes[begin] ^ (1 << random.below(8)));
      return;
    case Change::set:
      bytes[begin] = static_cast<char>(random.bits());
      return;
    case Change::cut:
      bytes.resize(begin);
      return;
    case Change::remove:
      bytes.erase(begin, size);
      return;
    case Change::repeat:
      bytes.insert(begin, bytes.substr(begin, size));
      return;
    case Change::insert: {
      const auto text = stumbling_blocks[random.below(std::size(stumbling_blocks))];
      bytes.replace(begin, random.bernoulli(0.5) ? size : 0, text);
      return;
    }
  }
}

}  // namespace

std::string mutated(std::string bytes, Stream& random) {
  for (uint64_t left = 1 + random.below(4); left > 0; --left) change(bytes, random);
  return bytes;
}

}  // namespace cloze
