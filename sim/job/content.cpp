#include "sim/job/content.hpp"

#include <bit>

namespace reprise::sim {
namespace {

constexpr float kExactIntegers = 8388608.0F;  // 2^23: from here on a float is an integer anyway

/// Nearest integer, halves away from zero.
float rounded(float value) {
  if (!(value < kExactIntegers && value > -kExactIntegers)) return value;
  return static_cast<float>(static_cast<std::int32_t>(value + (value < 0 ? -0.5F : 0.5F)));
}

}  // namespace

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16U | 0x40U);
  const std::uint32_t odd = bits >> 16U & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

Stream parameter_stream(std::uint64_t seed, std::string_view key) {
  return Stream(seed).split("parameter").split(key);
}

float initial_value(const Stream& parameter, std::int64_t index, bool norm) {
  const float noise = unit_of(parameter.at(static_cast<std::uint64_t>(index))) / 16.0F;
  return norm ? 1.0F + noise : noise;
}

Stream Batch::gradients(const Stream& parameter) const {
  return parameter.split("gradient")
      .split(static_cast<std::uint64_t>(iteration))
      .split(static_cast<std::uint64_t>(consumed_samples))
      .split(static_cast<std::uint64_t>(loss));
}

Stream Batch::targets(const Stream& parameter) const {
  return parameter.split("target").split(static_cast<std::uint64_t>(consumed_samples));
}

float gradient(const Stream& gradients, std::int64_t index, float weight, double loss_scale) {
  const auto scale = static_cast<float>(loss_scale);
  const float noise = unit_of(gradients.at(static_cast<std::uint64_t>(index)));
  return rounded((noise * 0.75F + weight * 0.25F) * scale) / scale;
}

std::int64_t fixed_point(float square) {
  constexpr float kUnit = 1048576.0F;                       // 2^20
  constexpr float kLargest = 1048576.0F;                    // so 2^40 units
  if (!(square < kLargest)) return std::int64_t{1} << 40U;  // infinite and NaN, too
  return static_cast<std::int64_t>(square * kUnit);
}

std::int64_t loss_of(const Stream& targets, std::int64_t index, float weight) {
  const float distance = weight - unit_of(targets.at(static_cast<std::uint64_t>(index)));
  return fixed_point(distance * distance);
}

}  // namespace reprise::sim
