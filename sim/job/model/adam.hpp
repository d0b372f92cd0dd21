#pragma once
// Updates one element by Adam's rule. Host and kernels compute the same bits.

#include <cmath>

#include "core/base/execution_space.hpp"
#include "sim/job/model/progress.hpp"

namespace reprise::sim {

/// Values that are the same for all elements of a parameter.
struct Adam {
  float lr, weight_decay, beta1, beta2, eps, correction1, correction2;

  explicit Adam(const GroupSettings& group)
      : lr(static_cast<float>(group.lr)),
        weight_decay(static_cast<float>(group.weight_decay)),
        beta1(static_cast<float>(group.beta1)),
        beta2(static_cast<float>(group.beta2)),
        eps(static_cast<float>(group.eps)),
        correction1(static_cast<float>(1 - power(group.beta1, group.step + 1))),
        correction2(static_cast<float>(1 - power(group.beta2, group.step + 1))) {}

  /// Updates one element. `m` and `v` are the moments, `g` is the gradient. The square root is
  /// rounded correctly on host and GPU.
  REPRISE_HD void apply(float& master, float& m, float& v, float g) const {
    m = beta1 * m + (1.0F - beta1) * g;
    v = beta2 * v + (1.0F - beta2) * (g * g);
    const float direction = (m / correction1) / (std::sqrt(v / correction2) + eps);
    master = master - lr * (direction + weight_decay * master);
  }
};

}  // namespace reprise::sim
