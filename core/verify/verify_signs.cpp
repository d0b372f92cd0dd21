#include "core/verify/verify_signs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/print.hpp"
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

std::vector<std::string_view> parts_of(std::string_view key) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto dot = key.find('.');
    parts.push_back(key.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    key.remove_prefix(dot + 1);
  }
}

/// If a part of the key is `moment`, returns the key without it.
std::optional<std::string> without(std::string_view key, std::string_view moment) {
  std::string rest;
  bool found = false;
  for (const std::string_view part : parts_of(key)) {
    if (!found && part == moment) {
      found = true;
    } else {
      rest += (rest.empty() ? "" : ".") + std::string(part);
    }
  }
  return found ? std::optional(rest) : std::nullopt;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

/// Returns the number of the expert that a key names, either in the part after `experts` or, as
/// grouped layers do, in the last one: `linear_fc1.weight3`, `linear_fc1.weight3_w`.
std::optional<std::int64_t> expert_in(const std::vector<std::string_view>& parts, std::size_t i) {
  if (const auto number = number_in(parts[i])) return number;
  std::string_view last = parts.back();
  for (const std::string_view name : {"weight"sv, "bias"sv}) {
    if (!last.starts_with(name)) continue;
    last.remove_prefix(name.size());
    return number_in(last.substr(0, last.find('_')));
  }
  return std::nullopt;
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
    const std::vector<std::string_view> parts = parts_of(tensor.key);
    // State of the optimizer has other keys than the weights, and no router of its own.
    if (std::ranges::find(parts, "optimizer"sv) != parts.end()) continue;
    std::string layer;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      if (parts[i] == "experts") {
        for (++i; i + 1 < parts.size() && (parts[i] == "experts" || parts[i] == "local_experts");) {
          ++i;
        }
        if (const auto number = expert_in(parts, i)) layers[layer].numbers.insert(*number);
        break;
      }
      const Dims& shape = logical_shape(tensor);
      const bool router = parts[i] == "router" || parts[i] == "gate";
      if (router && i + 2 == parts.size() && parts[i + 1] == "weight" && shape.size() == 2) {
        layers[layer].routed = shape[0];
        layers[layer].router = tensor.key;
        break;
      }
      layer += std::string(parts[i]) + '.';
    }
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
                 ", and args says pipeline_model_parallel_size " + std::to_string(*pp) +
                 ", tensor_model_parallel_size " + std::to_string(*tp) +
                 ", in this order: a job of these sizes does not find its random states",
             parsed->key}};
  }
  return {};
}

Findings check_iteration(const Value& common, std::optional<Step> step) {
  const auto iteration = integer_at(&common, "iteration");
  if (!iteration || !step || *iteration == step->value) return {};
  return {{Severity::kWarning, Code::kCommonStateDiverges,
           "the common state is of iteration " + std::to_string(*iteration) +
               ", and the directory's name says " + std::to_string(step->value),
           "iteration"}};
}

Findings check_moments(const Catalog& catalog) {
  constexpr std::array kMoments = {"exp_avg"sv, "exp_avg_sq"sv};
  std::array<std::set<std::string>, kMoments.size()> having;
  for (const StoredTensor& tensor : catalog.tensors) {
    for (std::size_t m = 0; m < kMoments.size(); ++m) {
      if (auto rest = without(tensor.key, kMoments.at(m))) having.at(m).insert(std::move(*rest));
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
                            " experts, and " + with_commas(experts.numbers.size()) +
                            " are stored; missing are " + join_first(missing, kNamed),
                        experts.router});
  }
  return findings;
}

}  // namespace reprise
