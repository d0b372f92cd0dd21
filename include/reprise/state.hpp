#pragma once
// What a rank saves and loads: parts of tensors in its own memory, objects, and common state.

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

/// The part of a tensor that one rank holds, and where in the tensor it lies.
struct Sharded {
  Dims shape;                        ///< of the whole tensor
  Dims offset;                       ///< of this rank's part, one per dimension
  Dims extent;                       ///< likewise; 0 where the rank holds nothing
  std::int32_t replica = 0;          ///< 0: the main copy, which is written
  std::shared_ptr<const Mesh> mesh;  ///< the same on all ranks
  std::vector<Split> splits;

  std::size_t local_elements() const { return static_cast<std::size_t>(volume(extent)); }
};

/// What `rank` holds of a tensor of `shape` under these splits; without any, all of it. Throws
/// LAYOUT_MISMATCH if the mesh lacks the rank or a split's axis, a split names a dimension that the
/// shape lacks, or an axis is named twice; USAGE for a negative extent.
Sharded sharded(const Dims& shape, const Mesh& mesh, std::vector<Split> splits, GlobalRank rank);

namespace detail {
template <class>
inline constexpr bool kNoElement = false;
}

/// The element type of a C++ type. 16-bit and 8-bit floats have none: name their DType.
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

/// An object's place in a small grid of objects of one key.
struct ObjectPlace {
  Dims coordinate;
  Dims grid;
  std::int32_t replica = 0;  ///< 0: the main copy, which is written
};
/// Each rank has an object of its own.
inline ObjectPlace one_per_rank(GlobalRank rank, std::int32_t world_size) {
  return {{rank.value}, {world_size}, 0};
}
/// All ranks have the same object; rank 0 writes it.
inline ObjectPlace same_on_all(GlobalRank rank) { return {{0}, {1}, rank.value}; }

/// Tensors and objects by key. The tensors' memory stays the caller's: a save reads it until
/// begin_save (or save) returns, a load writes it. Moved from, it takes no calls.
class State {
 public:
  State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;
  ~State();

  /// `data` holds the part's elements, row-major, in memory of the job's device. USAGE if there is
  /// a tensor of that key, or if `data` is null and the part has elements.
  template <class T>
  void add(const std::string& key, const Sharded& part, T* data) {
    add(key, part, dtype_of<T>(), data);
  }
  void add(const std::string& key, const Sharded& part, DType dtype, void* data);

  /// USAGE if there is an object of that key at that coordinate.
  void add_object(const std::string& key, const ObjectPlace& place, Value value);
  /// As it was added, or as the last load read it. NOT_FOUND if this rank has none of that key.
  const Value& object(const std::string& key) const;

  /// A dict, the same on all ranks: iteration, arguments, schedules. A load replaces it.
  Value common = Dict{};

 private:
  friend struct StateAccess;
  std::unique_ptr<struct StateDict> leaves_;
};

}  // namespace REPRISE_API
