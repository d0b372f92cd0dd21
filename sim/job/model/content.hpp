#pragma once
// Computes an element's bits from key, global index, step, data cursor and seed. The bits do not
// depend on the layout, so any element can be computed on its own. Uses only basic arithmetic and
// square roots, which are rounded in the same way everywhere. Runs on the host and in kernels.

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/base/execution_space.hpp"
#include "core/base/random.hpp"

namespace reprise::sim {

/// Rounds to nearest, ties to even. A NaN stays a NaN.
REPRISE_HD constexpr std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16U | 0x40U);
  const std::uint32_t odd = bits >> 16U & 1U;
  return static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U);
}
REPRISE_HD constexpr float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// Maps random bits uniformly to the 2^24 multiples of 2^-23 in [-1, 1).
REPRISE_HD constexpr float unit_of(std::uint64_t random) {
  return static_cast<float>(static_cast<std::int32_t>(random >> 40U) - (1 << 23)) / 8388608.0F;
}

/// Returns a parameter's random stream in the job with this seed.
Stream parameter_stream(std::uint64_t seed, std::string_view key);

/// Returns the start value of the element with this row-major index in the global tensor: within
/// 1/16 of 1 for norms, and within 1/16 of 0 otherwise.
REPRISE_HD constexpr float initial_value(const Stream& parameter, std::int64_t index, bool norm) {
  const float noise = unit_of(parameter.at(static_cast<std::uint64_t>(index))) / 16.0F;
  return norm ? 1.0F + noise : noise;
}

/// The effect of one step's batch on a parameter. `loss` is the step's loss over the whole model,
/// so one wrong element anywhere changes every gradient.
struct Batch {
  std::int64_t iteration = 0;
  std::int64_t consumed_samples = 0;
  std::int64_t loss = 0;

  Stream gradients(const Stream& parameter) const;
  Stream targets(const Stream& parameter) const;
};

/// Returns the nearest integer; halves are rounded away from zero.
REPRISE_HD constexpr float rounded(float value) {
  constexpr float kExactIntegers = 8388608.0F;  // 2^23: every larger float is an integer
  if (!(value < kExactIntegers && value > -kExactIntegers)) return value;
  return static_cast<float>(static_cast<std::int32_t>(value + (value < 0 ? -0.5F : 0.5F)));
}

/// Returns the gradient of one element. As in a backward pass under a loss scale, it is rounded to
/// a multiple of 1 / loss_scale, so it depends on the scale.
REPRISE_HD constexpr float gradient(const Stream& gradients, std::int64_t index, float weight,
                                    float loss_scale) {
  const float noise = unit_of(gradients.at(static_cast<std::uint64_t>(index)));
  return rounded((noise * 0.75F + weight * 0.25F) * loss_scale) / loss_scale;
}

/// Returns the square in units of 2^-20. Squares that are too large, infinities and NaNs give 2^40.
REPRISE_HD constexpr std::int64_t square_of(float value) {
  constexpr float kLargest = 1048576.0F;
  const float square = value * value;
  if (!(square < kLargest)) return std::int64_t{1} << 40U;
  return static_cast<std::int64_t>(square * 1048576.0F);
}

/// Returns one element's part of the loss, in units of 2^-20. The result saturates.
REPRISE_HD constexpr std::int64_t loss_of(const Stream& targets, std::int64_t index, float weight) {
  return square_of(weight - unit_of(targets.at(static_cast<std::uint64_t>(index))));
}

}  // namespace reprise::sim
