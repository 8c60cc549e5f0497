#pragma once
// Fuzz drivers: parsers of bytes that come from elsewhere, each called with any bytes at all.
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "tests/support/temp_dir.h"

namespace cloze {

/// A parser under attack.
struct FuzzTarget {
  std::string name;                         ///< of its folder of seeds in tests/fuzz/corpus
  bool (*accepts)(std::string_view bytes);  ///< false where the parser refuses the bytes with an Error
  std::vector<std::string> more_seeds{};    ///< files and folders of other tests, below tests/
};

/// The folder of all drivers of this process.
inline const TempDir& scratch() {
  static const TempDir folder;
  return folder;
}

/// Whether `parse` ends without an Error. Every other exception goes on, and is the fault that is looked for; so is an
/// Error without a sentence.
template <class Parse>
bool accepts(const Parse& parse) {
  try {
    parse();
    return true;
  } catch (const Error& error) {
    if (std::string_view(error.what()).empty()) throw std::logic_error("an error without a message");
    return false;
  }
}

/// The drivers of a program.
std::vector<FuzzTarget> fuzz_targets();

// Parsers of the libraries without LibTorch and configs, which libFuzzer drives too.
bool fuzz_tokenizer_json(std::string_view bytes);
bool fuzz_tokenizer_facts(std::string_view bytes);
bool fuzz_vocab_txt(std::string_view bytes);
bool fuzz_byte_bpe(std::string_view bytes);
bool fuzz_sentencepiece(std::string_view bytes);
bool fuzz_text(std::string_view bytes);
bool fuzz_gz(std::string_view bytes);
bool fuzz_xz(std::string_view bytes);
bool fuzz_manifest(std::string_view bytes);
bool fuzz_shard(std::string_view bytes);

bool fuzz_config(std::string_view bytes);
bool fuzz_override(std::string_view bytes);
bool fuzz_plot(std::string_view bytes);
bool fuzz_state(std::string_view bytes);
bool fuzz_checkpoint(std::string_view bytes);
bool fuzz_safetensors(std::string_view bytes);
bool fuzz_pickle(std::string_view bytes);
bool fuzz_torch_file(std::string_view bytes);
bool fuzz_huggingface_config(std::string_view bytes);
bool fuzz_suite_lines(std::string_view bytes);
bool fuzz_suite_table(std::string_view bytes);
bool fuzz_python_json(std::string_view bytes);
bool fuzz_task_file(std::string_view bytes);
bool fuzz_task_data(std::string_view bytes);

}  // namespace cloze
