#include "interchange/torch_pickle.h"

#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/error.h"

namespace cloze {

namespace {

using caffe2::serialize::PyTorchStreamReader;

/// A value on the stack.
struct Value {
  enum class Kind { nothing, mark, number, text, list, dictionary, global, tensor, object } kind = Kind::nothing;
  int64_t number = 0;           ///< booleans are 1 and 0; floats, which no tensor needs, are 0
  std::string text{};           ///< of a global or an object: the name of its class
  std::vector<Value*> items{};  ///< of a list or tuple; of a dictionary: keys and values alternate
  at::Tensor tensor{};          ///< of a storage: flat
};
using Kind = Value::Kind;

std::optional<at::ScalarType> storage_type(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types{
      {"torch.FloatStorage", at::kFloat},      {"torch.DoubleStorage", at::kDouble}, {"torch.HalfStorage", at::kHalf},
      {"torch.LongStorage", at::kLong},        {"torch.IntStorage", at::kInt},       {"torch.ShortStorage", at::kShort},
      {"torch.CharStorage", at::kChar},        {"torch.ByteStorage", at::kByte},     {"torch.BoolStorage", at::kBool},
      {"torch.BFloat16Storage", at::kBFloat16}};
  const auto found = types.find(name);
  return found == types.end() ? std::nullopt : std::optional(found->second);
}

/// True if a storage of `entries` elements contains all elements of a tensor; an axis of stride 0 repeats its elements.
bool contains(int64_t entries, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, int64_t offset) {
  constexpr int64_t max_elements = int64_t{1} << 40;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return offset <= entries;
  if (offset >= entries) return false;
  int64_t count = 1, last = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > max_elements / count) return false;
    count *= sizes[i];
    if (strides[i] > 0 && sizes[i] - 1 > (entries - 1 - last) / strides[i]) return false;
    last += (sizes[i] - 1) * strides[i];
  }
  return true;
}

/// Throws CheckpointError for a record longer than its file: torch stores records uncompressed.
void require_stored(PyTorchStreamReader& file, const std::string& record, const std::string& path) {
  require<CheckpointError>(file.getRecordSize(record) <= std::filesystem::file_size(path), path, ": its ", record,
                           " is longer than the whole file; the file is damaged");
}

/// Interprets the opcodes of a data.pkl. Classes are names only: nothing but dictionaries and tensors is constructed.
class Machine {
 public:
  Machine(std::string path, std::string pickle, PyTorchStreamReader& file)
      : path_(std::move(path)), pickle_(std::move(pickle)), file_(file) {}

  const Value& run() {
    while (true) {
      const auto code = static_cast<uint8_t>(take(1)[0]);
      if (code == '.') return *pop();
      step(code);
    }
  }

 private:
  [[noreturn]] void damaged(const std::string& fault) const {
    fail<CheckpointError>(path_, ": cannot be read (", fault, " at byte ", at_, " of data.pkl); the file is damaged");
  }

  std::string_view take(uint64_t count) {
    if (count > pickle_.size() - at_) damaged("unexpected end");
    const auto found = std::string_view(pickle_).substr(at_, count);
    at_ += count;
    return found;
  }
  /// A little-endian unsigned integer.
  uint64_t take_number(size_t bytes) {
    uint64_t number = 0;
    std::memcpy(&number, take(bytes).data(), bytes);
    return number;
  }
  int64_t take_signed(uint64_t bytes) {
    if (bytes == 0) return 0;
    const auto unused = 64 - 8 * bytes;
    return static_cast<int64_t>(take_number(bytes) << unused) >> unused;
  }
  std::string take_line() {
    const auto end = pickle_.find('\n', at_);
    if (end == std::string::npos) damaged("unexpected end");
    const std::string line(take(end - at_));
    take(1);
    return line;
  }

  Value* make(Kind kind) { return &all_.emplace_back(Value{.kind = kind}); }
  void push(Value* value) { stack_.push_back(value); }
  void push_number(int64_t number) {
    push(make(Kind::number));
    stack_.back()->number = number;
  }
  /// An integer of more than 64 bits is no size, and becomes `nothing`.
  void push_long(uint64_t bytes) {
    if (bytes <= 8) return push_number(take_signed(bytes));
    take(bytes);
    push(make(Kind::nothing));
  }
  void push_text(std::string_view text) {
    push(make(Kind::text));
    stack_.back()->text = text;
  }
  Value* pop() {
    if (stack_.empty()) damaged("a value is missing");
    auto* value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Value* pop(Kind kind) {
    auto* value = pop();
    if (value->kind != kind) damaged("a value of the wrong type");
    return value;
  }
  std::vector<Value*> pop_to_mark() {
    size_t mark = stack_.size();
    while (mark > 0 && stack_[mark - 1]->kind != Kind::mark) --mark;
    if (mark == 0) damaged("a mark is missing");
    std::vector<Value*> values(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return values;
  }
  void push_list(std::vector<Value*> items) {
    push(make(Kind::list));
    stack_.back()->items = std::move(items);
  }
  void push_tuple(size_t count) {
    std::vector<Value*> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = pop();
    push_list(std::move(items));
  }
  /// Adds to the container on top of the stack; items of an object are ignored.
  void add(const std::vector<Value*>& items, Kind kind) {
    auto* top = stack_.empty() ? pop() : stack_.back();
    if (top->kind == Kind::object) return;
    if (top->kind != kind || (kind == Kind::dictionary && items.size() % 2 != 0)) damaged("items without a container");
    top->items.insert(top->items.end(), items.begin(), items.end());
  }
  void add_last(size_t count, Kind kind) {
    push_tuple(count);
    add(pop()->items, kind);
  }
  void push_global(const std::string& module, const std::string& name) {
    push(make(Kind::global));
    stack_.back()->text = module + "." + name;
  }
  void memoize(uint64_t index) {
    if (stack_.empty()) damaged("a value is missing");
    memo_[index] = stack_.back();
  }
  void push_memo(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) damaged("a memo entry is missing");
    push(found->second);
  }

  void step(uint8_t code) {
    switch (code) {
      case 0x80:  // PROTO
        if (const auto version = take_number(1); version > 5)
          damaged("unknown pickle protocol " + std::to_string(version));
        return;
      case 0x95:  // FRAME
        take(8);
        return;
      case '(':  // MARK
        return push(make(Kind::mark));
      case '0':  // POP
        pop();
        return;
      case '1':  // POP_MARK
        pop_to_mark();
        return;
      case 'N':  // NONE
        return push(make(Kind::nothing));
      case 0x88:  // NEWTRUE
        return push_number(1);
      case 0x89:  // NEWFALSE
        return push_number(0);
      case 'K':  // BININT1
        return push_number(static_cast<int64_t>(take_number(1)));
      case 'M':  // BININT2
        return push_number(static_cast<int64_t>(take_number(2)));
      case 'J':  // BININT
        return push_number(take_signed(4));
      case 0x8a:  // LONG1
        return push_long(take_number(1));
      case 0x8b:  // LONG4
        return push_long(take_number(4));
      case 'G':  // BINFLOAT
        take(8);
        return push_number(0);
      case 'U':   // SHORT_BINSTRING
      case 'C':   // SHORT_BINBYTES
      case 0x8c:  // SHORT_BINUNICODE
        return push_text(take(take_number(1)));
      case 'T':  // BINSTRING
      case 'B':  // BINBYTES
      case 'X':  // BINUNICODE
        return push_text(take(take_number(4)));
      case 0x8d:  // BINUNICODE8
      case 0x8e:  // BINBYTES8
      case 0x96:  // BYTEARRAY8
        return push_text(take(take_number(8)));
      case ']':   // EMPTY_LIST
      case ')':   // EMPTY_TUPLE
      case 0x8f:  // EMPTY_SET
        return push_list({});
      case '}':  // EMPTY_DICT
        return push(make(Kind::dictionary));
      case 't':   // TUPLE
      case 0x91:  // FROZENSET
        return push_list(pop_to_mark());
      case 0x85:  // TUPLE1
        return push_tuple(1);
      case 0x86:  // TUPLE2
        return push_tuple(2);
      case 0x87:  // TUPLE3
        return push_tuple(3);
      case 'a':  // APPEND
        return add_last(1, Kind::list);
      case 's':  // SETITEM
        return add_last(2, Kind::dictionary);
      case 'e':   // APPENDS
      case 0x90:  // ADDITEMS
        return add(pop_to_mark(), Kind::list);
      case 'u':  // SETITEMS
        return add(pop_to_mark(), Kind::dictionary);
      case 'q':  // BINPUT
        return memoize(take_number(1));
      case 'r':  // LONG_BINPUT
        return memoize(take_number(4));
      case 0x94:  // MEMOIZE
        return memoize(memo_.size());
      case 'h':  // BINGET
        return push_memo(take_number(1));
      case 'j':  // LONG_BINGET
        return push_memo(take_number(4));
      case 'c': {  // GLOBAL
        const auto module = take_line();
        return push_global(module, take_line());
      }
      case 0x93: {  // STACK_GLOBAL
        const auto* name = pop(Kind::text);
        return push_global(pop(Kind::text)->text, name->text);
      }
      case 'R':     // REDUCE
      case 0x81: {  // NEWOBJ
        const auto* arguments = pop(Kind::list);
        return call(pop(Kind::global)->text, arguments->items);
      }
      case 0x92: {  // NEWOBJ_EX
        pop();      // keyword arguments
        const auto* arguments = pop(Kind::list);
        return call(pop(Kind::global)->text, arguments->items);
      }
      case 'b':  // BUILD: the state of an object; of a state_dict: module versions
        pop();
        return;
      case 'Q':  // BINPERSID
        return push_storage(pop(Kind::list)->items);
      default:
        damaged("unknown opcode " + std::to_string(code));
    }
  }

  void call(const std::string& name, const std::vector<Value*>& arguments) {
    if (name == "collections.OrderedDict") return push(make(Kind::dictionary));
    if (name == "torch._utils._rebuild_tensor_v2") return push_tensor(arguments);
    const bool parameter =
        name == "torch._utils._rebuild_parameter" || name == "torch._utils._rebuild_parameter_with_state";
    if (parameter && !arguments.empty()) return push(arguments[0]);
    push(make(Kind::object));
    stack_.back()->text = name;
  }

  /// ('storage', type, record, device, number of entries)
  void push_storage(const std::vector<Value*>& id) {
    if (id.size() != 5 || id[1]->kind != Kind::global || id[2]->kind != Kind::text || id[4]->kind != Kind::number)
      damaged("a storage without its record");
    const auto type = storage_type(id[1]->text);
    require<CheckpointError>(type.has_value(), path_, ": has values of ", id[1]->text,
                             ", which are not supported; save them as floats");
    push(make(Kind::tensor));
    auto& bytes = records_[id[2]->text];
    if (!bytes.defined()) {
      require_stored(file_, "data/" + id[2]->text, path_);
      auto [data, size] = file_.getRecord("data/" + id[2]->text);
      auto owner = std::make_shared<at::DataPtr>(std::move(data));
      bytes = at::from_blob(owner->get(), {static_cast<int64_t>(size)}, [owner](void*) {}, at::kByte);
    }
    const auto width = static_cast<int64_t>(at::elementSize(*type));
    stack_.back()->tensor = bytes.narrow(0, 0, bytes.numel() / width * width).view(*type);
  }

  std::vector<int64_t> numbers(const Value& list) const {
    if (list.kind != Kind::list) damaged("sizes that are not a list");
    std::vector<int64_t> found;
    for (const auto* one : list.items) {
      if (one->kind != Kind::number || one->number < 0) damaged("an invalid size");
      found.push_back(one->number);
    }
    return found;
  }

  /// (storage, offset, sizes, strides, ...)
  void push_tensor(const std::vector<Value*>& arguments) {
    if (arguments.size() < 4 || arguments[0]->kind != Kind::tensor || arguments[1]->kind != Kind::number)
      damaged("a tensor without its storage");
    const auto& storage = arguments[0]->tensor;
    const auto sizes = numbers(*arguments[2]), strides = numbers(*arguments[3]);
    const auto offset = arguments[1]->number;
    constexpr size_t max_axes = 64;  // the limit of torch
    if (sizes.size() != strides.size() || offset < 0) damaged("a tensor without its strides");
    if (sizes.size() > max_axes) damaged("a tensor with too many axes");
    push(make(Kind::tensor));
    if (contains(storage.numel(), sizes, strides, offset))  // else it stays undefined, which tensors_of reports
      stack_.back()->tensor = storage.as_strided(sizes, strides, offset);
  }

  std::string path_, pickle_;
  size_t at_ = 0;
  PyTorchStreamReader& file_;
  std::deque<Value> all_;  ///< owns every value
  std::vector<Value*> stack_;
  std::unordered_map<uint64_t, Value*> memo_;
  std::map<std::string, at::Tensor> records_;  ///< as bytes
};

/// The dictionary of tensors: the whole file, or an entry of a training checkpoint.
const Value& state_dict(const Value& root, const std::string& path) {
  const std::string mend = "; save only the state_dict of the model";
  require<CheckpointError>(root.kind != Kind::object, path, ": has an object of ", root.text,
                           " instead of tensors by name", mend);
  require<CheckpointError>(root.kind == Kind::dictionary, path, ": has no tensors by name", mend);
  const auto holds_tensors = [](const Value& dictionary) {
    for (size_t i = 1; i < dictionary.items.size(); i += 2)
      if (dictionary.items[i]->kind == Kind::tensor) return true;
    return false;
  };
  for (size_t i = 0; i < root.items.size(); i += 2) {
    const auto &key = *root.items[i], &value = *root.items[i + 1];
    if (value.kind != Kind::dictionary || key.kind != Kind::text || !holds_tensors(value)) continue;
    if (key.text == "state_dict" || key.text == "model_state_dict" || key.text == "model") return value;
  }
  return root;
}

std::map<std::string, at::Tensor> tensors_of(const Value& dictionary, const std::string& path) {
  std::map<std::string, at::Tensor> found;
  for (size_t i = 0; i < dictionary.items.size(); i += 2) {
    const auto &key = *dictionary.items[i], &value = *dictionary.items[i + 1];
    require<CheckpointError>(key.kind == Kind::text, path,
                             ": has an entry without a name; save only the state_dict of the model");
    require<CheckpointError>(value.kind != Kind::object, path, ": '", key.text, "' is an object of ", value.text,
                             " instead of a tensor; save only the state_dict of the model, with dense, unquantized "
                             "tensors");
    if (value.kind != Kind::tensor) continue;  // a count, a version
    require<CheckpointError>(value.tensor.defined(), path, ": tensor '", key.text,
                             "' is longer than its data in the file; the file is damaged");
    found[key.text] = value.tensor;
  }
  require<CheckpointError>(!found.empty(), path, ": has no tensors by name; save only the state_dict of the model");
  return found;
}

/// Throws CheckpointError unless the file is a zip archive.
void check_begin(const std::string& path) {
  char begin[2] = {};
  std::ifstream(path, std::ios::binary).read(begin, 2);
  const std::string mend =
      "; in Python, torch.save(torch.load(PATH, map_location='cpu'), PATH) converts it, or save it as safetensors";
  require<CheckpointError>(begin[0] != '\x80', path, ": is in the format that torch.save wrote before version 1.6",
                           mend);
  require<CheckpointError>(begin[0] == 'P' && begin[1] == 'K', path,
                           ": is not in the format that torch.save writes since version 1.6", mend);
}

}  // namespace

std::map<std::string, at::Tensor> read_torch_pickle(const std::string& path) {
  constexpr size_t max_bytes = 16 << 20;  // of opcodes; a tensor takes 100 to 200
  check_begin(path);
  try {
    PyTorchStreamReader file(path);
    require_stored(file, "data.pkl", path);
    const auto length = file.getRecordSize("data.pkl");
    require<CheckpointError>(length <= max_bytes, path, ": has ", length,
                             " bytes of opcodes in its data.pkl, more than any weights need; the file is damaged");
    const auto [bytes, size] = file.getRecord("data.pkl");
    std::string pickle(static_cast<const char*>(bytes.get()), size);
    require<CheckpointError>(pickle.starts_with('\x80'), path,
                             ": uses pickle protocol 0 or 1, which are not supported; save it without "
                             "pickle_protocol");
    Machine machine(path, std::move(pickle), file);
    return tensors_of(state_dict(machine.run(), path), path);
  } catch (const c10::Error& e) {
    fail<CheckpointError>(path, ": cannot be read (", e.what_without_backtrace(), "); the file is damaged");
  } catch (const std::bad_alloc&) {
    fail<CheckpointError>(path, ": cannot be read (out of memory); the file is damaged");
  }
}

}  // namespace cloze
