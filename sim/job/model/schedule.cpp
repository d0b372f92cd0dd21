#include "sim/job/model/schedule.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "core/base/check.hpp"
#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 3> kRateDecays = {"cosine", "linear", "constant"};
constexpr std::array<std::string_view, 2> kWeightDecayRises = {"linear", "constant"};

constexpr double kPi = 3.14159265358979323846;

/// Returns the progress of the decay: 0 at the end of the warm-up, 1 from lr_decay_steps on.
double decayed(const Schedule& schedule) {
  if (schedule.num_steps >= schedule.lr_decay_steps) return 1;
  return static_cast<double>(schedule.num_steps - schedule.lr_warmup_steps) /
         static_cast<double>(schedule.lr_decay_steps - schedule.lr_warmup_steps);
}

/// Returns the index of the name in the list. Throws UNSUPPORTED with the list if the name is not
/// in it.
std::size_t place_of(std::string_view name, std::span<const std::string_view> names,
                     const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  throw Error(Code::kUnsupported,
              what + " '" + std::string(name) + "'; known: " + join(names, ", "));
}

}  // namespace

std::string_view name_of(RateDecay decay) {
  return kRateDecays.at(static_cast<std::size_t>(decay));
}

RateDecay rate_decay_named(std::string_view name) {
  return static_cast<RateDecay>(place_of(name, kRateDecays, "learning rate decay"));
}

std::string_view name_of(WeightDecayRise rise) {
  return kWeightDecayRises.at(static_cast<std::size_t>(rise));
}

WeightDecayRise weight_decay_rise_named(std::string_view name) {
  return static_cast<WeightDecayRise>(place_of(name, kWeightDecayRises, "weight decay style"));
}

double cosine(double angle) {  // uses cos(x) = -sin(x - pi/2)
  const double x = angle - kPi / 2;
  double term = x;
  double sum = x;
  for (int k = 1; k <= 12; ++k) {
    term = -term * x * x / static_cast<double>(2 * k * (2 * k + 1));
    sum = sum + term;
  }
  return -sum;
}

double power(double base, std::int64_t exponent) {
  double result = 1;
  for (std::int64_t i = 0; i < exponent; ++i) result = result * base;
  return result;
}

double Schedule::lr() const {
  if (num_steps <= lr_warmup_steps && lr_warmup_steps > 0) {
    return max_lr * static_cast<double>(num_steps) / static_cast<double>(lr_warmup_steps);
  }
  const double range = max_lr - min_lr;
  switch (lr_decay_style) {
    case RateDecay::kConstant:
      return max_lr;
    case RateDecay::kLinear:
      return min_lr + range * (1 - decayed(*this));
    case RateDecay::kCosine:
      return min_lr + range * ((cosine(kPi * decayed(*this)) + 1) / 2);
  }
  CHECK(false, static_cast<int>(lr_decay_style));
  return 0;
}

double Schedule::weight_decay() const {
  if (wd_incr_style == WeightDecayRise::kConstant) return end_wd;
  const double passed =
      static_cast<double>(std::min(num_steps, wd_incr_steps)) / static_cast<double>(wd_incr_steps);
  return start_wd + (end_wd - start_wd) * passed;
}

}  // namespace reprise::sim
