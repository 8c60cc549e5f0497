#pragma once
// Tests as a table in a file: a case a line, its cells between tabs, with \n, \t and \\ in them. # begins a comment.
#include <fstream>
#include <string>
#include <vector>

#include "core/text.h"
#include "tests/support/catch.h"

inline std::vector<std::vector<std::string>> table_of_tests(const std::string& file) {
  std::ifstream in(std::string(SOURCE_DIR "/tests/") + file);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    auto& cells = rows.emplace_back(cloze::separated(line, "\t"));
    for (auto& cell : cells)
      for (size_t at = 0; (at = cell.find('\\', at)) != std::string::npos; ++at)
        cell.replace(at, 2, cell[at + 1] == 'n' ? "\n" : cell[at + 1] == 't' ? "\t" : "\\");
  }
  REQUIRE_FALSE(rows.empty());
  return rows;
}

/// Checks that a text is what a cell says after `=`, or has all parts of it, between which ` ... ` stands.
inline void check_is(const std::string& text, const std::string& cell) {
  if (cell.starts_with('=')) {
    CHECK(text == cell.substr(1));
    return;
  }
  for (const auto& part : cloze::separated(cell, " ... ")) CHECK_THAT(text, Catch::Contains(part));
}
