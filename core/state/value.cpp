#include "core/state/value.hpp"

#include <algorithm>
#include <bit>
#include <sstream>

#include "core/base/hash.hpp"

namespace reprise {
namespace {

template <class... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overload(Cases...) -> Overload<Cases...>;

/// Equal as multisets. Entries mostly stand in the same order, so a match is looked for from the
/// same position on.
template <class Items>
bool equal_in_any_order(const Items& a, const Items& b) {
  if (a.size() != b.size()) return false;
  std::vector<bool> used(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    bool found = false;
    for (std::size_t step = 0; step < b.size() && !found; ++step) {
      const std::size_t j = (i + step) % b.size();
      if (used[j] || !(a[i] == b[j])) continue;
      used[j] = found = true;
    }
    if (!found) return false;
  }
  return true;
}

// --- printing -----------------------------------------------------------------------------------

constexpr std::size_t kItemsPrinted = 16;

void print_quoted(std::ostream& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out << '\'';
  for (const char c : text.substr(0, 120)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      out << '\\' << c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out << "\\x" << kDigits[byte >> 4U] << kDigits[byte & 15U];
    } else {
      out << c;
    }
  }
  out << '\'' << (text.size() > 120 ? "..." : "");
}

void print_items(std::ostream& out, const List& items) {
  for (std::size_t i = 0; i < items.size() && i < kItemsPrinted; ++i) {
    out << (i == 0 ? "" : ", ") << items[i];
  }
  if (items.size() > kItemsPrinted) out << ", ... " << items.size() << " items";
}

void print_dict(std::ostream& out, const Dict& dict) {
  out << '{';
  for (std::size_t i = 0; i < dict.size() && i < kItemsPrinted; ++i) {
    out << (i == 0 ? "" : ", ") << dict[i].first << ": " << dict[i].second;
  }
  if (dict.size() > kItemsPrinted) out << ", ... " << dict.size() << " entries";
  out << '}';
}

struct Printer {
  std::ostream& out;

  void operator()(None) const { out << "None"; }
  void operator()(bool value) const { out << (value ? "True" : "False"); }
  void operator()(std::int64_t value) const { out << value; }
  void operator()(const BigInt& value) const {
    out << "int of " << value.digits.size() << " bytes";
  }
  void operator()(double value) const {
    std::ostringstream text;
    text.precision(17);
    text << value;
    out << text.str();
    if (text.str().find_first_not_of("-0123456789") == std::string::npos) out << ".0";
  }
  void operator()(const std::string& value) const { print_quoted(out, value); }
  void operator()(const Bytes& value) const {
    out << 'b';
    print_quoted(out, as_text(value));
  }
  void operator()(const List& value) const {
    out << '[';
    print_items(out, value);
    out << ']';
  }
  void operator()(const Tuple& value) const {
    out << '(';
    print_items(out, value.items);
    out << (value.items.size() == 1 ? ",)" : ")");
  }
  void operator()(const Set& value) const {
    out << (value.frozen ? "frozenset{" : "{");
    print_items(out, value.items);
    out << '}';
  }
  void operator()(const Dict& value) const { print_dict(out, value); }
  void operator()(const Name& value) const { out << value.module << '.' << value.name; }
  void operator()(const Object& value) const {
    out << value.type.name << '(';
    print_items(out, value.args);
    out << ')';
    if (!value.list_items.empty()) print_state(value.list_items);
    if (!value.dict_items.empty()) print_dict(out, value.dict_items);
    for (const auto& state : value.state) out << state;
  }
  void operator()(const TensorValue& value) const {
    out << "tensor(" << value.dtype << ", " << value.shape << ")";
  }

 private:
  void print_state(const List& items) const {
    out << '[';
    print_items(out, items);
    out << ']';
  }
};

// --- differences --------------------------------------------------------------------------------

class Differ {
 public:
  explicit Differ(std::size_t most) : most_(most) {}

  void compare(const std::string& path, const Value& a, const Value& b) {
    if (full() || a == b) return;
    if (both<List>(a, b)) return items(path, *a.as<List>(), *b.as<List>(), a, b);
    if (both<Tuple>(a, b)) return items(path, a.as<Tuple>()->items, b.as<Tuple>()->items, a, b);
    if (both<Dict>(a, b)) return entries(path, *a.as<Dict>(), *b.as<Dict>());
    if (both<Object>(a, b)) return object(path, *a.as<Object>(), *b.as<Object>(), a, b);
    add(path, to_string(a), to_string(b));
  }

  std::vector<ValueDifference> take() { return std::move(found_); }

 private:
  template <class T>
  static bool both(const Value& a, const Value& b) {
    return a.as<T>() != nullptr && b.as<T>() != nullptr;
  }

  bool full() const { return found_.size() >= most_; }

  void add(const std::string& path, std::string left, std::string right) {
    if (!full()) found_.push_back({path, std::move(left), std::move(right)});
  }

  void items(const std::string& path, const List& a, const List& b, const Value& whole_a,
             const Value& whole_b) {
    if (a.size() != b.size()) return add(path, to_string(whole_a), to_string(whole_b));
    for (std::size_t i = 0; i < a.size(); ++i) {
      compare(path + "[" + std::to_string(i) + "]", a[i], b[i]);
    }
  }

  static const Value* value_of(const Dict& dict, const Value& key) {
    for (const auto& [k, v] : dict) {
      if (k == key) return &v;
    }
    return nullptr;
  }

  void entries(const std::string& path, const Dict& a, const Dict& b) {
    for (const auto& [key, value] : a) {
      const std::string at = path + "[" + to_string(key) + "]";
      const Value* other = value_of(b, key);
      if (other == nullptr) {
        add(at, to_string(value), "(absent)");
      } else {
        compare(at, value, *other);
      }
    }
    for (const auto& [key, value] : b) {
      if (value_of(a, key) == nullptr) {
        add(path + "[" + to_string(key) + "]", "(absent)", to_string(value));
      }
    }
  }

  void object(const std::string& path, const Object& a, const Object& b, const Value& whole_a,
              const Value& whole_b) {
    if (a.type != b.type || a.how != b.how || a.args.size() != b.args.size() ||
        a.state.size() != b.state.size() || a.list_items.size() != b.list_items.size()) {
      return add(path, to_string(whole_a), to_string(whole_b));
    }
    items(path + ".args", a.args, b.args, whole_a, whole_b);
    items(path, a.list_items, b.list_items, whole_a, whole_b);
    entries(path, a.dict_items, b.dict_items);
    if (!a.state.empty()) compare(path, a.state[0], b.state[0]);
  }

  std::size_t most_;
  std::vector<ValueDifference> found_;
};

// --- hashing ------------------------------------------------------------------------------------

std::uint64_t hash_items(const List& items) {
  std::uint64_t hash = mix64(items.size());
  for (const auto& item : items) hash = mix64(hash, hash_of(item));
  return hash;
}

std::uint64_t hash_dict(const Dict& dict) {
  std::uint64_t sum = mix64(dict.size());
  for (const auto& [key, value] : dict) sum += mix64(hash_of(key), hash_of(value));
  return mix64(sum);
}

std::uint64_t hash_name(const Name& name) {
  return mix64(hash_of(std::string_view(name.module)), hash_of(std::string_view(name.name)));
}

std::uint64_t hash_object(const Object& object) {
  std::uint64_t hash = mix64(hash_name(object.type), static_cast<std::uint64_t>(object.how));
  hash = mix64(hash, hash_items(object.args));
  hash = mix64(hash, hash_items(object.state));
  hash = mix64(hash, hash_items(object.list_items));
  return mix64(hash, hash_dict(object.dict_items));
}

std::uint64_t hash_set(const Set& set) {
  std::uint64_t sum = mix64(set.frozen ? 1 : 0);
  for (const auto& item : set.items) sum += mix64(hash_of(item));
  return mix64(sum);
}

std::uint64_t hash_tensor(const TensorValue& tensor) {
  std::uint64_t hash = mix64(static_cast<std::uint64_t>(tensor.dtype), tensor.shape.size());
  for (const auto extent : tensor.shape) hash = mix64(hash, static_cast<std::uint64_t>(extent));
  return mix64(hash, hash_of(ByteSpan(tensor.data)));
}

}  // namespace

bool operator==(const Tuple& a, const Tuple& b) { return a.items == b.items; }
bool operator==(const Set& a, const Set& b) {
  return a.frozen == b.frozen && equal_in_any_order(a.items, b.items);
}
bool operator==(const Object& a, const Object& b) {
  return a.type == b.type && a.how == b.how && a.args == b.args && a.state == b.state &&
         a.list_items == b.list_items && equal_in_any_order(a.dict_items, b.dict_items);
}

bool operator==(const Value& a, const Value& b) {
  if (a.variant_.index() != b.variant_.index()) return false;
  if (const auto* dict = a.as<Dict>()) return equal_in_any_order(*dict, *b.as<Dict>());
  if (const auto* number = a.as<double>()) {
    return std::bit_cast<std::uint64_t>(*number) == std::bit_cast<std::uint64_t>(*b.as<double>());
  }
  return a.variant_ == b.variant_;
}

const Value* Value::find(std::string_view key) const {
  const Dict* dict = as<Dict>();
  if (const auto* object = as<Object>()) {
    if (!object->state.empty()) return object->state[0].find(key);
    dict = &object->dict_items;
  }
  if (dict == nullptr) return nullptr;
  for (const auto& [name, value] : *dict) {
    const auto* text = name.as<std::string>();
    if (text != nullptr && *text == key) return &value;
  }
  return nullptr;
}

std::ostream& operator<<(std::ostream& out, const Value& value) {
  std::visit(Printer{out}, value.variant_);
  return out;
}

std::string to_string(const Value& value, std::size_t length_max) {
  std::ostringstream out;
  out << value;
  std::string text = out.str();
  if (text.size() > length_max) text = text.substr(0, length_max) + "...";
  return text;
}

std::vector<ValueDifference> differences(const Value& left, const Value& right, std::size_t most) {
  Differ differ(most);
  differ.compare("", left, right);
  return differ.take();
}

std::uint64_t hash_of(const Value& value) {
  const std::uint64_t kind = mix64(value.variant().index());
  const auto content = std::visit(
      Overload{[](None) { return std::uint64_t{0}; }, [](bool v) { return std::uint64_t{v}; },
               [](std::int64_t v) { return static_cast<std::uint64_t>(v); },
               [](const BigInt& v) { return hash_of(ByteSpan(v.digits)); },
               [](double v) { return std::bit_cast<std::uint64_t>(v); },
               [](const std::string& v) { return hash_of(std::string_view(v)); },
               [](const Bytes& v) { return hash_of(ByteSpan(v)); },
               [](const List& v) { return hash_items(v); },
               [](const Tuple& v) { return hash_items(v.items); },
               [](const Set& v) { return hash_set(v); }, [](const Dict& v) { return hash_dict(v); },
               [](const Name& v) { return hash_name(v); },
               [](const Object& v) { return hash_object(v); },
               [](const TensorValue& v) { return hash_tensor(v); }},
      value.variant());
  return mix64(kind, content);
}

}  // namespace reprise
