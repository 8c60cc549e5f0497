// The ids of each line of standard input, with the special tokens around a text.   ids FOLDER KIND < texts
#include <iostream>

#include "data/tokenizer.h"

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "ids FOLDER KIND < texts\n";
    return 2;
  }
  const auto tokenizer = cloze::Tokenizer::open(words[1]);  // of an exported folder, a run or a file
  const auto frame = tokenizer.frame(cloze::TextReader{.kind = words[2]});
  for (std::string line; std::getline(std::cin, line);) {
    for (const auto id : frame.before) std::cout << id << " ";
    for (const auto id : tokenizer.encode(line)) std::cout << id << " ";
    for (const auto id : frame.after) std::cout << id << " ";
    std::cout << "\n";
  }
}
