#include "core/verify/verify_signs.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/print.hpp"
#include "core/megatron/expert_key.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kNamed = 3;
constexpr std::int64_t kExpertsMax = 65536;  // a claimed size costs no more than this

std::optional<std::int64_t> integer_at(const Value* value, std::string_view name) {
  const Value* found = value == nullptr ? nullptr : value->find(name);
  const auto* number = found == nullptr ? nullptr : found->as<std::int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// What is stored of the experts of one layer.
struct Experts {
  std::set<std::int64_t> numbers;
  std::optional<std::int64_t> routed;  ///< number of experts that the router chooses among
  std::string router;                  ///< its key
};

/// The experts of each layer, by the beginning of its keys.
std::map<std::string, Experts> experts_of(const Catalog& catalog) {
  std::map<std::string, Experts> layers;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::vector<std::string_view> parts = parts_of_key(tensor.key);
    // State of the optimizer has other keys than the weights, and no router of its own.
    if (std::ranges::find(parts, "optimizer"sv) != parts.end()) continue;
    if (const auto expert = parse_expert_key(tensor.key)) {
      if (expert->number) layers[expert->layer].numbers.insert(*expert->number);
      continue;
    }
    const Dims& shape = logical_shape(tensor);
    if (parts.size() < 2 || parts.back() != "weight" || shape.size() != 2) continue;
    if (const auto name = parts[parts.size() - 2]; name != "router" && name != "gate") continue;
    std::string layer;
    for (std::size_t i = 0; i + 2 < parts.size(); ++i) layer += std::string(parts[i]) + '.';
    layers[layer].routed = shape[0];
    layers[layer].router = tensor.key;
  }
  return layers;
}

}  // namespace

Findings check_random_grid(const Value& common, const Catalog& catalog) {
  const Value* args = common.find("args");
  const auto pp = integer_at(args, "pipeline_model_parallel_size");
  const auto tp = integer_at(args, "tensor_model_parallel_size");
  if (!pp || !tp) return {};
  for (const StoredObject& object : catalog.objects) {
    const auto parsed = parse_object_key(object.key);
    if (!parsed || parsed->key != "rng_state" || parsed->grid.size() < 2) continue;
    const Dims& grid = parsed->grid;
    const auto differs = [](std::int64_t extent, std::int64_t size) {
      return extent >= 0 && extent != size;
    };
    if (!differs(grid[0], *pp) && !differs(grid[1], *tp)) return {};
    return {{Severity::kWarning, Code::kLayoutMismatch,
             "the random states form a grid of " + to_string(grid) +
                 ", but args says pipeline_model_parallel_size " + std::to_string(*pp) +
                 ", tensor_model_parallel_size " + std::to_string(*tp) +
                 ", in this order: a job of these sizes would not find its random states",
             parsed->key}};
  }
  return {};
}

Findings check_iteration(const Value& common, std::optional<Step> step) {
  const auto iteration = integer_at(&common, "iteration");
  if (!iteration || !step || *iteration == step->value) return {};
  return {{Severity::kWarning, Code::kCommonStateDiverges,
           "the common state is of iteration " + std::to_string(*iteration) +
               ", but the directory's name says " + std::to_string(step->value),
           "iteration"}};
}

Findings check_moments(const Catalog& catalog) {
  constexpr std::array kMoments = {"exp_avg"sv, "exp_avg_sq"sv};
  std::array<std::set<std::string>, kMoments.size()> having;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t m = 0; m < kMoments.size(); ++m) {
      if (auto rest = without_part(tensor.key, kMoments.at(m)))
        having.at(m).insert(std::move(*rest));
    }
  }
  const bool both = std::ranges::any_of(
      having[0], [&having](const std::string& name) { return having[1].contains(name); });
  if (!both) return {};
  Findings findings;
  for (std::size_t m = 0; m < kMoments.size(); ++m) {
    std::vector<std::string> lacking;
    std::ranges::set_difference(having.at(m), having.at(1 - m), std::back_inserter(lacking));
    if (lacking.empty()) continue;
    findings.push_back({Severity::kWarning, Code::kNotStored,
                        "the optimizer stores " + std::string(kMoments.at(m)) + " and not " +
                            std::string(kMoments.at(1 - m)) + " of " + join_first(lacking, kNamed) +
                            ", and both of others"});
  }
  return findings;
}

Findings check_experts(const Catalog& catalog) {
  Findings findings;
  for (const auto& [layer, experts] : experts_of(catalog)) {
    if (!experts.routed || experts.numbers.empty()) continue;
    std::vector<std::string> missing;
    const std::int64_t most = std::min<std::int64_t>(*experts.routed, kExpertsMax);
    for (std::int64_t i = 0; i < most; ++i) {
      if (!experts.numbers.contains(i)) missing.push_back(std::to_string(i));
    }
    if (missing.empty()) continue;
    findings.push_back({Severity::kWarning, Code::kNotStored,
                        "the router chooses among " +
                            with_commas(static_cast<std::uint64_t>(*experts.routed)) +
                            " experts, but " + with_commas(experts.numbers.size()) +
                            " are stored; missing: " + join_first(missing, kNamed),
                        experts.router});
  }
  return findings;
}

}  // namespace reprise
