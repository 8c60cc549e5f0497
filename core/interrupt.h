#pragma once
// Ctrl-C, SIGTERM and SIGHUP: they end the program, or set a flag that work with something to save checks.
#include <array>
#include <atomic>
#include <string>

namespace cloze {

/// A folder that is removed with all in it when a signal ends the program, while the object exists.
class DoomedFolder {
 public:
  explicit DoomedFolder(const std::string& path);
  DoomedFolder(const DoomedFolder&) = delete;
  DoomedFolder& operator=(const DoomedFolder&) = delete;
  ~DoomedFolder() { spare(); }
  /// The folder stays from now on.
  void spare();

 private:
  std::string path_;  ///< absolute
  std::atomic<const char*>* slot_ = nullptr;
};

/// Removes what the DoomedFolders of this process hold, with nothing but system calls: for an end without destructors.
void remove_doomed();

/// What signals have asked for, and what they have said. The program owns one; its engine, a library with its own copy
/// of this code, shares it.
struct Interrupts {
  std::atomic<bool> requested{false};          ///< a signal came, and the work is to be saved
  std::atomic<int> signal{0};                  ///< the first that came
  std::atomic<double> requested_at{0};         ///< by the monotonic clock [s]
  std::atomic<bool> saves{false};              ///< work or output is to be completed: the first signal ends nothing
  std::atomic<const char*> sentence{nullptr};  ///< that the first signal says, after a line break; null: nothing
  std::atomic<int> said{0};                    ///< times that a signal has written to standard error
  std::atomic<bool> on_terminal{false};        ///< standard error is one
  std::array<std::atomic<const char*>, 8> doomed{};  ///< paths of the DoomedFolders of the process `owner`
  std::atomic<int> owner{0};                         ///< the process that speaks and removes, which its children do not
};

/// True after the first signal to a program that saves; one that comes a fifth of a second later or more ends it at
/// once.
struct InterruptFlag {
  operator bool() const;
};
inline constexpr InterruptFlag interrupted;

/// Without `save_when_interrupted` a signal ends the program at once, with 128 plus its number.
void install_interrupt_handlers();
/// From now on the first signal sets `interrupted`, and says `sentence`, which begins and ends with a line break and
/// lives as long as the program; without one it says nothing.
void save_when_interrupted(const char* sentence = nullptr);

/// The exit code of a program that the first signal stopped: 130 where it said that it saves, else 128 plus the number.
int interrupt_code();

/// Those of this copy of the code.
Interrupts& interrupts();
/// Uses those of the program from now on.
void share_interrupts(Interrupts& of_program);

/// Waits until a read of `file` would not block. False: a signal came first.
bool wait_for_input(int file);

}  // namespace cloze
