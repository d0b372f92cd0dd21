#pragma once
// What an element's bits follow from: key, global index, step, data cursor, seed. No layout enters,
// so any element can be made by itself. Exact arithmetic only: + - x / and square roots.

#include <cstdint>
#include <string_view>

#include "core/base/random.hpp"

namespace reprise::sim {

/// Rounds to nearest, ties to even; a NaN stays a NaN.
std::uint16_t to_bf16(float value);
float from_bf16(std::uint16_t bits);

/// Uniform on the 2^24 multiples of 2^-23 in [-1, 1).
constexpr float unit_of(std::uint64_t random) {
  return static_cast<float>(static_cast<std::int32_t>(random >> 40U) - (1 << 23)) / 8388608.0F;
}

/// The parameters' streams of one job.
Stream parameter_stream(std::uint64_t seed, std::string_view key);

/// Start value of the element with the given row-major index in the global tensor: within 1/16 of
/// 1 for norms, of 0 otherwise.
float initial_value(const Stream& parameter, std::int64_t index, bool norm);

/// What the batch of one step does to a parameter. `loss` is the step's loss over the whole model:
/// a wrong element anywhere changes every gradient.
struct Batch {
  std::int64_t iteration = 0;
  std::int64_t consumed_samples = 0;
  std::int64_t loss = 0;

  Stream gradients(const Stream& parameter) const;
  Stream targets(const Stream& parameter) const;
};

/// Gradient of one element, as it comes out of a backward pass under a loss scale: rounded to
/// multiples of 1 / loss_scale, so the scale enters.
float gradient(const Stream& gradients, std::int64_t index, float weight, double loss_scale);

/// A square in units of 2^-20, so that sums are the same in any order; saturates, a NaN does, too.
std::int64_t fixed_point(float square);

/// One element's part of the loss, in units of 2^-20; saturates.
std::int64_t loss_of(const Stream& targets, std::int64_t index, float weight);

}  // namespace reprise::sim
