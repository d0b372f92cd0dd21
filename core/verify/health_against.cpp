#include "core/verify/health_against.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/print.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/geometry/blocks.hpp"
#include "core/geometry/dtype.hpp"
#include "core/geometry/element_values.hpp"
#include "core/megatron/parameter_role.hpp"

namespace reprise {
namespace {

constexpr std::size_t kComparedBytes = std::size_t{1} << 20U;

ParameterRole::Kind kind_of(const StoredTensor& tensor) {
  return role_of(name_of(tensor), logical_shape(tensor)).kind;
}

/// Counts that do not depend on the order in which elements were added. Equal elements have equal
/// ones.
bool may_be_same(const ElementStats& a, const ElementStats& b) {
  return a.numbers == b.numbers && a.nan == b.nan && a.infinite == b.infinite && a.zero == b.zero &&
         a.denormal == b.denormal && a.least == b.least && a.greatest == b.greatest;
}

/// A tensor here, and in the older checkpoint.
struct Both {
  const StoredTensor* now = nullptr;
  const StoredTensor* then = nullptr;
  ElementStats stats_then = {};
};

bool same_elements(Checkpoint& checkpoint, Checkpoint& older, const Both& both, Device& device) {
  Bytes staging(kComparedBytes);
  Bytes a(kComparedBytes);
  Bytes b(kComparedBytes);
  TensorReader now({checkpoint, device, staging}, *both.now);
  TensorReader then({older, device, staging}, *both.then);
  const std::size_t width = size_of(both.now->dtype);
  bool same = true;
  for_each_block(logical_shape(*both.now), static_cast<std::int64_t>(kComparedBytes / width),
                 [&](const Box& block) {
                   if (!same) return;
                   now.read(block, a.data());
                   then.read(block, b.data());
                   const auto bytes = static_cast<std::size_t>(block.elements()) * width;
                   same = std::memcmp(a.data(), b.data(), bytes) == 0;
                 });
  return same;
}

std::vector<Both> pairs_of(const Checkpoint& checkpoint, const Checkpoint& older,
                           HealthAgainst& result) {
  std::vector<Both> pairs;
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    if (!is_float_like(tensor.dtype) || volume(logical_shape(tensor)) == 0) continue;
    if (is_of_bucket(name_of(tensor))) continue;
    const StoredTensor* then = older.catalog().tensor(tensor.key);
    if (then != nullptr && then->dtype == tensor.dtype &&
        all_extents(*then) == all_extents(tensor)) {
      pairs.push_back({&tensor, then});
    } else {
      ++result.others;
    }
  }
  return pairs;
}

/// Returns the damage of what was read.
Findings measure(std::vector<Both>& pairs, Checkpoint& older, const SurveyPorts& ports) {
  std::vector<SurveyItem> items;
  std::vector<std::size_t> of_item;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    add_chunks(*pairs[p].then, items);
    of_item.resize(items.size(), p);
  }
  std::vector<ElementStats> stats(items.size());
  Findings damage = survey(older, items, ports, [&](std::size_t i) -> TakeElements {
    return [&one = stats[i], dtype = items[i].tensor->dtype](
               const Box& /*box*/, ByteSpan elements) { one.add(dtype, elements); };
  });
  for (std::size_t i = 0; i < items.size(); ++i) pairs[of_item[i]].stats_then.add(stats[i]);
  return damage;
}

/// Keys of weights that should move: those with moments. If there are no moments, one of all must.
struct MovingWeights {
  std::vector<std::string> keys;
  bool have_moments = false;
};
MovingWeights moving_weights(const std::vector<Both>& pairs) {
  std::vector<std::string> keys;
  for (const Both& both : pairs) {
    if (kind_of(*both.now) != ParameterRole::Kind::kOther) keys.push_back(both.now->key);
  }
  const auto parameters = parameters_of(keys);
  const bool any_moments = std::ranges::any_of(
      parameters, [](const auto& named) { return !named.second.moments.empty(); });
  MovingWeights moving{.keys = {}, .have_moments = any_moments};
  for (const auto& [key, own] : parameters) {
    if (!any_moments || !own.moments.empty()) moving.keys.push_back(key);
  }
  return moving;
}

}  // namespace

Findings judge_against(const StoredTensor& tensor, const ElementStats& now,
                       const ElementStats& then, const HealthLimits& limits) {
  Findings findings;
  const auto tell = [&](Severity severity, const std::string& message) {
    findings.push_back({severity, Code::kLoadRejected, message, tensor.key});
  };
  const auto undefined = [](const ElementStats& stats) { return stats.nan + stats.infinite; };
  const bool beyond = now.nan > limits.nan || now.infinite > limits.infinite;
  if (beyond && undefined(then) == 0) {
    tell(Severity::kError, "all numbers of the older checkpoint were finite, and " +
                               with_commas(undefined(now)) + " are not any more");
  }
  const ParameterRole::Kind kind = kind_of(tensor);
  const bool weight = kind == ParameterRole::Kind::kWeight;
  const bool judged = weight || kind == ParameterRole::Kind::kMoment;
  const bool was_zero = then.constant() && then.least == 0;
  const std::string all =
      now.numbers == 1 ? "its only number" : "all " + counted(now.numbers, "number");
  if (judged && now.constant() && !then.constant() && now.numbers > 1 &&
      (weight || now.least == 0)) {
    tell(weight ? Severity::kError : Severity::kWarning,
         all + " became " + (now.least == 0 ? "zero" : "the same"));
  } else if (weight && now.constant() && now.least == 0 && !was_zero) {
    tell(Severity::kError, all + " became zero");
  }
  const auto grew = [](double after, double before, const std::optional<double>& limit) {
    return limit && before > 0 && after > before * *limit;
  };
  if (grew(now.absolute(), then.absolute(), limits.absolute_growth)) {
    tell(Severity::kError, "the largest absolute value grew from " + number_text(then.absolute()) +
                               " to " + number_text(now.absolute()));
  }
  if (grew(now.norm(), then.norm(), limits.norm_growth)) {
    tell(Severity::kError,
         "the norm grew from " + number_text(then.norm()) + " to " + number_text(now.norm()));
  }
  return findings;
}

HealthAgainst health_against(Checkpoint& checkpoint, const StatsByKey& stats, Checkpoint& older,
                             const SurveyPorts& ports, const HealthLimits& limits) {
  HealthAgainst result;
  std::vector<Both> pairs = pairs_of(checkpoint, older, result);
  for (Finding& finding : measure(pairs, older, ports)) {
    finding.message = "the older checkpoint is damaged: " + finding.message;
    result.findings.push_back(std::move(finding));
  }
  const MovingWeights moving = moving_weights(pairs);
  std::vector<std::string> unmoved;
  for (const Both& both : pairs) {
    const auto now = stats.find(both.now->key);
    if (now == stats.end()) continue;  // it can't be read, which is told already
    ++result.compared;
    for (Finding& finding : judge_against(*both.now, now->second, both.stats_then, limits)) {
      result.findings.push_back(std::move(finding));
    }
    const bool should_move = std::ranges::binary_search(moving.keys, both.now->key);
    if (should_move && may_be_same(now->second, both.stats_then) &&
        same_elements(checkpoint, older, both, ports.device)) {
      unmoved.push_back(both.now->key);
    }
  }
  if (!unmoved.empty() && unmoved.size() == moving.keys.size()) {
    result.findings.push_back({Severity::kWarning, Code::kLoadRejected,
                               unmoved.size() == 1
                                   ? "the only weight is the same as in the older checkpoint"
                                   : "none of " + with_commas(unmoved.size()) +
                                         " weights differs from the older checkpoint"});
  } else if (moving.have_moments) {
    for (const std::string& key : unmoved) {
      result.findings.push_back({Severity::kWarning, Code::kLoadRejected,
                                 "the weight is the same as in the older checkpoint", key});
    }
  }
  return result;
}

}  // namespace reprise
