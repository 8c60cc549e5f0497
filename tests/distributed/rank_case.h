#pragma once
// The test case that is a rank (ranks.h): one file of a test program includes it.
#include "tests/distributed/ranks.h"
#include "tests/support/catch.h"

TEST_CASE("a rank of the tests of this program", "[.rank]") {
  cloze::Meeting meeting{.rank = std::stoi(setting("CLOZE_RANK")),
                         .size = std::stoi(setting("CLOZE_SIZE")),
                         .host = "127.0.0.1",
                         .port = std::stoi(setting("CLOZE_PORT")),
                         .timeout = std::stod(setting("CLOZE_TIMEOUT"))};
  meeting.end = [](const std::string& sentence, int code) {
    say(sentence);
    _exit(code);
  };
  try {
    const auto group = cloze::meet(meeting);
    say(scenarios().at(setting("CLOZE_SCENARIO"))(*group));
  } catch (const cloze::Error& error) {
    say(error.what());
    _exit(error.exit_code());
  }
}
