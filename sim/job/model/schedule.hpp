#pragma once
// Computes learning rate and weight decay from the number of consumed samples, like Megatron's
// OptimizerParamScheduler. The rate decays after a linear warm-up; the weight decay rises from
// start_wd to end_wd. Uses no libm, so every machine gets the same bits.

#include <cstdint>
#include <string_view>

namespace reprise::sim {

/// Returns the cosine of an angle in [0, pi], by a Taylor series about pi/2; the error is below
/// 1e-15.
double cosine(double angle);
/// Returns base^exponent by repeated multiplication; `exponent` must not be negative.
double power(double base, std::int64_t exponent);

enum class RateDecay : std::uint8_t { kCosine, kLinear, kConstant };
/// Returns "cosine", "linear" or "constant".
std::string_view name_of(RateDecay decay);
/// Returns the decay with that name. Throws UNSUPPORTED, with the known names, if there is none.
RateDecay rate_decay_named(std::string_view name);

enum class WeightDecayRise : std::uint8_t { kLinear, kConstant };
/// Returns "linear" or "constant".
std::string_view name_of(WeightDecayRise rise);
/// Returns the rise with that name. Throws UNSUPPORTED, with the known names, if there is none.
WeightDecayRise weight_decay_rise_named(std::string_view name);

struct Schedule {
  double max_lr = 1e-2;
  double min_lr = 1e-4;
  std::int64_t lr_warmup_steps = 16;  ///< in samples
  std::int64_t lr_decay_steps = 160;  ///< in samples
  RateDecay lr_decay_style = RateDecay::kCosine;
  double start_wd = 0.01;
  double end_wd = 0.1;
  std::int64_t wd_incr_steps = 160;  ///< in samples
  WeightDecayRise wd_incr_style = WeightDecayRise::kLinear;
  std::int64_t num_steps = 0;  ///< number of samples so far

  double lr() const;
  double weight_decay() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace reprise::sim
