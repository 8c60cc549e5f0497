#pragma once
// Errors that a user can cause and fix. One sentence: subject first, the offending value quoted, then what to do.
#include <sstream>
#include <stdexcept>
#include <string>

namespace cloze {

/// The text of a message, which would end at a NUL of a value that it repeats.
inline std::string without_nul(std::string text) {
  for (char& c : text)
    if (c == '\0') c = '?';
  return text;
}

/// A failure that a user can understand; its text is the whole message. Exit code 1.
struct Error : std::runtime_error {
  explicit Error(const std::string& text) : std::runtime_error(without_nul(text)) {}
  virtual int exit_code() const noexcept { return 1; }
};

/// Invalid user input: a config file, an override, a command line. Exit code 2.
struct ConfigError : Error {
  using Error::Error;
  int exit_code() const noexcept override { return 2; }
};

/// Text, a tokenizer or a token store that cannot be used.
struct DataError : Error {
  using Error::Error;
};
/// Tensors whose shapes do not match.
struct ShapeError : Error {
  using Error::Error;
};
/// A checkpoint, run directory or weight file that cannot be used.
struct CheckpointError : Error {
  using Error::Error;
};
/// A training whose losses say that it has diverged, and that was to stop then. Exit code 3.
struct Diverged : Error {
  using Error::Error;
  int exit_code() const noexcept override { return 3; }
};
/// Stopped by Ctrl-C, SIGTERM or SIGHUP after everything was saved. Exit code 130; that of a program: `interrupt_code`.
struct Interrupted : Error {
  using Error::Error;
  int exit_code() const noexcept override { return 130; }
};

/// The parts concatenated as text.
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws `E` with the parts as its message.
template <class E = Error, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw E(concat(parts...));
}

/// Throws `E` unless `condition`.
template <class E = Error, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) fail<E>(parts...);
}

}  // namespace cloze
