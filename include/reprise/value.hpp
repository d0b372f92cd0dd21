#pragma once
// Defines inert values: common state and objects consist of them, and pickles are read into them.
// Nothing stored in a value is ever called. A value is a tree: if a pickle refers to one item
// several times, the item is copied each time, up to a limit on the total size.

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
/// Entries in the order they were written. Keys need not be strings.
using Dict = std::vector<std::pair<Value, Value>>;

struct NoneType {
  friend bool operator==(NoneType, NoneType) = default;
};

struct Tuple {
  List items;
  friend REPRISE_API bool operator==(const Tuple&, const Tuple&);
};

/// Items in the order they were written. Equality ignores the order.
struct Set {
  List items;
  bool frozen = false;
  friend REPRISE_API bool operator==(const Set&, const Set&);
};

/// An integer outside the range of int64, in two's complement, little-endian.
struct BigInt {
  Bytes digits;
  friend bool operator==(const BigInt&, const BigInt&) = default;
};

/// A reference to a class or function by name, for example "torch" and "float32".
struct Name {
  std::string module;
  std::string name;
  friend bool operator==(const Name&, const Name&) = default;
  friend auto operator<=>(const Name&, const Name&) = default;
};

/// A Python instance, stored as the instructions that would construct it.
struct Object {
  enum class How : std::uint8_t {
    kCall,  ///< REDUCE: type(*args)
    kNew,   ///< NEWOBJ: type.__new__(type, *args)
  };
  Name type;
  How how = How::kNew;
  List args;
  std::vector<Value> state;  ///< argument of BUILD; at most one
  List list_items;           ///< items appended after construction (subclasses of list and deque)
  Dict dict_items;  ///< entries set after construction (OrderedDict and other subclasses of dict)

  /// True if the order of `dict_items` matters for equality, as in Python's OrderedDict.
  bool keeps_order() const { return type.module == "collections" && type.name == "OrderedDict"; }
  friend REPRISE_API bool operator==(const Object&, const Object&);
};

/// A tensor inside a bytes item. A torch Parameter is stored as an Object with a TensorValue among
/// its arguments.
struct TensorValue {
  DType dtype = DType::kFloat32;
  Dims shape;
  Bytes data;  ///< row-major and contiguous, even if the stored strides were not
  bool requires_grad = false;
  friend bool operator==(const TensorValue&, const TensorValue&) = default;
};

class Value {
 public:
  using Variant = std::variant<NoneType, bool, std::int64_t, BigInt, double, std::string, Bytes,
                               List, Tuple, Set, Dict, Name, Object, TensorValue>;

  Value() = default;
  // The constructors are implicit on purpose: values are written as literals.
  Value(NoneType) {}
  // Numbers are accepted only as bool, integers and floating-point numbers. Anything that merely
  // converts to one of these is rejected: a pointer, an enumerator, an element of
  // std::vector<bool>.
  template <std::same_as<bool> T>
  Value(T value) : variant_(value) {}
  /// Accepts any integer of at most 64 bits. An integer that does not fit in an int64 becomes a
  /// BigInt.
  template <std::integral T>
  requires(!std::same_as<T, bool> && sizeof(T) <= sizeof(std::int64_t)) Value(T value)
      : variant_(integer(value)) {}
  /// Accepts a float or a double. A Python float represents both exactly.
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

  /// Returns the value of a string key in a dict or in an object's state dict; null if the key is
  /// absent.
  const Value* find(std::string_view key) const;
  /// Returns the value of a string key in a dict; adds an entry with None if the key is absent.
  /// Throws USAGE if this is not a dict.
  Value& operator[](std::string_view key);

  /// Compares bit for bit: doubles by their bits, so NaN equals itself and -0.0 differs from 0.0.
  /// The int 1, the float 1.0 and True all differ. Order matters in lists, tuples and OrderedDicts,
  /// but not in other dicts and sets. Tensors compare by dtype, shape, elements and requires_grad.
  friend REPRISE_API bool operator==(const Value& a, const Value& b);
  /// Prints the value much as Python does, for human readers; long content is shortened.
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

/// A difference between two values: its path, such as `['optimizer'][0]['lr']`, and both values as
/// text.
struct ValueDifference {
  std::string path;
  std::string left;
  std::string right;
  bool one_sided = false;  ///< true if the path exists in only one of the two values
};
/// Returns at most `most` differences, in the order of `left`; empty if the values are equal. If
/// `wanted` is given, the differences that it rejects are skipped and not counted. If the keys of
/// an OrderedDict are in another order, that is a difference at "<path>.keys()".
std::vector<ValueDifference> differences(
    const Value& left, const Value& right, std::size_t most,
    const std::function<bool(const ValueDifference&)>& wanted = {});

/// Returns a hash; equal values have equal hashes.
std::uint64_t hash_of(const Value& value);

}  // namespace REPRISE_API
