// Options of a search, as `generate` and `evaluate` have them.
#include <algorithm>
#include <array>
#include <string_view>

#include "core/contains.h"
#include "cli/engine/parts.h"

namespace cloze {

namespace {

/// The fields of SearchConfig that are options.
constexpr std::array<std::string_view, 16> fields{"max_new_tokens",
                                                  "min_new_tokens",
                                                  "num_beams",
                                                  "num_beam_groups",
                                                  "num_return_sequences",
                                                  "length_penalty",
                                                  "diversity_penalty",
                                                  "do_sample",
                                                  "temperature",
                                                  "top_p",
                                                  "typical_p",
                                                  "top_k",
                                                  "repetition_penalty",
                                                  "no_repeat_ngram_size",
                                                  "forced_bos_token_id",
                                                  "forced_eos_token_id"};

/// A message with the option of each field, `--top-p` for `top_p`.
std::string with_options(const std::string& message) {
  const auto is_of_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const auto end = std::find_if_not(message.begin() + static_cast<std::ptrdiff_t>(at), message.end(), is_of_name);
    auto word = message.substr(at, static_cast<size_t>(end - message.begin()) - at);
    if (word.empty()) word = message[at];
    at += word.size();
    if (contains(fields, word)) {
      std::replace(word.begin(), word.end(), '_', '-');
      word.insert(0, "--");
    }
    text += word;
  }
  return text;
}

}  // namespace

void check_search(const SearchConfig& search) {
  try {
    check(search);
  } catch (const ConfigError& error) {
    throw ConfigError(with_options(error.what()));
  }
}

}  // namespace cloze
