// What the program prints on a terminal, which is as wide as its lines may be.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "tests/cli/program.h"

namespace {

/// Runs cloze in the source folder, on a terminal of so many columns; the code is -1 where the system has none to give.
/// `by`: the program that runs it, with its arguments.
Answer on_terminal(const std::string& arguments, int columns, const std::string& by = "") {
  const auto command = "cd " SOURCE_DIR " && exec " + by + " " BINARY_DIR "/cloze " + arguments;
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return {-1, ""};
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  ioctl(terminal, TIOCSWINSZ, &size);
  const int line = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (line < 0) return {-1, ""};
  const pid_t child = fork();
  if (child == 0) {
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(line, file);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  close(line);
  Answer answer{};
  std::array<char, 4096> block{};
  for (ssize_t n = 0; (n = read(terminal, block.data(), block.size())) > 0;)
    answer.text.append(block.data(), static_cast<size_t>(n));
  close(terminal);
  answer.code = wait_for(child);
  std::erase(answer.text, '\r');
  return answer;
}

void check_width(const std::string& text, size_t columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(characters(line) <= columns);
  }
}

}  // namespace

TEST_CASE("on a terminal, the sentence of an error breaks between words", "[cli]") {
  const std::string mistaken = "describe configs/bert/tiny.yaml --set model.hidden_sise=64";
  const auto answer = on_terminal(mistaken, 60);
  if (answer.code == -1) return;
  CHECK(answer.code == 2);
  CHECK(answer.text ==
        "cloze: error: --set model.hidden_sise=64: unknown key\n  'model.hidden_sise'; did you mean "
        "'model.hidden_size'?\n");
  CHECK_THAT(cloze(mistaken, "cd " SOURCE_DIR " && ").text,
             Catch::Contains("unknown key 'model.hidden_sise'; did you mean"));
}

TEST_CASE("on a terminal, the lines of reports are no wider than it is", "[cli]") {
  for (const std::string arguments : {"describe configs/bert/tiny.yaml", "verify parity tests/parity/bert"}) {
    const auto answer = on_terminal(arguments, 80);
    if (answer.code == -1) return;
    INFO(arguments);
    CHECK(answer.code == 0);
    CHECK(answer.text.size() > 1000);
    check_width(answer.text, 80);
  }
}

TEST_CASE("on a terminal, a word that was filled in is bold, and in brackets where colours are not wanted", "[cli]") {
  const auto fill = "--quiet fill " + world().run + " 'The cat [MASK] on mat'";
  const auto bold = on_terminal(fill, 80, "env -u NO_COLOR TERM=xterm"),
             plain = on_terminal(fill, 80, "env NO_COLOR=1");
  if (bold.code == -1) return;
  CHECK_THAT(bold.text, Catch::Matches("The cat ?\033\\[1m[^\\[\033]*\033\\[0m on mat\n(.|\n)*"));
  CHECK_THAT(plain.text, Catch::Matches("The cat ?\\[[^\\[\033]*\\] on mat\n(.|\n)*"));
}

TEST_CASE("on a terminal, lines of the log go on below the text that they begin with", "[cli]") {
  const auto answer = on_terminal("evaluate " + world().run + " --sequences 4", 40);
  if (answer.code == -1) return;
  CHECK(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains("\n" + std::string(10, ' ') + "the best checkpoint\n"));
}

TEST_CASE("on a terminal, the progress line of a training ends at the last step", "[cli]") {
  const auto& w = world();
  const auto answer =
      on_terminal("pretrain " + w.config() + " --set train.budget.steps=7 --run " + w.dir / "shown", 100);
  if (answer.code == -1) return;
  CHECK(answer.code == 0);
  const auto at = answer.text.rfind("step  ");
  REQUIRE(at != std::string::npos);
  CHECK_THAT(answer.text.substr(at, 20), Catch::StartsWith("step  7/7 "));
}

TEST_CASE("on a terminal, what a verb says to a signal breaks between words", "[cli]") {
  TempDir dir;
  const auto endless = "pretrain " + world().config() + " --set train.budget.steps=1000000 --run " + dir / "run";
  const auto answer = on_terminal(endless, 24, "timeout --foreground --preserve-status -k 60 -s INT 3");
  if (answer.code == -1) return;
  CHECK(answer.code == 130);
  CHECK_THAT(answer.text, Catch::Contains("\nsaving, then stopping; a\n  second Ctrl-C ends\n  without saving\n"));
}
