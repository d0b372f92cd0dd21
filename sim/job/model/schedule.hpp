#pragma once
// Learning rate and weight decay as functions of consumed samples, like Megatron's
// OptimizerParamScheduler: linear warm-up, then a decay; weight decay from start to end. Uses no
// libm, so every machine gets the same bits.

#include <cstdint>
#include <string>

namespace reprise::sim {

/// Returns the cosine of an angle in [0, pi], by a Taylor series about pi/2; the error is below
/// 1e-15.
double cosine(double angle);
/// Returns base^exponent by repeated multiplication; `exponent` must not be negative.
double power(double base, std::int64_t exponent);

struct Schedule {
  double max_lr = 1e-2;
  double min_lr = 1e-4;
  std::int64_t lr_warmup_steps = 16;      ///< in samples
  std::int64_t lr_decay_steps = 160;      ///< in samples
  std::string lr_decay_style = "cosine";  ///< "cosine", "linear" or "constant"
  double start_wd = 0.01;
  double end_wd = 0.1;
  std::int64_t wd_incr_steps = 160;      ///< in samples
  std::string wd_incr_style = "linear";  ///< "linear" or "constant"
  std::int64_t num_steps = 0;            ///< number of samples so far

  double lr() const;
  double weight_decay() const;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

}  // namespace reprise::sim
