#include "core/geometry/element_values.hpp"

#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/geometry/difference.hpp"

namespace reprise {

bool is_float_like(DType dtype) {
  const std::string_view name = name_of(dtype);
  return name.find("float") != std::string_view::npos || name.starts_with("complex");
}

std::size_t numbers_per_element(DType dtype) {
  if (dtype == DType::kFloat4E2M1FNx2) return 2;
  return with_value_of(dtype, [](const auto& /*value*/, auto parts) { return parts(); });
}

void decode_elements(DType dtype, const std::byte* elements, std::size_t count, double* out) {
  with_value_of(dtype, [&](const auto& value, auto parts) {
    using Value = std::decay_t<decltype(value)>;
    typename Value::Bits bits;
    for (std::size_t i = 0; i < count * parts(); ++i) {
      std::memcpy(&bits, elements + i * sizeof bits, sizeof bits);
      if constexpr (std::is_same_v<Value, Float4PairValue>) {
        const Float4Pair pair = value(bits);
        out[2 * i] = pair.low;
        out[2 * i + 1] = pair.high;
      } else {
        out[i] = static_cast<double>(value(bits));
      }
    }
  });
}

}  // namespace reprise
