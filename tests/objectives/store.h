#pragma once
// A small prepared text whose tokens are easy to predict: word k of sentence s of document d.
#include <string>

#include "data/prepare/prepare.h"
#include "data/store/token_store.h"
#include "tests/support/temp_dir.h"

/// A vocabulary of five special tokens, `words` words w0q, w1q, ... and the same number of continuations ##c0, ##c1,
/// ...
inline std::string tiny_vocabulary(int words) {
  std::string vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < words; ++i) vocab += "w" + std::to_string(i) + "q\n";
  for (int i = 0; i < words; ++i) vocab += "##c" + std::to_string(i) + "\n";
  return vocab;
}

/// `documents` documents of `sentences` sentences of 3 to 9 words, some of them with a continuation.
inline cloze::TokenStore tiny_store(const TempDir& dir, int documents = 40, int sentences = 9, int words = 50) {
  dir.write("vocab.txt", tiny_vocabulary(words));
  std::string text;
  for (int d = 0; d < documents; ++d) {
    for (int s = 0; s < sentences; ++s) {
      for (int k = 0; k < 3 + (d + s) % 7; ++k)
        text += "w" + std::to_string((d * 7 + s * 3 + k) % words) + "q" +
                (k % 3 == 1 ? "c" + std::to_string(k % words) : "") + " ";
      text += "\n";
    }
    text += "\n";
  }
  cloze::PrepareOptions options;
  options.inputs = {dir.write("text.txt", text)};
  options.out = dir / "tokens";
  options.format = cloze::TextFormat::lines;
  options.tokenizer = dir / "vocab.txt";
  options.held_out = 0.1;
  options.threads = 1;
  cloze::prepare(options);
  return {options.out, "train"};
}
