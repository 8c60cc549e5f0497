#pragma once
// The test case that is a rank (ranks.h), with a spy (spy.h): one file of a test program includes it.
#include "tests/distributed/ranks.h"
#include "tests/distributed/spy.h"
#include "tests/support/catch.h"

TEST_CASE("a rank of the tests of this program", "[.rank]") {
  cloze::Meeting meeting{.rank = std::stoi(setting("CLOZE_RANK")),
                         .size = std::stoi(setting("CLOZE_SIZE")),
                         .local_size = std::stoi(setting("CLOZE_LOCAL")),
                         .host = "127.0.0.1",
                         .port = std::stoi(setting("CLOZE_PORT")),
                         .timeout = std::stod(setting("CLOZE_TIMEOUT")),
                         .id = setting("CLOZE_ID")};
  meeting.end = [](const cloze::Failure& failure) {
    say(failure.sentence);
    _exit(failure.exit_code);
  };
  try {
    const auto group = cloze::meet(meeting);
    Spy spy(*group);
    say(scenarios().at(setting("CLOZE_SCENARIO"))(spy));
  } catch (const cloze::Error& error) {
    say(error.what());
    _exit(error.exit_code());
  }
}
