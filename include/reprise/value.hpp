#pragma once
// Inert values: what common state and sharded objects are made of, and what a pickle is read into.
// Nothing here is ever called. A tree: sharing in a pickle is expanded within a budget.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/tensor.hpp"

namespace reprise REPRISE_API {

class Value;

using List = std::vector<Value>;
/// Entries in written order; keys need not be strings.
using Dict = std::vector<std::pair<Value, Value>>;

struct NoneType {
  friend bool operator==(NoneType, NoneType) = default;
};

struct Tuple {
  List items;
  friend REPRISE_API bool operator==(const Tuple&, const Tuple&);
};

/// Items in written order; equality does not depend on it.
struct Set {
  List items;
  bool frozen = false;
  friend REPRISE_API bool operator==(const Set&, const Set&);
};

/// An integer outside int64: two's complement, little-endian.
struct BigInt {
  Bytes digits;
  friend bool operator==(const BigInt&, const BigInt&) = default;
};

/// A class or function by name: "torch", "float32".
struct Name {
  std::string module;
  std::string name;
  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name&, const Name&) = default;
};

/// An instance, kept as the instructions that would make it.
struct Object {
  enum class How : std::uint8_t {
    kCall,  ///< REDUCE: type(*args)
    kNew,   ///< NEWOBJ: type.__new__(type, *args)
  };
  Name type;
  How how = How::kNew;
  List args;
  std::vector<Value> state;  ///< BUILD: none or one
  List list_items;           ///< appended after construction (list and deque subclasses)
  Dict dict_items;           ///< set after construction (OrderedDict and other dict subclasses)

  /// True if the order of `dict_items` is part of the value, as in Python an OrderedDict's is.
  bool keeps_order() const { return type.module == "collections" && type.name == "OrderedDict"; }
  friend REPRISE_API bool operator==(const Object&, const Object&);
};

/// A tensor inside a bytes item. A Parameter is an Object that is called with one.
struct TensorValue {
  DType dtype = DType::kFloat32;
  Dims shape;
  Bytes data;  ///< row-major, contiguous, whatever the strides were
  bool requires_grad = false;
  friend bool operator==(const TensorValue&, const TensorValue&) = default;
};

class Value {
 public:
  using Variant = std::variant<NoneType, bool, std::int64_t, BigInt, double, std::string, Bytes,
                               List, Tuple, Set, Dict, Name, Object, TensorValue>;

  Value() = default;
  // Implicit on purpose: values are written as literals.
  Value(NoneType) {}
  // A number is taken as what it is: a pointer becomes no bool, and an enumerator, a
  // std::vector<bool>'s element or any other thing that merely converts to a number becomes none.
  template <std::same_as<bool> T>
  Value(T value) : variant_(value) {}
  /// An integer of at most 64 bits; what int64 can't hold becomes a BigInt.
  template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) <= sizeof(std::int64_t)) Value(T value)
      : variant_(integer(value)) {}
  /// A float or a double, which hold no more than Python's float.
  template <std::floating_point T>
  requires(sizeof(T) <= sizeof(double)) Value(T value) : variant_(static_cast<double>(value)) {}
  Value(const char* value) : variant_(std::string(value)) {}
  Value(std::nullptr_t) = delete;
  Value(std::string value) : variant_(std::move(value)) {}
  Value(Bytes value) : variant_(std::move(value)) {}
  Value(BigInt value) : variant_(std::move(value)) {}
  Value(List value) : variant_(std::move(value)) {}
  Value(Tuple value) : variant_(std::move(value)) {}
  Value(Set value) : variant_(std::move(value)) {}
  Value(Dict value) : variant_(std::move(value)) {}
  Value(Name value) : variant_(std::move(value)) {}
  Value(Object value) : variant_(std::move(value)) {}
  Value(TensorValue value) : variant_(std::move(value)) {}

  template <class T>
  const T* as() const {
    return std::get_if<T>(&variant_);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&variant_);
  }
  const Variant& variant() const { return variant_; }
  bool is_none() const { return as<NoneType>() != nullptr; }

  /// The value under a string key of a dict, or of an object's state dict; null if there is none.
  const Value* find(std::string_view key) const;
  /// The value under a string key of a dict; a new entry, None, if there is none. USAGE if this is
  /// no dict.
  Value& operator[](std::string_view key);

  /// Bit for bit: doubles by their bits, so NaN equals itself and -0.0 differs from 0.0; int 1,
  /// float 1.0 and True all differ. Lists, tuples and OrderedDicts in order; other dicts by key,
  /// and sets, whatever the order. Tensors by dtype, shape, elements and requires_grad.
  friend REPRISE_API bool operator==(const Value& a, const Value& b);
  /// Much as Python prints it, long content shortened; for people.
  friend REPRISE_API std::ostream& operator<<(std::ostream& out, const Value& value);

 private:
  template <std::integral T>
  static Variant integer(T value) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::uint64_t)) {
      if (value > std::uint64_t{INT64_MAX}) return big_integer(value);
    }
    return static_cast<std::int64_t>(value);
  }
  static Variant big_integer(std::uint64_t value);

  Variant variant_;
};

std::string to_string(const Value& value, std::size_t length_max = 200);

/// Where two values differ first: a path such as `['optimizer'][0]['lr']`, and both sides printed.
struct ValueDifference {
  std::string path;
  std::string left;
  std::string right;
  bool one_sided = false;  ///< only one side has something at this path
};
/// Empty vector if equal; at most `most` differences in the order of the left side. With `wanted`
/// only those for which it says yes: the others neither count nor take a place. Where an
/// OrderedDict has its keys in another order, that is a difference at "<path>.keys()".
std::vector<ValueDifference> differences(
    const Value& left, const Value& right, std::size_t most,
    const std::function<bool(const ValueDifference&)>& wanted = {});

/// Returns equal hashes for equal values.
std::uint64_t hash_of(const Value& value);

}  // namespace REPRISE_API
