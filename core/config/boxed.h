#pragma once
// A value whose type its holders need not know.
#include <concepts>
#include <memory>
#include <utility>

namespace cloze {

/// A struct that names its kind in a config.
template <class T>
concept HasKind = requires { T::kind; };

template <class T>
class Boxed;

/// A Boxed<T> of one of its kinds.
template <class T, HasKind Kind>
Boxed<T> boxed(Kind kind);

/// A value of type T, copied with its holder, of which a header has to know no more than the name: a config that holds
/// one of many kinds reaches the files that name these kinds, and no other file is compiled again when one changes.
/// A header that declares such a type says `extern template class Boxed<T>`; its source includes core/config/boxed.inc
/// and says `template class Boxed<T>`, and holds makers_of the variant of its kinds. Moved from, it can be assigned
/// to and destroyed only.
template <class T>
class Boxed {
 public:
  Boxed();
  Boxed(const Boxed& other);
  Boxed(Boxed&& other) noexcept;
  Boxed& operator=(const Boxed& other);
  Boxed& operator=(Boxed&& other) noexcept;
  ~Boxed();
  /// Made of one of its kinds.
  template <HasKind Kind>
  Boxed(Kind kind) : Boxed(boxed<T>(std::move(kind))) {}
  const T& operator*() const { return *value_; }
  T& operator*() { return *value_; }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace cloze
