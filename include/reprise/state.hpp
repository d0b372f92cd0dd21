#pragma once
// Defines the state that a rank saves and loads: parts of tensors in the rank's own memory,
// objects, and common state.

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "reprise/mesh.hpp"
#include "reprise/tensor.hpp"
#include "reprise/value.hpp"

namespace reprise REPRISE_API {

/// Replica number of a copy that is as good as any other. Of the ranks that hold equal boxes of a
/// tensor, the plan chooses one that writes, whatever their numbers; but one of them must have the
/// number 0 or this one, and only one the number 0. An object is written by the holder of copy 0,
/// or by one of those whose copy has this number.
inline constexpr std::int32_t kAnyCopy = -1;

/// The part of a tensor that one rank holds, and the position of the part in the tensor.
struct Sharded {
  Dims shape;                ///< shape of the whole tensor
  Dims offset;               ///< where this rank's part starts, one number per dimension
  Dims extent;               ///< size of this rank's part; contains a 0 if the part is empty
  std::int32_t replica = 0;  ///< 0 for the main copy, another number for each other; or kAnyCopy
  std::shared_ptr<const Mesh> mesh;  ///< mesh whose axes the splits name; the same on all ranks
  std::vector<Split> splits;

  std::size_t local_elements() const { return static_cast<std::size_t>(volume(extent)); }
};

/// Returns the part of a tensor of `shape` that `rank` holds under these splits. Without splits
/// that is the whole tensor. Throws LAYOUT_MISMATCH if the mesh lacks the rank or the axis of a
/// split, if a split uses a dimension that the shape lacks, or if two splits use one axis. Throws
/// USAGE for a negative extent.
Sharded sharded(const Dims& shape, const Mesh& mesh, std::vector<Split> splits, GlobalRank rank);

/// Says who can read and write some memory.
enum class MemoryKind : std::uint8_t {
  kDevice,  ///< the job's device (JobOptions::device)
  kHost,    ///< the CPU; with a device that is the CPU, the same as kDevice
};

/// A box of a tensor in this rank's memory. A rank may hold several of one tensor, each in a buffer
/// of its own.
struct TensorPart {
  Dims offset;           ///< where the box starts in the tensor, one number per dimension
  Dims extent;           ///< size of the box
  void* data = nullptr;  ///< the box's first element; may be null if the box is empty
  /// Distance in elements between neighbours along each dimension, at least 0; without dimensions
  /// the box is row-major. A save takes any strides, such as those of a transposed, sliced or
  /// expanded view. A load refuses strides by which two elements may share memory (USAGE).
  Dims strides = {};
  MemoryKind memory = MemoryKind::kDevice;
};

/// One step of a path in a nested state dict: the key of a dict, or a position in a list.
using PathStep = std::variant<std::string, std::int64_t>;
/// Where a key belongs in a nested state dict, from the outside in.
using KeyPath = std::vector<PathStep>;

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
  std::int32_t replica = 0;  ///< 0 for the main copy, which is the only copy written; or kAnyCopy
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

  /// Adds a tensor of `shape` of which this rank holds `parts`, which may be none. Ranks with equal
  /// boxes hold copies, of which one is written. Throws USAGE if a tensor with that key exists, if
  /// a part has another number of dimensions than the shape or a negative stride, or if it has
  /// elements and no data.
  void add(const std::string& key, DType dtype, const Dims& shape,
           std::span<const TensorPart> parts, std::int32_t replica = kAnyCopy);

  /// Says that the last of a tensor's kMaxNdim dimensions stands for several, which have these
  /// extents and lie together in memory. This is how a tensor of more than kMaxNdim dimensions is
  /// added; torch reads it with all of them. No part may be cut along the last dimension (USAGE on
  /// all ranks when it is saved). A load wants a tensor with the same extents. Throws NOT_FOUND if
  /// there is no tensor with that key; USAGE if it has another number of dimensions, or if its last
  /// extent is not the product of these, of which there are at least two.
  void set_folded(const std::string& key, FoldedExtents extents);

  /// Lets a load take a tensor that is stored with another shape of as many dimensions, such as a
  /// vocabulary that is padded for another number of ranks: elements that are not stored keep their
  /// values. Throws NOT_FOUND if there is no tensor with that key.
  void allow_other_shape(const std::string& key);

  /// Adds bytes that are stored as they are, under their key alone, and given back by a load. The
  /// key may be any text, but not that of a tensor. This is how torch stores what is no tensor; the
  /// bytes are then what torch.save writes. Ranks with the same key hold copies, of which one is
  /// written. Throws USAGE if the key exists.
  void add_bytes(const std::string& key, Bytes content, std::int32_t replica = kAnyCopy);
  /// Returns bytes as added, or as replaced by the last load. Throws NOT_FOUND if this rank has
  /// none with that key.
  const Bytes& bytes(const std::string& key) const;

  /// Says where a key belongs in the nested state dict of a Python job. torch then nests what it
  /// reads in the same way (planner_data). Without a path, a key belongs at the top. Ranks that
  /// name a path for the same key name the same one.
  void set_path(const std::string& key, KeyPath path);

  /// Adds an object. Throws USAGE if an object with that key exists at that coordinate.
  void add_object(const std::string& key, const ObjectPlace& place, Value value);
  /// Returns the object's current value: as added, or as replaced by the last load. Throws
  /// NOT_FOUND if this rank has no object with that key.
  const Value& object(const std::string& key) const;

  /// A dict of values that are the same on all ranks, such as the iteration, the arguments and the
  /// schedules. A load replaces it. If it is None, a save writes none, as torch does, and not what
  /// Megatron writes beside tensors and objects. Or Bytes: what torch.save wrote of such a dict,
  /// which is stored as it is and never read. A load into Bytes, which may be empty, replaces them
  /// by those that are stored; Megatron-Core 0.19 and later store a list with the dict.
  Value& common();
  const Value& common() const;

 private:
  friend struct StateAccess;
  std::unique_ptr<struct StateContent> content_;
};

}  // namespace REPRISE_API
