#pragma once
// A small WordPiece tokenizer and items for tests of tasks.
#include <string>
#include <utility>
#include <vector>

#include "data/tokenizer.h"
#include "tasks/item.h"
#include "tests/support/temp_dir.h"

namespace cloze {

/// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, a 5, b 6, c 7, ..., ##x 11, ##y 12, and words.
inline Tokenizer small_wordpiece(const TempDir& dir) {
  dir.write("small/vocab.txt",
            "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\ne\nf\n##x\n##y\ncafe\n##ine\n1\n##\u2044\n##2\n\u00BD\n."
            "\n,\nx\ny\n");
  return Tokenizer::open(dir / "small");
}

inline TaskItem text_item(std::string text, TaskAnswer gold = {}) {
  return {.id = "t", .text = std::move(text), .gold = std::move(gold)};
}

inline TaskItem pair_item(std::string first, std::string second, TaskAnswer gold = {}) {
  return {.id = "p", .text = std::move(first), .second = std::move(second), .is_pair = true, .gold = std::move(gold)};
}

inline std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace cloze
