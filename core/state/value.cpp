#include "reprise/value.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "core/state/value_identity.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

enum class Sameness {
  kSame,
  kDifferent,
  kOpen,  ///< undecided: entries of a dict or set differ, perhaps only in their order
};

template <class Items, class Compare>
Sameness in_order(const Items& a, const Items& b, Sameness otherwise, Compare compare) {
  if (a.size() != b.size()) return Sameness::kDifferent;
  Sameness all = Sameness::kSame;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Sameness one = compare(a[i], b[i]);
    if (one == Sameness::kSame) continue;
    if (otherwise == Sameness::kOpen) return Sameness::kOpen;
    if (one == Sameness::kDifferent) return Sameness::kDifferent;
    all = Sameness::kOpen;
  }
  return all;
}

/// Compares both sides entry by entry, in stored order, in linear time.
Sameness walk(const Value& a, const Value& b);

Sameness walk(const List& a, const List& b) {
  return in_order(a, b, Sameness::kDifferent,
                  [](const Value& x, const Value& y) { return walk(x, y); });
}

Sameness walk(const Set& a, const Set& b) {
  if (a.frozen != b.frozen) return Sameness::kDifferent;
  return in_order(a.items, b.items, Sameness::kOpen,
                  [](const Value& x, const Value& y) { return walk(x, y); });
}

Sameness walk(const Dict& a, const Dict& b) {
  return in_order(a, b, Sameness::kOpen, [](const auto& x, const auto& y) {
    return walk(x.first, y.first) == Sameness::kSame && walk(x.second, y.second) == Sameness::kSame
               ? Sameness::kSame
               : Sameness::kOpen;
  });
}

Sameness all_of(std::initializer_list<Sameness> parts) {
  Sameness all = Sameness::kSame;
  for (const Sameness part : parts) {
    if (part == Sameness::kDifferent) return part;
    if (part == Sameness::kOpen) all = part;
  }
  return all;
}

Sameness walk_ordered(const Dict& a, const Dict& b) {
  return in_order(a, b, Sameness::kDifferent, [](const auto& x, const auto& y) {
    return all_of({walk(x.first, y.first), walk(x.second, y.second)});
  });
}

Sameness walk(const Object& a, const Object& b) {
  if (a.type != b.type || a.how != b.how) return Sameness::kDifferent;
  return all_of({walk(a.args, b.args), walk(a.state, b.state), walk(a.list_items, b.list_items),
                 a.keeps_order() ? walk_ordered(a.dict_items, b.dict_items)
                                 : walk(a.dict_items, b.dict_items)});
}

Sameness walk(const Value& a, const Value& b) {
  const auto same_if = [](bool same) { return same ? Sameness::kSame : Sameness::kDifferent; };
  return std::visit(
      [&](const auto& left) {
        using T = std::decay_t<decltype(left)>;
        const T* right = b.as<T>();
        if (right == nullptr) return Sameness::kDifferent;
        if constexpr (std::is_same_v<T, Tuple>) {
          return walk(left.items, right->items);
        } else if constexpr (std::is_same_v<T, List> || std::is_same_v<T, Set> ||
                             std::is_same_v<T, Dict> || std::is_same_v<T, Object>) {
          return walk(left, *right);
        } else if constexpr (std::is_same_v<T, double>) {
          return same_if(std::bit_cast<std::uint64_t>(left) ==
                         std::bit_cast<std::uint64_t>(*right));
        } else {
          return same_if(left == *right);
        }
      },
      a.variant());
}

}  // namespace

bool operator==(const Value& a, const Value& b) {
  const Sameness sameness = walk(a, b);
  if (sameness != Sameness::kOpen) return sameness == Sameness::kSame;
  if (hash_of(a) != hash_of(b)) return false;
  ValueIdentity identity;
  return identity.of(a) == identity.of(b);
}

bool operator==(const Tuple& a, const Tuple& b) { return Value(a) == Value(b); }
bool operator==(const Set& a, const Set& b) { return Value(a) == Value(b); }
bool operator==(const Object& a, const Object& b) { return Value(a) == Value(b); }

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

Value& Value::operator[](std::string_view key) {
  Dict* dict = as<Dict>();
  if (dict == nullptr) {
    throw Error(Code::kUsage,
                "only a dict has entries, and this value is not one: " + to_string(*this));
  }
  const auto at = std::find_if(dict->begin(), dict->end(), [key](const auto& entry) {
    const auto* text = entry.first.template as<std::string>();
    return text != nullptr && *text == key;
  });
  return at != dict->end() ? at->second : dict->emplace_back(std::string(key), NoneType{}).second;
}

Value::Variant Value::big_integer(std::uint64_t value) {
  Bytes digits(sizeof value + 1);  // the last byte holds the sign
  std::memcpy(digits.data(), &value, sizeof value);
  return BigInt{std::move(digits)};
}

}  // namespace reprise
