// The command that is told of the events of a run.
#include "run/records/hook.h"

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/catch.h"
#include "tests/support/logged.h"

using namespace cloze;
using nlohmann::json;

namespace {

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("a hook reads its events in order, and what stands in them is no part of the command", "[run][hook]") {
  const TempDir dir;
  const json first{{"event", "a"}, {"run", "$(touch " + dir / "made" + ")'; touch " + dir / "made" + " #\n"}};
  const json second{{"event", "b"}, {"text", std::string(200'000, 'x')}};
  {
    Hook hook("cat >> " + dir / "events");
    hook.tell(first);
    hook.tell(second);
  }
  CHECK(read_file(dir / "events") == first.dump() + "\n" + second.dump() + "\n");
  CHECK_FALSE(std::filesystem::exists(dir / "made"));
}

TEST_CASE("a hook that fails is told once for each kind of event, with the last line that it printed", "[run][hook]") {
  const TempDir dir;
  const auto log = logged(dir, [&] {
    Hook hook("echo first; echo no server >&2; exit 3");
    for (const auto* kind : {"evaluated", "evaluated", "checkpoint"}) hook.tell({{"event", kind}});
    Hook("kill -9 $$").tell({{"event", "failed"}});
    Hook("/nowhere/command").tell({{"event", "started"}});
  });
  const auto first = log.find("the hook failed at the event 'evaluated' (exit code 3: no server)");
  CHECK(first != std::string::npos);
  CHECK(log.find("'evaluated'", first + 60) == std::string::npos);
  CHECK_THAT(log, Catch::Contains("the hook failed at the event 'checkpoint' (exit code 3: no server)") &&
                      Catch::Contains("'failed' (signal 9)") && Catch::Contains("'started' (exit code 127: ") &&
                      !Catch::Contains("first"));
}

TEST_CASE("a hook that hangs is not waited for while a run goes on, and then for its bound", "[run][hook]") {
  const TempDir dir;
  double told = 0, ended = 0;
  const auto log = logged(dir, [&] {
    std::optional<Hook> hook;
    hook.emplace("sleep 60 & sleep 60", 2);
    told = seconds_of([&] { hook->tell({{"event", "started"}}); });
    ended = seconds_of([&] { hook.reset(); });
  });
  CHECK(told < 1.5);
  CHECK(ended < 20);
  CHECK_THAT(log, Catch::Contains("the hook failed at the event 'started' (it took more than 2 s and was killed)"));
}

TEST_CASE("a hook that hangs at every event costs a run twice its patience at most", "[run][hook]") {
  const TempDir dir;
  double waited = 0;
  logged(dir, [&] {
    Hook hook("sleep 60", 0.4);
    waited = seconds_of([&] {
      for (int i = 0; i < 20; ++i) hook.tell({{"event", "evaluation"}});  // the first waits for none
    });
  });
  CHECK(waited > 0.4);
  CHECK(waited < 2.5);  // 19 times the patience are 7.6
}

TEST_CASE("a hook prints nothing into what the program prints, and holds no file of the program", "[run][hook]") {
  const TempDir dir;
  {
    Hook("ls /proc/self/fd | wc -l > " + dir / "open; echo text").tell({{"event", "a"}});
  }
  CHECK(std::stoi(read_file(dir / "open")) <= 4);  // its three, and the folder that it lists
}
