#pragma once
// The pickle format of Python, protocols 2 to 5, as a stack machine that runs no code of the file.
#include <ATen/ATen.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cloze {

/// A value on the stack.
struct PickleValue {
  enum class Kind { nothing, mark, number, text, list, dictionary, global, tensor, object } kind = Kind::nothing;
  int64_t number = 0;                 ///< booleans are 1 and 0; floats, which no tensor needs, are 0
  std::string text{};                 ///< of a global or an object: the name of its class
  std::vector<PickleValue*> items{};  ///< of a list or tuple; of a dictionary: keys and values alternate
  at::Tensor tensor{};                ///< of a storage: flat
};

/// Interprets the opcodes of a pickle. Classes are names only: what is constructed, a subclass decides.
class Unpickler {
 public:
  using Value = PickleValue;
  using Kind = Value::Kind;

  /// `path`: of the file, for messages.
  Unpickler(std::string path, std::string pickle) : path_(std::move(path)), pickle_(std::move(pickle)) {}
  virtual ~Unpickler() = default;
  /// The value, owned by this object. Throws CheckpointError for damaged opcodes and unknown ones.
  const Value& run();

 protected:
  /// Pushes the result of calling a global, `module.name`.
  virtual void call(const std::string& name, const std::vector<Value*>& arguments) = 0;
  /// Pushes what a persistent id names.
  virtual void load(const std::vector<Value*>& id) = 0;

  [[noreturn]] void damaged(const std::string& fault) const;
  Value* make(Kind kind) { return &all_.emplace_back(Value{.kind = kind}); }
  void push(Value* value) { stack_.push_back(value); }

  std::string path_;

 private:
  std::string_view take(uint64_t count);
  uint64_t take_number(size_t bytes);
  int64_t take_signed(uint64_t bytes);
  std::string take_line();

  Value* pop();
  Value* pop(Kind kind);
  std::vector<Value*> pop_to_mark();
  void push_number(int64_t number);
  void push_long(uint64_t bytes);
  void push_text(std::string_view text);
  void push_list(std::vector<Value*> items);
  void push_tuple(size_t count);
  void push_global(const std::string& module, const std::string& name);
  void add(const std::vector<Value*>& items, Kind kind);
  void add_last(size_t count, Kind kind);
  void memoize(uint64_t index);
  void push_memo(uint64_t index);

  // Each runs an opcode of its group; false for others.
  bool run_scalar(uint8_t code);
  bool run_text(uint8_t code);
  bool run_container(uint8_t code);
  bool run_memo(uint8_t code);
  bool run_class(uint8_t code);
  bool run_control(uint8_t code);

  std::string pickle_;
  size_t at_ = 0;
  std::deque<Value> all_;  ///< owns every value
  std::vector<Value*> stack_;
  std::unordered_map<uint64_t, Value*> memo_;
};

}  // namespace cloze
