#pragma once
// Defines the state that a rank saves and loads: parts of tensors in the rank's own memory,
// objects, and common state.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "reprise/mesh.hpp"
#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise REPRISE_API {

/// The part of a tensor that one rank holds, and the position of the part in the tensor.
struct Sharded {
  Dims shape;                ///< shape of the whole tensor
  Dims offset;               ///< where this rank's part starts, one number per dimension
  Dims extent;               ///< size of this rank's part; contains a 0 if the part is empty
  std::int32_t replica = 0;  ///< 0 for the main copy, which is the only copy written
  std::shared_ptr<const Mesh> mesh;  ///< mesh whose axes the splits name; the same on all ranks
  std::vector<Split> splits;

  std::size_t local_elements() const { return static_cast<std::size_t>(volume(extent)); }
};

/// Returns the part of a tensor of `shape` that `rank` holds under these splits. Without splits
/// that is the whole tensor. Throws LAYOUT_MISMATCH if the mesh lacks the rank or the axis of a
/// split, if a split uses a dimension that the shape lacks, or if two splits use one axis. Throws
/// USAGE for a negative extent.
Sharded sharded(const Dims& shape, const Mesh& mesh, std::vector<Split> splits, GlobalRank rank);

namespace detail {
template <class>
inline constexpr bool kNoElement = false;
}

/// Returns the element type for a C++ type. C++ has no types for 16-bit and 8-bit floats; pass
/// their DType explicitly.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::kFloat32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kFloat64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return DType::kBool;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return DType::kComplex64;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return DType::kComplex128;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr DType kSigned[] = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
    constexpr DType kUnsigned[] = {DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64};
    constexpr std::size_t kWidth = sizeof(T) == 8 ? 3 : sizeof(T) / 2;
    return std::is_signed_v<T> ? kSigned[kWidth] : kUnsigned[kWidth];
  } else {
    static_assert(detail::kNoElement<T>, "no element type of PyTorch");
    return DType::kUInt8;
  }
}

/// Position of an object in a small grid of objects with the same key.
struct ObjectPlace {
  Dims coordinate;
  Dims grid;
  std::int32_t replica = 0;  ///< 0 for the main copy, which is the only copy written
};
/// Returns the position of this rank's object in a grid with one object per rank.
inline ObjectPlace one_per_rank(GlobalRank rank, std::int32_t world_size) {
  return {{rank.value}, {world_size}, 0};
}
/// Returns the position of an object that is the same on all ranks; rank 0 writes it.
inline ObjectPlace same_on_all(GlobalRank rank) { return {{0}, {1}, rank.value}; }

/// Tensors and objects by key. The caller owns the tensors' memory: a save reads it until
/// begin_save (or save) returns, or until SaveInFlight::wait_for_staging if SaveOptions::returns
/// asks for that, and a load writes to it. A moved-from State may be destroyed,
/// assigned to and moved from again; any other call on it throws USAGE.
class State {
 public:
  State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  /// Adds this rank's part of a tensor. `data` holds the part's elements, row-major, in memory of
  /// the job's device. Throws USAGE if a tensor with that key exists, or if `data` is null and the
  /// part has elements.
  template <class T>
  void add(const std::string& key, const Sharded& part, T* data) {
    add(key, part, dtype_of<T>(), data);
  }
  void add(const std::string& key, const Sharded& part, DType dtype, void* data);

  /// Adds an object. Throws USAGE if an object with that key exists at that coordinate.
  void add_object(const std::string& key, const ObjectPlace& place, Value value);
  /// Returns the object's current value: as added, or as replaced by the last load. Throws
  /// NOT_FOUND if this rank has no object with that key.
  const Value& object(const std::string& key) const;

  /// A dict of values that are the same on all ranks, such as the iteration, the arguments and the
  /// schedules. A load replaces it.
  Value common = Dict{};

 private:
  friend struct StateAccess;
  std::unique_ptr<struct StateDict> leaves_;
};

}  // namespace REPRISE_API
