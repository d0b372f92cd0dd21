#include "sim/job/model/schedule.hpp"

#include <algorithm>

#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr double kPi = 3.14159265358979323846;

/// Returns the progress of the decay: 0 at the end of the warm-up, 1 from lr_decay_steps on.
double decayed(const Schedule& schedule) {
  if (schedule.num_steps >= schedule.lr_decay_steps) return 1;
  return static_cast<double>(schedule.num_steps - schedule.lr_warmup_steps) /
         static_cast<double>(schedule.lr_decay_steps - schedule.lr_warmup_steps);
}

}  // namespace

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
  if (lr_decay_style == "constant") return max_lr;
  if (lr_decay_style == "linear") return min_lr + range * (1 - decayed(*this));
  if (lr_decay_style == "cosine") {
    return min_lr + range * ((cosine(kPi * decayed(*this)) + 1) / 2);
  }
  throw Error(Code::kUnsupported,
              "learning rate decay '" + lr_decay_style + "'; known: cosine, linear, constant");
}

double Schedule::weight_decay() const {
  if (wd_incr_style == "constant") return end_wd;
  if (wd_incr_style != "linear") {
    throw Error(Code::kUnsupported,
                "weight decay style '" + wd_incr_style + "'; known: linear, constant");
  }
  const double passed =
      static_cast<double>(std::min(num_steps, wd_incr_steps)) / static_cast<double>(wd_incr_steps);
  return start_wd + (end_wd - start_wd) * passed;
}

}  // namespace reprise::sim
