#include "core/trend/tensor_facts.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/hash.hpp"
#include "core/checkpoint/small_values.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/digest/witness_digest.hpp"
#include "core/geometry/dtype.hpp"
#include "core/summary/optimizer_summary.hpp"

namespace reprise {
namespace {

struct Sums {
  std::atomic<std::uint64_t> digest[2] = {0, 0};
  std::atomic<bool> zero = true;
};

bool all_zero(ByteSpan bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

/// Returns the whole number under this name in a dict, which may be a tensor of one element.
std::optional<std::int64_t> number_in(const Value& dict, std::string_view name) {
  const Value* value = dict.find(name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->as<std::int64_t>()) return *number;
  const auto* tensor = value->as<TensorValue>();
  if (tensor == nullptr || volume(tensor->shape) != 1) return std::nullopt;
  return static_cast<std::int64_t>(scalar_at(tensor->dtype, tensor->data.data()).first);
}

void add_steps_of_groups(const Value& optimizer, std::vector<std::int64_t>& steps) {
  const Value* groups = optimizer.find("param_groups");
  const auto* list = groups == nullptr ? nullptr : groups->as<List>();
  if (list == nullptr) return;
  for (const Value& group : *list) {
    if (const auto step = number_in(group, "step")) steps.push_back(*step);
  }
}

/// Takes the param groups among the objects. Trainers store them whole, or each setting as an
/// object of its own. Returns false if they are too many to be read.
bool add_groups(Checkpoint& checkpoint, ParamGroupSettings& groups) {
  constexpr std::size_t kObjectsRead = 4096;
  std::size_t read = 0;
  for (const StoredObject& object : checkpoint.catalog().objects) {
    const bool of_groups = object.key.find("param_groups") != std::string::npos;
    const bool whole =
        of_groups ? object.key.ends_with(".param_groups") : object.key == "optimizer";
    if (!whole && !(of_groups && object.key.ends_with(".lr"))) continue;
    if (read++ == kObjectsRead) return false;
    const auto value = small_object(checkpoint, object);
    if (value && !groups.add(object.key, *value)) groups.add_within(*value);
  }
  return true;
}

void add_rates(const std::vector<ParamGroups>& groups, GenerationFacts& facts) {
  for (const ParamGroups& group : groups) {
    for (const auto& [name, value] : group.settings) {
      if (name != "lr") continue;
      if (const auto* rate = value.as<double>()) facts.learning_rates.push_back(*rate);
      const auto* whole = value.as<std::int64_t>();
      if (whole != nullptr) facts.learning_rates.push_back(static_cast<double>(*whole));
    }
  }
}

void add_common(Checkpoint& checkpoint, ParamGroupSettings& groups, GenerationFacts& facts) {
  const auto common = checkpoint.common();
  if (!common || !common->item.value) return;
  const Value& state = *common->item.value;
  groups.add_within(state);
  if (const auto iteration = number_in(state, "iteration")) facts.iteration = iteration;
  const Value* optimizer = state.find("optimizer");
  if (optimizer == nullptr) return;
  add_steps_of_groups(*optimizer, facts.optimizer_steps);
  if (const Value* inner = optimizer->find("optimizer")) {
    add_steps_of_groups(*inner, facts.optimizer_steps);
  }
}

/// Reads a counter of one element.
std::optional<double> counter_of(Checkpoint& checkpoint, const StoredTensor& tensor,
                                 Device& device) {
  if (volume(logical_shape(tensor)) != 1) return std::nullopt;
  Bytes staging(4096);
  Bytes element(size_of(tensor.dtype));
  TensorReader({checkpoint, device, staging}, tensor)
      .read(Box::whole(logical_shape(tensor)), element.data());
  return scalar_at(tensor.dtype, element.data()).first;
}

}  // namespace

void add_facts(Checkpoint& checkpoint, const std::string& before,
               const std::function<bool(const std::string&)>& wanted, const SurveyPorts& ports,
               GenerationFacts& facts) {
  checkpoint.require_sound();
  std::vector<const StoredTensor*> tensors;
  std::vector<SurveyItem> items;
  std::vector<std::size_t> of_item;
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    if (!wanted(before + tensor.key)) continue;
    tensors.push_back(&tensor);
    add_chunks(tensor, items);
    of_item.resize(items.size(), tensors.size() - 1);
  }
  std::vector<Sums> sums(tensors.size());
  Findings damage = survey(checkpoint, items, ports, [&](std::size_t i) -> TakeElements {
    const StoredTensor& tensor = *items[i].tensor;
    const std::uint64_t key = witness_key(name_of(tensor), name_of(tensor.dtype));
    return [key, &tensor, &sum = sums[of_item[i]]](const Box& box, ByteSpan elements) {
      const Dims& shape = logical_shape(tensor);
      sum.digest[0] += witness_digest(key, tensor.dtype, shape, box, elements);
      sum.digest[1] += witness_digest(mix64(key), tensor.dtype, shape, box, elements);
      if (sum.zero && !all_zero(elements)) sum.zero = false;
    };
  });
  for (Finding& finding : damage) {
    if (finding.severity == Severity::kError) facts.damage.push_back(std::move(finding));
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const StoredTensor& tensor = *tensors[t];
    TensorFacts one{
        .role = role_of(name_of(tensor), logical_shape(tensor)),
        .digest = {sums[t].digest[0], sums[t].digest[1]},
        .bytes = static_cast<std::uint64_t>(volume(logical_shape(tensor))) * size_of(tensor.dtype),
        .dtype = tensor.dtype,
        .zero = sums[t].zero};
    if (one.role.kind == ParameterRole::Kind::kStep) {
      one.number = counter_of(checkpoint, tensor, ports.device);
      if (one.role.parameter.empty() && one.number && !facts.iteration &&
          *one.number == std::floor(*one.number)) {
        facts.iteration = static_cast<std::int64_t>(*one.number);
      }
    }
    facts.tensors[before + tensor.key] = std::move(one);
  }
  ParamGroupSettings groups;
  add_common(checkpoint, groups, facts);
  if (add_groups(checkpoint, groups)) add_rates(groups.take(), facts);
}

}  // namespace reprise
