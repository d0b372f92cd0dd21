#pragma once
// Defines all of the job's operations on elements. Each operation is written once: the host runs it
// in a loop, a kernel runs it with one thread per element. Pointers are addresses in the
// processor's memory.

#include <cmath>
#include <cstdint>
#include <variant>

#include "core/base/execution_space.hpp"
#include "core/geometry/element_digest.hpp"
#include "core/geometry/element_map.hpp"
#include "sim/job/model/content.hpp"
#include "sim/job/model/progress.hpp"

namespace reprise::sim {

/// Different ranks hold equal copies of the same elements. A Copy identifies one of them.
struct Copy {
  std::int32_t own = 0;
  std::int32_t of = 1;

  /// True if this copy contributes this element in this iteration. The copies take turns, so each
  /// copy of an element contributes once in every `of` iterations.
  REPRISE_HD constexpr bool counts(std::int64_t index, std::int64_t iteration) const {
    return (index + iteration) % of == own;
  }
};

// --- changes of elements: independent of each other, so the order does not matter ----------------

/// Sets every element to `value`.
template <class T>
struct Fill {
  T* to = nullptr;  ///< indexed by ElementPlace::a
  T value = {};

  REPRISE_HD void operator()(const ElementPlace& at) const { to[at.a] = value; }
};

/// Start values of a parameter. Elements from `live` on, in row-major order, are padding and start
/// as zero.
struct StartValues {
  Stream stream;
  std::int64_t live = 0;
  bool norm = false;

  REPRISE_HD float of(std::int64_t global) const {
    return global < live ? initial_value(stream, global, norm) : 0.0F;
  }
};

struct StartWeights {
  StartValues values;
  std::uint16_t* weight = nullptr;  ///< indexed by ElementPlace::a

  REPRISE_HD void operator()(const ElementPlace& at) const {
    weight[at.a] = to_bf16(values.of(at.global));
  }
};

struct StartMasters {
  StartValues values;
  float* master = nullptr;  ///< indexed by ElementPlace::a

  REPRISE_HD void operator()(const ElementPlace& at) const { master[at.a] = values.of(at.global); }
};

/// Inputs of an element's gradient.
struct Gradients {
  Stream stream;
  float loss_scale = 1;
  std::int64_t live = 0;

  REPRISE_HD float of(std::int64_t global, std::uint16_t weight) const {
    return gradient(stream, global, from_bf16(weight), loss_scale);
  }
};

/// Adam's rule, with the values that are the same for all elements of a parameter. Host and kernels
/// compute the same bits.
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

struct AdamUpdate {
  Adam adam;
  Gradients gradients;
  float clip = 1;
  float* master = nullptr;  ///< indexed by ElementPlace::a, like the moments
  float* exp_avg = nullptr;
  float* exp_avg_sq = nullptr;
  std::uint16_t* weight = nullptr;  ///< indexed by ElementPlace::b

  REPRISE_HD void operator()(const ElementPlace& at) const {
    if (at.global >= gradients.live) return;
    const float g = gradients.of(at.global, weight[at.b]) * clip;
    adam.apply(master[at.a], exp_avg[at.a], exp_avg_sq[at.a], g);
    weight[at.b] = to_bf16(master[at.a]);
  }
};

/// Converts weights to masters.
struct Widen {
  const std::uint16_t* from = nullptr;  ///< indexed by ElementPlace::a, like `to`
  float* to = nullptr;

  REPRISE_HD void operator()(const ElementPlace& at) const { to[at.a] = from_bf16(from[at.a]); }
};

using ElementWork =
    std::variant<Fill<std::uint16_t>, Fill<float>, StartWeights, StartMasters, AdamUpdate, Widen>;

// --- sums over elements: integers, so the order does not matter ----------------------------------

/// Up to five sums, modulo 2^64.
struct Sums {
  static constexpr int kCount = 5;
  std::uint64_t values[kCount] = {};

  REPRISE_HD constexpr Sums& operator+=(const Sums& other) {
    for (int i = 0; i < kCount; ++i) values[i] += other.values[i];
    return *this;
  }
  std::int64_t operator[](int i) const { return static_cast<std::int64_t>(values[i]); }
};

/// Sums the loss, in units of 2^-20.
struct LossTerm {
  Stream targets;
  std::int64_t live = 0;
  Copy copy;
  std::int64_t iteration = 0;
  const std::uint16_t* weight = nullptr;  ///< indexed by ElementPlace::a

  REPRISE_HD Sums operator()(const ElementPlace& at) const {
    if (at.global >= live || !copy.counts(at.global, iteration)) return {};
    return {{static_cast<std::uint64_t>(loss_of(targets, at.global, from_bf16(weight[at.a])))}};
  }
};

/// Computes five sums. Three cover all gradients: the sum of squares, the number of infinities and
/// the number of NaNs. Two cover the gradients that this copy contributes: the sum of squares and
/// the number of zeros. Sums of squares are in units of 2^-20.
struct GradientTerm {
  Gradients gradients;
  Copy copy;
  std::int64_t iteration = 0;
  const std::uint16_t* weight = nullptr;  ///< indexed by ElementPlace::a

  REPRISE_HD Sums operator()(const ElementPlace& at) const {
    if (at.global >= gradients.live) return {};
    const float g = gradients.of(at.global, weight[at.a]);
    const auto square = static_cast<std::uint64_t>(square_of(g));
    const bool counts = copy.counts(at.global, iteration);
    const bool finite = g - g == 0;
    return {{square, counts ? square : 0, counts && g == 0 ? 1U : 0U, !finite && g == g ? 1U : 0U,
             g != g ? 1U : 0U}};
  }
};

/// Sums the content digest.
template <class Word>
struct DigestTerm {
  ElementDigest<Word> digest;  ///< indexed by ElementPlace::a

  REPRISE_HD Sums operator()(const ElementPlace& at) const { return {{digest(at.global, at.a)}}; }
};

using ElementTerm =
    std::variant<LossTerm, GradientTerm, DigestTerm<std::uint8_t>, DigestTerm<std::uint16_t>,
                 DigestTerm<std::uint32_t>, DigestTerm<std::uint64_t>, DigestTerm<WideWord>>;

// --- searches -------------------------------------------------------------------------------

/// True if a stored weight differs from its stored master rounded to bf16.
struct StaleWeight {
  const float* master = nullptr;  ///< indexed by ElementPlace::a, like `stored`
  const std::uint16_t* stored = nullptr;

  REPRISE_HD bool operator()(const ElementPlace& at) const {
    return to_bf16(master[at.a]) != stored[at.a];
  }
};

}  // namespace reprise::sim
