#include "interchange/unpickle.h"

#include <cstring>

#include "core/error.h"

namespace cloze {

const Unpickler::Value& Unpickler::run() {
  while (true) {
    const auto code = static_cast<uint8_t>(take(1)[0]);
    if (code == '.') return *pop();
    if (!run_scalar(code) && !run_text(code) && !run_container(code) && !run_memo(code) && !run_class(code) &&
        !run_control(code))
      damaged("unknown opcode " + std::to_string(code));
  }
}

void Unpickler::damaged(const std::string& fault) const {
  fail<CheckpointError>(path_, ": cannot be read (", fault, " at byte ", at_, " of data.pkl); the file is damaged");
}

std::string_view Unpickler::take(uint64_t count) {
  if (count > pickle_.size() - at_) damaged("unexpected end");
  const auto bytes = std::string_view(pickle_).substr(at_, count);
  at_ += count;
  return bytes;
}

/// A little-endian unsigned integer.
uint64_t Unpickler::take_number(size_t bytes) {
  uint64_t number = 0;
  std::memcpy(&number, take(bytes).data(), bytes);
  return number;
}

int64_t Unpickler::take_signed(uint64_t bytes) {
  if (bytes == 0) return 0;
  const auto unused = 64 - 8 * bytes;
  return static_cast<int64_t>(take_number(bytes) << unused) >> unused;
}

std::string Unpickler::take_line() {
  const auto end = pickle_.find('\n', at_);
  if (end == std::string::npos) damaged("unexpected end");
  const std::string line(take(end - at_));
  take(1);
  return line;
}

void Unpickler::push_number(int64_t number) {
  push(make(Kind::number));
  stack_.back()->number = number;
}

/// An integer of more than 64 bits is no size, and becomes `nothing`.
void Unpickler::push_long(uint64_t bytes) {
  if (bytes <= 8) return push_number(take_signed(bytes));
  take(bytes);
  push(make(Kind::nothing));
}

void Unpickler::push_text(std::string_view text) {
  push(make(Kind::text));
  stack_.back()->text = text;
}

Unpickler::Value* Unpickler::pop() {
  if (stack_.empty()) damaged("a value is missing");
  auto* value = stack_.back();
  stack_.pop_back();
  return value;
}

Unpickler::Value* Unpickler::pop(Kind kind) {
  auto* value = pop();
  if (value->kind != kind) damaged("a value of the wrong type");
  return value;
}

std::vector<Unpickler::Value*> Unpickler::pop_to_mark() {
  size_t mark = stack_.size();
  while (mark > 0 && stack_[mark - 1]->kind != Kind::mark) --mark;
  if (mark == 0) damaged("a mark is missing");
  std::vector<Value*> values(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
  stack_.resize(mark - 1);
  return values;
}

void Unpickler::push_list(std::vector<Value*> items) {
  push(make(Kind::list));
  stack_.back()->items = std::move(items);
}

void Unpickler::push_tuple(size_t count) {
  std::vector<Value*> items(count);
  for (size_t i = count; i > 0; --i) items[i - 1] = pop();
  push_list(std::move(items));
}

/// Adds to the container on top of the stack; items of an object are ignored.
void Unpickler::add(const std::vector<Value*>& items, Kind kind) {
  auto* top = stack_.empty() ? pop() : stack_.back();
  if (top->kind == Kind::object) return;
  if (top->kind != kind || (kind == Kind::dictionary && items.size() % 2 != 0)) damaged("items without a container");
  top->items.insert(top->items.end(), items.begin(), items.end());
}

void Unpickler::add_last(size_t count, Kind kind) {
  push_tuple(count);
  add(pop()->items, kind);
}

void Unpickler::push_global(const std::string& module, const std::string& name) {
  push(make(Kind::global));
  stack_.back()->text = module + "." + name;
}

void Unpickler::memoize(uint64_t index) {
  if (stack_.empty()) damaged("a value is missing");
  memo_[index] = stack_.back();
}

void Unpickler::push_memo(uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) damaged("a memo entry is missing");
  push(found->second);
}

bool Unpickler::run_scalar(uint8_t code) {
  switch (code) {
    case 'N':  // NONE
      push(make(Kind::nothing));
      return true;
    case 0x88:  // NEWTRUE
      push_number(1);
      return true;
    case 0x89:  // NEWFALSE
      push_number(0);
      return true;
    case 'K':  // BININT1
      push_number(static_cast<int64_t>(take_number(1)));
      return true;
    case 'M':  // BININT2
      push_number(static_cast<int64_t>(take_number(2)));
      return true;
    case 'J':  // BININT
      push_number(take_signed(4));
      return true;
    case 0x8a:  // LONG1
      push_long(take_number(1));
      return true;
    case 0x8b:  // LONG4
      push_long(take_number(4));
      return true;
    case 'G':  // BINFLOAT
      take(8);
      push_number(0);
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_text(uint8_t code) {
  switch (code) {
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
    case 0x8c:  // SHORT_BINUNICODE
      push_text(take(take_number(1)));
      return true;
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
    case 'X':  // BINUNICODE
      push_text(take(take_number(4)));
      return true;
    case 0x8d:  // BINUNICODE8
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      push_text(take(take_number(8)));
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_container(uint8_t code) {
  switch (code) {
    case ']':   // EMPTY_LIST
    case ')':   // EMPTY_TUPLE
    case 0x8f:  // EMPTY_SET
      push_list({});
      return true;
    case '}':  // EMPTY_DICT
      push(make(Kind::dictionary));
      return true;
    case 't':   // TUPLE
    case 0x91:  // FROZENSET
      push_list(pop_to_mark());
      return true;
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      push_tuple(code - 0x84U);
      return true;
    case 'a':  // APPEND
      add_last(1, Kind::list);
      return true;
    case 's':  // SETITEM
      add_last(2, Kind::dictionary);
      return true;
    case 'e':   // APPENDS
    case 0x90:  // ADDITEMS
      add(pop_to_mark(), Kind::list);
      return true;
    case 'u':  // SETITEMS
      add(pop_to_mark(), Kind::dictionary);
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_memo(uint8_t code) {
  switch (code) {
    case 'q':  // BINPUT
      memoize(take_number(1));
      return true;
    case 'r':  // LONG_BINPUT
      memoize(take_number(4));
      return true;
    case 0x94:  // MEMOIZE
      memoize(memo_.size());
      return true;
    case 'h':  // BINGET
      push_memo(take_number(1));
      return true;
    case 'j':  // LONG_BINGET
      push_memo(take_number(4));
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_class(uint8_t code) {
  switch (code) {
    case 'c': {  // GLOBAL
      const auto module = take_line();
      push_global(module, take_line());
      return true;
    }
    case 0x93: {  // STACK_GLOBAL
      const auto* name = pop(Kind::text);
      push_global(pop(Kind::text)->text, name->text);
      return true;
    }
    case 'R':                   // REDUCE
    case 0x81:                  // NEWOBJ
    case 0x92: {                // NEWOBJ_EX
      if (code == 0x92) pop();  // keyword arguments
      const auto* arguments = pop(Kind::list);
      call(pop(Kind::global)->text, arguments->items);
      return true;
    }
    case 'b':  // BUILD: the state of an object; of a state_dict: module versions
      pop();
      return true;
    case 'Q':  // BINPERSID
      load(pop(Kind::list)->items);
      return true;
    default:
      return false;
  }
}

bool Unpickler::run_control(uint8_t code) {
  switch (code) {
    case 0x80:  // PROTO
      if (const auto version = take_number(1); version > 5)
        damaged("unknown pickle protocol " + std::to_string(version));
      return true;
    case 0x95:  // FRAME
      take(8);
      return true;
    case '(':  // MARK
      push(make(Kind::mark));
      return true;
    case '0':  // POP
      pop();
      return true;
    case '1':  // POP_MARK
      pop_to_mark();
      return true;
    default:
      return false;
  }
}

}  // namespace cloze
