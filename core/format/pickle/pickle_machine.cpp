#include "core/format/pickle/pickle_machine.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/base/utf8.hpp"
#include "core/format/pickle/pickle_globals.hpp"
#include "core/format/pickle/pickle_imports.hpp"
#include "core/format/pickle/pickle_input.hpp"
#include "core/format/pickle/pickle_opcodes.hpp"
#include "reprise/error.hpp"

namespace reprise::pickle {
namespace {

/// Memo indices are consecutive in what writers write. Up to this many that a pickle skips are
/// kept in the table; entries beyond it are kept one by one.
constexpr std::size_t kMemoSlack = 1024;
/// Python makes a table as long as the largest index, so it can't load much more than this either.
constexpr std::size_t kMemoIndexMax = std::size_t{1} << 24U;
/// A log keeps entries with any index, but not more of them than this out of order.
constexpr std::size_t kFarMemoMax = std::size_t{1} << 20U;
constexpr std::size_t kMemoLineMax = (~std::size_t{0} - 9) / 10;
constexpr std::size_t kNameLengthMax = 256;
/// A protocol up to this one may be a later Python's.
constexpr int kProtocolMax = 15;

class PickleMachine {
 public:
  PickleMachine(ByteSpan bytes, Grammar grammar, const PickleSource& where,
                ImportLog* log = nullptr)
      : bytes_(bytes),
        input_(bytes, where),
        graph_(bytes),
        grammar_(grammar),
        log_(log),
        globals_(graph_, input_, grammar, log) {
    constexpr std::size_t kRoom = 64;  // enough for a tensor's pickle
    stack_.reserve(kRoom);
    memo_.reserve(kRoom);
  }

  Reading run() {
    walk();
    const NodeId root = top();  // as Python, which ignores what else is there
    return {std::move(graph_),        root, input_.position(), globals_.opaque(), globals_.reason(),
            globals_.unlisted_names()};
  }
  std::size_t walk() {
    while (step()) {
    }
    static_cast<void>(top());
    return input_.position();
  }
  bool ran_out() const { return input_.ran_out(); }
  /// True if it made something of a name, or changed what it made.
  bool called() const { return called_; }

 private:
  bool step();
  bool accepted(std::byte code);
  void literal(std::byte code);
  void container(std::byte code);
  /// Reads the opcodes that only a log of names needs: those of the text protocols, and those that
  /// refer to something outside the pickle.
  void logged_only(std::byte code);
  std::string_view unquoted(std::string_view line) const;
  void text_line(std::string_view text);
  std::size_t memo_line();
  void outside(std::string_view what);
  /// Reads two lines, the module and the name of a class or function.
  NodeId global();
  void protocol();
  void frame();

  void push(NodeId node) { stack_.push_back(node); }
  NodeId pop();
  NodeId& top();
  [[noreturn]] void no_value() const;
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  /// Returns the items above the last mark, and removes the mark. The caller must drop() the items
  /// afterwards.
  std::span<const NodeId> marked();
  void drop(std::span<const NodeId> items) { stack_.resize(stack_.size() - items.size()); }

  void integer(ByteSpan digits);
  void span_of(Kind kind, std::uint64_t length);
  /// Reads a Python 2 str.
  void byte_string(std::uint64_t length);
  void tuple(std::size_t count);
  void pop_or_unmark();
  void put(std::size_t index);
  void get(std::size_t index);
  /// Returns the stack entry right below `items`: the container to which the opcode adds `items`.
  NodeId below(std::span<const NodeId> items);
  /// Calls Graph::freeze for every `step`-th item, beginning with the first. Use step 2 for the
  /// alternating keys and values of a dict, to freeze only the keys; use step 1 for the items of a
  /// set.
  void freeze_keys(std::span<const NodeId> items, std::size_t step);
  void append(NodeId target, std::span<const NodeId> items);
  void set_items(NodeId target, std::span<const NodeId> items);
  void add_items(NodeId target, std::span<const NodeId> items);
  void stack_global();
  void instantiate(NodeId callee, std::span<const NodeId> args);
  void new_object();
  void persistent_id();

  ByteSpan bytes_;
  Input input_;
  Graph graph_;
  Grammar grammar_;
  ImportLog* log_;  ///< null unless the grammar is kAny
  Globals globals_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<NodeId> memo_;
  std::map<std::size_t, NodeId> far_memo_;
  std::size_t memo_count_ = 0;
  bool called_ = false;
};

bool PickleMachine::accepted(std::byte code) {
  const Opcode* opcode = opcode_of(code);
  if (opcode == nullptr) {
    input_.fail(Code::kTornFile, "byte " + std::to_string(static_cast<unsigned>(code)) +
                                     " is not a pickle opcode: garbled");
  }
  if (log_ != nullptr) return true;
  const auto refuse = [&](Code why, const char* what) {
    input_.fail(why, "opcode " + std::string(opcode->name) + " " + what +
                         "; no writer of checkpoints "
                         "uses it, so it is not read");
  };
  switch (opcode->rule) {
    case OpcodeRule::kAccepted:
      return true;
    case OpcodeRule::kTextMode:
      refuse(Code::kUnsupported, "belongs to the text protocols");
      break;
    case OpcodeRule::kExtension:
      refuse(Code::kRefusedName, "names a class by a number that a program registers");
      break;
    case OpcodeRule::kOutside:
      refuse(Code::kRefusedName, "refers to something outside the pickle");
      break;
  }
  return false;
}

bool PickleMachine::step() {
  const std::byte code = input_.opcode();
  accepted(code);
  switch (static_cast<char>(code)) {
    case '.':
      return false;
    case '\x80':
      protocol();
      break;
    case '\x95':
      frame();
      break;
    case '(':
      marks_.push_back(stack_.size());
      break;
    case '0':
      pop_or_unmark();
      break;
    case '1':
      drop(marked());
      break;
    case 'q':
      put(input_.take<std::uint8_t>());
      break;
    case 'r':
      put(input_.take<std::uint32_t>());
      break;
    case '\x94':
      put(memo_count_);
      break;
    case 'h':
      get(input_.take<std::uint8_t>());
      break;
    case 'j':
      get(input_.take<std::uint32_t>());
      break;
    case 'c':
      push(global());
      break;
    case '\x93':
      stack_global();
      break;
    case 'i': {
      const NodeId callee = global();
      instantiate(callee, marked());
      called_ = true;
      break;
    }
    case 'o': {
      const auto items = marked();
      if (items.empty()) no_value();
      instantiate(items.front(), items.subspan(1));
      const NodeId made = pop();
      top() = made;  // instead of the class
      called_ = true;
      break;
    }
    case 'R': {
      const NodeId args = pop();
      top() = globals_.reduce(top(), args);
      called_ = true;
      break;
    }
    case '\x81': {
      const NodeId args = pop();
      top() = globals_.make(top(), args);
      called_ = true;
      break;
    }
    case '\x92':
      new_object();
      called_ = true;
      break;
    case 'b': {
      const NodeId state = pop();
      globals_.build(top(), state);
      called_ = true;
      break;
    }
    case 'Q':
      persistent_id();
      break;
    default:
      literal(code);
  }
  return true;
}

void PickleMachine::literal(std::byte code) {
  switch (static_cast<char>(code)) {
    case 'N':
      return push(graph_.add_none());
    case '\x88':
      return push(graph_.add_bool(true));
    case '\x89':
      return push(graph_.add_bool(false));
    case 'K':
      return push(graph_.add_integer(input_.take<std::uint8_t>()));
    case 'M':
      return push(graph_.add_integer(input_.take<std::uint16_t>()));
    case 'J':
      return push(graph_.add_integer(input_.take<std::int32_t>()));
    case '\x8a':
      return integer(input_.skip(input_.take<std::uint8_t>()));
    case '\x8b':
      return integer(input_.skip(input_.take<std::uint32_t>()));
    case 'G':
      return push(graph_.add_float(input_.take_double()));
    case '\x8c':
      return span_of(Kind::kText, input_.take<std::uint8_t>());
    case 'X':
      return span_of(Kind::kText, input_.take<std::uint32_t>());
    case '\x8d':
      return span_of(Kind::kText, input_.take<std::uint64_t>());
    case 'U':
      return byte_string(input_.take<std::uint8_t>());
    case 'T':
      return byte_string(input_.take<std::uint32_t>());
    case 'C':
      return span_of(Kind::kBytes, input_.take<std::uint8_t>());
    case 'B':
      return span_of(Kind::kBytes, input_.take<std::uint32_t>());
    case '\x8e':
      return span_of(Kind::kBytes, input_.take<std::uint64_t>());
    case '\x96':
      return span_of(Kind::kByteArray, input_.take<std::uint64_t>());
    default:
      return container(code);
  }
}

void PickleMachine::container(std::byte code) {
  switch (static_cast<char>(code)) {
    case ')':
      return tuple(0);
    case '\x85':
      return tuple(1);
    case '\x86':
      return tuple(2);
    case '\x87':
      return tuple(3);
    case 't':
      return tuple(marked().size());
    case ']':
      return push(graph_.add(Kind::kList));
    case '}':
      return push(graph_.add(Kind::kDict));
    case '\x8f':
      return push(graph_.add(Kind::kSet));
    case '\x91': {
      const auto items = marked();
      globals_.check_parts(items);
      freeze_keys(items, 1);
      const NodeId set = graph_.add(Kind::kFrozenSet);
      graph_.extend(set, items);
      drop(items);
      return push(set);
    }
    case 'a': {
      const NodeId item = pop();
      return append(top(), {&item, 1});
    }
    case 's': {
      const NodeId value = pop();
      const std::array pair{pop(), value};
      return set_items(top(), pair);
    }
    case 'e':
    case 'u':
    case '\x90': {
      const auto items = marked();
      const NodeId target = below(items);
      if (static_cast<char>(code) == 'e') append(target, items);
      if (static_cast<char>(code) == 'u') set_items(target, items);
      if (static_cast<char>(code) == '\x90') add_items(target, items);
      return drop(items);
    }
    default:
      return logged_only(code);
  }
}

void PickleMachine::logged_only(std::byte code) {
  switch (static_cast<char>(code)) {
    case '2':
      return push(top());
    case 'I':
    case 'L':
    case 'F':
      static_cast<void>(input_.line(input_.remaining()));
      return push(graph_.add_integer(0));  // nobody asks for its value
    case 'S':
      return text_line(unquoted(input_.line(input_.remaining())));
    case 'V':
      return text_line(input_.line(input_.remaining()));
    case 'd':
    case 'l': {
      const auto items = marked();
      globals_.check_parts(items);
      drop(items);
      return push(graph_.add(static_cast<char>(code) == 'd' ? Kind::kDict : Kind::kList));
    }
    case 'g':
      return get(memo_line());
    case 'p':
      return put(memo_line());
    case 'P':
      static_cast<void>(input_.line(input_.remaining()));
      return outside("something outside the pickle");
    case '\x82':
      return outside("what a program registered as extension " +
                     std::to_string(input_.take<std::uint8_t>()));
    case '\x83':
      return outside("what a program registered as extension " +
                     std::to_string(input_.take<std::uint16_t>()));
    case '\x84':
      return outside("what a program registered as extension " +
                     std::to_string(input_.take<std::uint32_t>()));
    case '\x97':  // NEXT_BUFFER: bytes that are handed over beside the pickle
      return push(graph_.add_none());
    case '\x98':  // READONLY_BUFFER: makes such bytes read-only
      return static_cast<void>(top());
    default:
      CHECK(false, static_cast<unsigned>(code));
  }
}

std::string_view PickleMachine::unquoted(std::string_view line) const {
  const bool quoted = line.size() >= 2 && (line.front() == '\'' || line.front() == '"') &&
                      line.back() == line.front();
  if (!quoted) input_.fail(Code::kTornFile, "opcode STRING without quotes: garbled");
  return line.substr(1, line.size() - 2);
}

/// Pushes the text. With escapes it is a value that is not known.
void PickleMachine::text_line(std::string_view text) {
  if (text.find('\\') != std::string_view::npos || !is_utf8(text)) {
    return push(graph_.add_instance({}, true));
  }
  const auto position = static_cast<std::size_t>(as_bytes(text).data() - bytes_.data());
  push(graph_.add_span(Kind::kText, position, text.size()));
}

/// Reads an index as Python's int() does, which ignores what follows a NUL.
std::size_t PickleMachine::memo_line() {
  constexpr std::string_view kBlanks = " \t\r\f\v";
  std::string_view line = input_.line(input_.remaining());
  line = line.substr(0, line.find('\0'));
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const bool negative = line.starts_with('-');
  if (negative || line.starts_with('+')) line.remove_prefix(1);
  std::size_t index = 0;
  bool is_number = !line.empty();
  bool after_digit = false;
  for (std::size_t i = 0; i < line.size() && is_number; ++i) {
    const char c = line[i];
    const bool digit = c >= '0' && c <= '9';
    is_number = digit || (c == '_' && after_digit && i + 1 < line.size());
    after_digit = digit;
    if (!digit) continue;
    if (index > kMemoLineMax) input_.fail(Code::kLimit, "the index of a memo entry is too large");
    index = index * 10 + static_cast<std::size_t>(c - '0');
  }
  if (!is_number || (negative && index != 0)) {
    input_.fail(Code::kTornFile, "the index of a memo entry is no number: garbled");
  }
  return index;
}

void PickleMachine::outside(std::string_view what) {
  log_->add({.name = std::string(what),
             .position = input_.opcode_position(),
             .standing = Standing::kRefused,
             .why = "only the program that reads the pickle knows what that is"});
  push(graph_.add_instance({}, true));
}

NodeId PickleMachine::global() {
  const std::size_t length_max = log_ == nullptr ? kNameLengthMax : input_.remaining();
  const std::string_view module = input_.line(length_max);
  const std::string_view name = input_.line(length_max);
  if (!is_utf8(module) || !is_utf8(name)) {
    input_.fail(Code::kTornFile, "the name of a class is not UTF-8: garbled");
  }
  return globals_.load(module, name);
}

void PickleMachine::protocol() {
  const int version = input_.take<std::uint8_t>();
  if (version > kProtocolMax) {
    input_.fail(Code::kTornFile, "pickle protocol " + std::to_string(version) + ": garbled");
  }
  if (version > 5) {
    input_.fail(Code::kUnsupported, "pickle protocol " + std::to_string(version) + " is not known");
  }
  globals_.set_protocol(version);
}

void PickleMachine::frame() {
  const auto length = input_.take<std::uint64_t>();
  if (length > input_.remaining()) {
    input_.fail_at_end("the pickle is truncated: a frame of " + std::to_string(length) +
                       " bytes begins where " + std::to_string(input_.remaining()) + " remain");
  }
}

NodeId PickleMachine::pop() {
  const NodeId node = top();
  stack_.pop_back();
  return node;
}

void PickleMachine::no_value() const {
  input_.fail(Code::kTornFile, "an opcode takes a value that is not there: garbled");
}

NodeId& PickleMachine::top() {
  if (stack_.size() <= floor()) no_value();
  return stack_.back();
}

std::span<const NodeId> PickleMachine::marked() {
  if (marks_.empty()) input_.fail(Code::kTornFile, "an opcode lacks its MARK: garbled");
  const std::size_t first = marks_.back();
  marks_.pop_back();
  return std::span<const NodeId>(stack_).subspan(first);
}

void PickleMachine::integer(ByteSpan digits) {
  // Extra bytes that only repeat the sign do not make the number a big integer.
  const auto sign = [&] {
    return (static_cast<unsigned>(digits.back()) & 0x80U) != 0 ? std::byte{0xff} : std::byte{0};
  };
  ByteSpan used = digits;
  while (used.size() > 8 && used.back() == sign() &&
         ((static_cast<unsigned>(used[used.size() - 2]) ^ static_cast<unsigned>(sign())) & 0x80U) ==
             0) {
    used = used.first(used.size() - 1);
  }
  if (used.size() > 8) {
    const auto position = static_cast<std::size_t>(used.data() - bytes_.data());
    return push(graph_.add_span(Kind::kBigInteger, position, used.size()));
  }
  std::uint64_t value = !used.empty() && sign() != std::byte{0} ? ~std::uint64_t{0} : 0;
  for (std::size_t i = used.size(); i-- > 0;) {
    value = (value << 8U) | static_cast<std::uint64_t>(used[i]);
  }
  push(graph_.add_integer(static_cast<std::int64_t>(value)));
}

void PickleMachine::span_of(Kind kind, std::uint64_t length) {
  const std::size_t position = input_.position();
  const ByteSpan bytes = input_.skip(length);
  if (kind == Kind::kText && !is_utf8(as_text(bytes))) {
    // Python also takes surrogates. What has them is a value that is not known.
    if (log_ != nullptr) return push(graph_.add_instance({}, true));
    input_.fail(Code::kTornFile, "a string in the pickle is not UTF-8: garbled");
  }
  push(graph_.add_span(kind, position, bytes.size()));
}

void PickleMachine::byte_string(std::uint64_t length) {
  if (log_ != nullptr && length <= input_.remaining() && !is_utf8(input_.ahead(length))) {
    return span_of(Kind::kBytes, length);  // a name has only letters that are ASCII
  }
  span_of(Kind::kText, length);
  const std::string_view text = graph_.text(top());
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (grammar_ == Grammar::kMetadata && !std::all_of(text.begin(), text.end(), ascii)) {
    input_.fail(Code::kTornFile, "a string of Python 2 that is not ASCII: Python refuses it");
  }
}

void PickleMachine::tuple(std::size_t count) {
  if (stack_.size() - floor() < count) {
    input_.fail(Code::kTornFile, "a tuple takes values that are not there: garbled");
  }
  const auto items = std::span<const NodeId>(stack_).last(count);
  globals_.check_parts(items);
  const NodeId made = graph_.add_tuple(items);
  drop(items);
  push(made);
}

void PickleMachine::pop_or_unmark() {
  if (!marks_.empty() && marks_.back() == stack_.size()) {
    marks_.pop_back();
  } else {
    pop();
  }
}

void PickleMachine::put(std::size_t index) {
  const NodeId value = top();
  if (index > kMemoIndexMax && log_ == nullptr) {
    input_.fail(Code::kLimit, "memo index " + std::to_string(index) + " after " +
                                  std::to_string(memo_count_) + " entries: garbled");
  }
  if (index > memo_count_ + kMemoSlack) {
    const auto [entry, is_new] = far_memo_.insert_or_assign(index, value);
    if (is_new) ++memo_count_;
    if (far_memo_.size() > kFarMemoMax) {
      input_.fail(Code::kLimit, "the pickle has too many memo entries out of order");
    }
    return;
  }
  if (index >= memo_.size()) memo_.resize(index + 1, kNoNode);
  // It may have been far away when it was made first.
  if (memo_[index] == kNoNode && far_memo_.erase(index) == 0) ++memo_count_;
  memo_[index] = value;
}

void PickleMachine::get(std::size_t index) {
  if (!far_memo_.empty()) {
    if (const auto far = far_memo_.find(index); far != far_memo_.end()) return push(far->second);
  }
  if (index >= memo_.size() || memo_[index] == kNoNode) {
    input_.fail(Code::kTornFile,
                "memo entry " + std::to_string(index) + " was never made: garbled");
  }
  push(memo_[index]);
}

NodeId PickleMachine::below(std::span<const NodeId> items) {
  const std::size_t size = stack_.size() - items.size();
  if (size <= floor()) no_value();
  return stack_[size - 1];
}

void PickleMachine::freeze_keys(std::span<const NodeId> items, std::size_t step) {
  if (log_ != nullptr) return;
  for (std::size_t i = 0; i < items.size(); i += step) {
    if (!graph_.hashable(items[i])) {
      input_.fail(Code::kTornFile, "a mutable value is a dict key or an item of a set: " +
                                       std::string(name_of(graph_.kind(items[i]))) + "; garbled");
    }
    graph_.freeze(items[i]);
  }
}

void PickleMachine::append(NodeId target, std::span<const NodeId> items) {
  globals_.check_parts(items);
  globals_.check_unused(target);
  if (graph_.kind(target) == Kind::kList) return graph_.extend(target, items);
  globals_.extend_list(target, items);
}

void PickleMachine::set_items(NodeId target, std::span<const NodeId> items) {
  if (items.size() % 2 != 0) {
    input_.fail(Code::kTornFile, "a dict gets a key without a value: garbled");
  }
  globals_.check_parts(items);
  freeze_keys(items, 2);
  globals_.check_unused(target);
  if (graph_.kind(target) == Kind::kDict) return graph_.extend(target, items);
  globals_.extend_dict(target, items);
}

void PickleMachine::add_items(NodeId target, std::span<const NodeId> items) {
  if (graph_.kind(target) != Kind::kSet && log_ == nullptr) {
    input_.fail(Code::kTornFile, "ADDITEMS to something that is not a set: garbled");
  }
  globals_.check_parts(items);
  freeze_keys(items, 1);
  globals_.check_unused(target);
  if (graph_.kind(target) == Kind::kSet) graph_.extend(target, items);
}

void PickleMachine::stack_global() {
  const NodeId name = pop();
  const NodeId module = pop();
  if (log_ != nullptr) return push(globals_.log_stacked(module, name));
  if (graph_.kind(name) != Kind::kText || graph_.kind(module) != Kind::kText) {
    input_.fail(Code::kTornFile, "STACK_GLOBAL without two strings: garbled");
  }
  if (graph_.text(name).size() > kNameLengthMax || graph_.text(module).size() > kNameLengthMax) {
    input_.fail(Code::kRefusedName, "a class name of more than 256 characters");
  }
  push(globals_.load(graph_.text(module), graph_.text(name)));
}

/// Replaces the arguments above the last mark by the instance.
void PickleMachine::instantiate(NodeId callee, std::span<const NodeId> args) {
  globals_.check_parts(args);
  const NodeId made = globals_.instantiate(callee, graph_.add_tuple(args));
  drop(args);
  push(made);
}

void PickleMachine::new_object() {
  const NodeId keywords = pop();
  const NodeId args = pop();
  if (log_ != nullptr) {
    top() = globals_.make(top(), args);
    return;
  }
  if (graph_.kind(keywords) != Kind::kDict) {
    input_.fail(Code::kTornFile, "NEWOBJ_EX without a dict of keywords: garbled");
  }
  if (graph_.chain(keywords).first != kNoNode) globals_.misuse(top(), "made with keywords");
  top() = globals_.make(top(), args);
}

void PickleMachine::persistent_id() {
  const NodeId id = pop();
  if (log_ != nullptr && !globals_.is_storage(id)) return outside("something outside the pickle");
  globals_.check_storage(id);
  push(graph_.add_storage(id));
}

}  // namespace

Reading read_graph(ByteSpan input, Grammar grammar, const PickleSource& where) {
  return PickleMachine(input, grammar, where).run();
}

Imports imports_of(ByteSpan bytes, const PickleSource& where) {
  Imports found;
  ImportLog log;
  PickleMachine machine(bytes, Grammar::kAny, where, &log);
  try {
    found.end = machine.walk();
  } catch (const Error& error) {
    found.failure = error;
    found.ran_out = machine.ran_out();
    found.called = machine.called();
  }
  found.imports = log.take();
  return found;
}

}  // namespace reprise::pickle
