#pragma once
// The built program, run as a user runs it.
#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

/// What a run of the program left.
struct Answer {
  int code;
  std::string text;  ///< standard output and standard error
};

/// Runs cloze; `before` is shell code that comes first.
inline Answer cloze(const std::string& arguments, const std::string& before = "") {
  std::FILE* pipe = popen((before + BINARY_DIR "/cloze " + arguments + " 2>&1").c_str(), "r");
  Answer answer{};
  std::array<char, 4096> block{};
  for (size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) answer.text.append(block.data(), n);
  answer.code = exit_code_of(pclose(pipe));
  return answer;
}

/// Characters of a text of UTF-8.
inline size_t characters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// The JSON after the log lines.
inline nlohmann::json json_of(const Answer& answer) {
  INFO(answer.text);
  const auto at = answer.text.find("{\"");
  REQUIRE(at != std::string::npos);
  return nlohmann::json::parse(answer.text.substr(at));
}

/// The program ends with this exit code, and says this.
inline void check_refused(const std::string& arguments, int code, const std::string& sentence) {
  const auto answer = cloze(arguments);
  INFO(arguments << "\n" << answer.text);
  CHECK(answer.code == code);
  CHECK_THAT(answer.text, Catch::Contains(sentence));
  CHECK_THAT(answer.text,
             !Catch::Contains("terminate called") && !Catch::Contains("frame #") && !Catch::Contains("This is a bug"));
}

/// A text, its tokens and a trained run, created once.
struct World {
  TempDir dir;
  std::string tokens, run;
  World() {
    std::string text;
    for (int d = 0; d < 20; ++d) {
      for (int s = 0; s < 12; ++s)
        text += "The cat number " + std::to_string(d * 31 % 17) + " sat on mat " + std::to_string(s) +
                " and slept. Then it woke.\n";
      text += "\n";
    }
    dir.write("text.txt", text);
    tokens = dir / "tokens";
    run = dir / "run";
    const auto prepared = cloze("prepare " + dir / "text.txt" + " --vocab-size 80 --held-out 0.2 --out " + tokens);
    INFO(prepared.text);
    REQUIRE(prepared.code == 0);
    const auto trained = cloze("pretrain " + config() + " --run " + run);
    INFO(trained.text);
    REQUIRE(trained.code == 0);
  }
  std::string config() const {
    return SOURCE_DIR "/configs/bert/tiny.yaml --set data.tokens=" + tokens +
           " --set model.hidden_size=32 --set model.intermediate_size=32 --set train.budget.steps=6 --set "
           "data.max_seq_length=32 --set evaluation.sequences=16 --set train.batch_size=4";
  }
};

inline World& world() {
  static World made;
  return made;
}
