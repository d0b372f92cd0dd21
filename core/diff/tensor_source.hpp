#pragma once
// Says where the elements of a tensor come from that differs, or that only one side has.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/diff/line_order.hpp"
#include "core/diff/value_relation.hpp"

namespace reprise {

/// The tensor is another one of the other side, or the same one after a change. Every element of
/// which this is said was read on both sides and compared.
struct TensorSource {
  std::string key;          ///< of the source
  bool of_left = true;      ///< true if the source is on the left side
  std::uint64_t alike = 0;  ///< further tensors on that side with the digest of the source
  bool transposed = false;  ///< the last two dimensions are exchanged
  /// The arithmetic between them; with `order`, only kRounded.
  std::optional<ValueRelation> relation = {};
  /// Where lines along `dimension` come from; if it is empty, all are at their places.
  std::optional<LineOrder> order = {};
  std::size_t dimension = 0;
  std::size_t ndim = 0;    ///< of the tensor
  std::int64_t lines = 0;  ///< extent of the tensor along `dimension`
};

/// Returns a sentence without its full stop, such as "B[2:4] is A[4:6]: the same 16 blocks of 2
/// rows, permuted". `key` is the tensor's own.
std::string sentence_of(const TensorSource& source, std::string_view key);

}  // namespace reprise
