#include "core/geometry/element_change.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/check.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/element_values.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kDecodedAtOnce = 512;  // elements that are decoded at a time
using Numbers = std::array<double, 2 * kDecodedAtOnce>;

/// Sums in several lanes, so that the processor adds them side by side.
template <class Square>
double sum_of(std::size_t count, const Square& square) {
  std::array<double, 4> lanes{};
  std::size_t i = 0;
  for (; i + lanes.size() <= count; i += lanes.size()) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) lanes[lane] += square(i + lane);
  }
  for (; i < count; ++i) lanes[0] += square(i);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

}  // namespace

double ElementChange::relative() const {
  if (difference == 0) return std::isnan(before) ? before : 0;
  return std::sqrt(difference) / std::sqrt(before);
}

void ElementChange::add(DType before_type, const std::byte* before_elements, DType after_type,
                        const std::byte* after_elements, std::int64_t elements) {
  const std::size_t numbers = numbers_per_element(before_type);
  CHECK(numbers == numbers_per_element(after_type), before_type, after_type);
  Numbers a;
  Numbers b;
  for (std::int64_t begin = 0; begin < elements; begin += kDecodedAtOnce) {
    const auto count = static_cast<std::size_t>(std::min(kDecodedAtOnce, elements - begin));
    decode_elements(before_type, before_elements, count, a.data());
    decode_elements(after_type, after_elements, count, b.data());
    before_elements += count * size_of(before_type);
    after_elements += count * size_of(after_type);
    before += sum_of(count * numbers, [&a](std::size_t i) { return a[i] * a[i]; });
    difference += sum_of(count * numbers, [&a, &b](std::size_t i) {
      return a[i] == b[i] ? 0 : (b[i] - a[i]) * (b[i] - a[i]);
    });
  }
}

void ElementChange::add_unchanged(DType dtype, const std::byte* elements, std::int64_t count) {
  const std::size_t numbers = numbers_per_element(dtype);
  Numbers a;
  for (std::int64_t begin = 0; begin < count; begin += kDecodedAtOnce) {
    const auto some = static_cast<std::size_t>(std::min(kDecodedAtOnce, count - begin));
    decode_elements(dtype, elements, some, a.data());
    elements += some * size_of(dtype);
    before += sum_of(some * numbers, [&a](std::size_t i) { return a[i] * a[i]; });
  }
}

}  // namespace reprise
