#include "core/summary/checkpoint_summary.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "core/base/natural_order.hpp"
#include "core/checkpoint/small_values.hpp"
#include "core/format/step_names.hpp"
#include "core/megatron/expert_key.hpp"
#include "core/megatron/layout_sizes.hpp"
#include "core/megatron/modules.hpp"
#include "core/state/state_dict.hpp"

namespace reprise {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kObjectsRead = 256;
constexpr std::size_t kTensorsRead = 16;
constexpr std::size_t kTextMax = 200;
constexpr int kDepthOfValues = 2;

std::optional<std::int64_t> integer_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

bool is_scalar(const Value& value) {
  const auto* text = value.as<std::string>();
  return value.as<bool>() != nullptr || value.as<std::int64_t>() != nullptr ||
         value.as<double>() != nullptr || (text != nullptr && text->size() <= kTextMax);
}

/// True for keys of the number of steps that a job has done.
bool counts_steps(std::string_view key) {
  constexpr std::array kNames{"iteration"sv, "step"sv, "global_step"sv};
  const auto parts = parts_of_key(key);
  return parts.size() <= 3 && !is_of_optimizer(key) &&
         std::ranges::find(kNames, parts.back()) != kNames.end();
}

/// Returns the number N of `__N_0.distcp`.
std::optional<std::int64_t> writer_of(std::string_view file) {
  file.remove_prefix(file.rfind('/') == std::string_view::npos ? 0 : file.rfind('/') + 1);
  if (!file.starts_with("__") || !file.ends_with(".distcp")) return std::nullopt;
  file.remove_prefix(2);
  return integer_of(file.substr(0, file.find('_')));
}

class Summarizer {
 public:
  explicit Summarizer(Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  CheckpointSummary run(const Value* common) {
    const Catalog& catalog = checkpoint_.catalog();
    summary_.amounts = amounts_of(catalog);
    summary_.optimizer = optimizer_in(catalog);
    const std::string path = checkpoint_.location().directory;
    auto step = checkpoint_.location().step;
    if (!step) step = step_in_any_name(path.substr(path.rfind('/') + 1));
    if (step) summary_.iteration.of_name = step->value;
    if (common != nullptr) read_common(*common);
    read_objects();
    read_tensors();
    std::set<std::int64_t> writers;
    for (const std::string& file : catalog.files) {
      if (const auto writer = writer_of(file)) writers.insert(*writer);
    }
    summary_.writers = writers.size();
    summary_.optimizer.groups = groups_.take();
    std::ranges::stable_sort(summary_.values, [](const auto& a, const auto& b) {
      return in_natural_order(a.first, b.first);
    });
    return std::move(summary_);
  }

 private:
  void read_common(const Value& common) {
    if (const Value* args = common.find("args")) {
      for (const LayoutSize& size : kLayoutSizes) {
        const Value* found = args->find(size.argument);
        const auto* number = found == nullptr ? nullptr : found->as<std::int64_t>();
        if (number != nullptr) summary_.layout.emplace_back(size.name, *number);
      }
      const Value* name = args->find("optimizer");
      if (name != nullptr && name->as<std::string>() != nullptr) {
        summary_.optimizer_argument = *name->as<std::string>();
      }
    }
    groups_.add_within(common);
    add_values("", common, 0);
  }

  void add_values(const std::string& name, const Value& value, int depth) {
    if (is_scalar(value)) return add_value(name, value);
    const auto* dict = value.as<Dict>();
    if (dict == nullptr || depth == kDepthOfValues) return;
    for (const auto& [key, part] : *dict) {
      const auto* word = key.as<std::string>();
      if (word != nullptr && *word != "param_groups") {
        add_values(name.empty() ? *word : name + "." + *word, part, depth + 1);
      }
    }
  }

  void add_value(const std::string& key, const Value& value) {
    const auto* number = value.as<std::int64_t>();
    if (number != nullptr && !summary_.iteration.of_state && counts_steps(key)) {
      summary_.iteration.of_state = *number;
      summary_.iteration.state_key = key;
    }
    summary_.values.emplace_back(key, value);
  }

  void read_objects() {
    std::size_t read = 0;
    for (const StoredObject& object : checkpoint_.catalog().objects) {
      const auto parsed = parse_object_key(object.key);
      if (parsed && parsed->key == "rng_state" && parsed->grid.size() == 2) {
        summary_.random_grid = describe_rng_grid(parsed->grid);
      }
      // Each shard of an optimizer's object has the same param groups.
      const bool first = !parsed || std::ranges::all_of(parsed->coordinate,
                                                        [](std::int64_t at) { return at == 0; });
      if (!first || (parsed && !is_of_optimizer(parsed->key)) ||
          object.range.size > kSmallObjectBytes) {
        continue;
      }
      if (read++ >= kObjectsRead) {
        ++summary_.not_read;
        continue;
      }
      const auto value = small_object(checkpoint_, object);
      if (value && !groups_.add(object.key, *value)) take(object.key, *value);
    }
  }

  void take(const std::string& key, const Value& value) {
    groups_.add_within(value);
    if (is_scalar(value)) add_value(key, value);
  }

  void read_tensors() {
    std::size_t read = 0;
    std::set<std::string_view> of_optimizer;  // parameters that have a slot of an optimizer
    for (const StoredTensor& tensor : checkpoint_.catalog().tensors) {
      const auto slot = slot_in_key(tensor.key);
      if (slot.empty() || !std::string_view(tensor.key).ends_with(slot)) continue;
      of_optimizer.insert(std::string_view(tensor.key).substr(0, tensor.key.size() - slot.size()));
    }
    for (const StoredTensor& tensor : checkpoint_.catalog().tensors) {
      if (!logical_shape(tensor).empty() || !counts_steps(tensor.key)) continue;
      const std::string_view key = tensor.key;
      if (of_optimizer.contains(key.substr(0, key.size() - parts_of_key(key).back().size()))) {
        continue;  // how often the optimizer changed that parameter
      }
      if (read++ >= kTensorsRead) continue;
      const auto text = only_element(checkpoint_, tensor);
      const auto number = text ? integer_of(*text) : std::nullopt;
      if (number) add_value(tensor.key, *number);
    }
  }

  Checkpoint& checkpoint_;
  CheckpointSummary summary_;
  ParamGroupSettings groups_;
};

}  // namespace

std::uint64_t CheckpointSummary::parameters() const {
  std::uint64_t count = 0;
  for (const Amount& amount : amounts) {
    if (amount.use == TensorUse::kWeights) count += amount.elements;
  }
  return count;
}

CheckpointSummary summary_of(Checkpoint& checkpoint, const Value* common) {
  return Summarizer(checkpoint).run(common);
}

}  // namespace reprise
