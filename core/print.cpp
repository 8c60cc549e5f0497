#include "core/print.h"

#include <unistd.h>

#include <cstdio>

#include "core/error.h"
#include "core/file.h"
#include "core/readable.h"

namespace cloze {

namespace {

void put_out(const std::string& text, bool at_once) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && (!at_once || std::fflush(stdout) == 0);
  require<Error>(written, "cannot write to standard output (", system_reason(), "); the output is incomplete");
}

}  // namespace

void print_text(const std::string& text, bool at_once) { put_out(printable(text), at_once); }

void print_data(const std::string& text) { put_out(isatty(STDOUT_FILENO) == 1 ? printable(text) : text, false); }

}  // namespace cloze
