#include "reprise/tensor.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise {

void detail::too_many_dims() {
  throw Error(Code::kUsage, "more than " + std::to_string(kMaxNdim) + " dimensions");
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  out << '[';
  for (std::size_t d = 0; d < dims.size(); ++d) out << (d == 0 ? "" : ", ") << dims[d];
  return out << ']';
}

std::int64_t volume(const Dims& extents) {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
  std::int64_t product = 1;
  for (const auto extent : extents) product *= extent;
  return product;
}

std::optional<std::int64_t> checked_volume(const Dims& extents) {
  return checked_volume(std::span<const std::int64_t>(extents.begin(), extents.size()));
}

std::optional<std::int64_t> checked_volume(std::span<const std::int64_t> extents) {
  if (std::any_of(extents.begin(), extents.end(), [](auto extent) { return extent < 0; })) {
    return std::nullopt;
  }
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
  std::int64_t product = 1;
  for (const auto extent : extents) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

Dims contiguous_strides(const Dims& extents) {
  Dims strides = Dims::filled(extents.size(), 1);
  for (std::size_t d = extents.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * std::max<std::int64_t>(extents[d], 1);
  }
  return strides;
}

std::int64_t linear_index(const Dims& index, const Dims& extents) {
  CHECK(index.size() == extents.size(), index, extents);
  std::int64_t linear = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) linear = linear * extents[d] + index[d];
  return linear;
}

Dims index_at(std::int64_t linear, const Dims& extents) {
  Dims index = Dims::filled(extents.size(), 0);
  for (std::size_t d = extents.size(); d-- > 0;) {
    CHECK(extents[d] > 0, extents);
    index[d] = linear % extents[d];
    linear /= extents[d];
  }
  return index;
}

std::string to_string(const Dims& dims) {
  std::ostringstream out;
  out << dims;
  return out.str();
}

}  // namespace reprise
