#include "cli/arguments/model_facts.hpp"

#include <memory>
#include <nlohmann/json.hpp>

#include "core/format/json_document.hpp"

namespace reprise::cli {
namespace {

constexpr std::string_view kConfigFile = "config.json";
constexpr std::uint64_t kConfigBytesMax = 1U << 20U;

nlohmann::json scalar_of(const Value& value) {
  if (value.is_none()) return nullptr;
  if (const auto* flag = value.as<bool>()) return *flag;
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* text = value.as<std::string>()) return *text;
  return nlohmann::json::array({to_string(value)});
}

}  // namespace

ModelFacts::ModelFacts(Checkpoint& checkpoint, const std::string& prefix)
    : checkpoint_(checkpoint) {
  const KeySubstitution without("^(?:" + prefix + ")", "", Matches::kFirst, "prefix");
  for (const auto& tensor : checkpoint.catalog().tensors) {
    names_.push_back(without.applied_to(name_of(tensor)));
  }
}

std::vector<std::size_t> ModelFacts::matching(const KeyPattern& pattern) const {
  std::vector<std::size_t> tensors;
  for (std::size_t t = 0; t < names_.size(); ++t) {
    if (pattern.groups_of(names_[t])) tensors.push_back(t);
  }
  return tensors;
}

std::optional<std::int64_t> ModelFacts::size(const KeyPattern& pattern, std::int64_t dim) const {
  std::optional<std::int64_t> size;
  for (const auto t : matching(pattern)) {
    const Dims& shape = logical_shape(checkpoint_.catalog().tensors[t]);
    const auto ndim = static_cast<std::int64_t>(shape.size());
    const std::int64_t at = dim < 0 ? dim + ndim : dim;
    if (at < 0 || at >= ndim) return std::nullopt;
    const std::int64_t one = shape[static_cast<std::size_t>(at)];
    if (size && *size != one) return std::nullopt;
    size = one;
  }
  return size;
}

void ModelFacts::read_arguments() {
  if (read_) return;
  read_ = true;
  if (const auto common = checkpoint_.common()) {
    const Value* const args = common->item.value ? common->item.value->find("args") : nullptr;
    if (args != nullptr) args_ = *args;
    return;
  }
  const auto config = checkpoint_.small_file(kConfigFile);
  if (!config) return;
  config_ = std::make_shared<const nlohmann::json>(
      parse_json_object(*config,
                        {.file = checkpoint_.store().display(checkpoint_.location().directory) +
                                 "/" + std::string(kConfigFile)},
                        kConfigBytesMax));
}

bool ModelFacts::has_arguments() {
  read_arguments();
  return args_ || config_;
}

std::optional<nlohmann::json> ModelFacts::argument(const std::string& name) {
  read_arguments();
  if (args_) {
    const Value* const value = args_->find(name);
    if (value == nullptr) return std::nullopt;
    return scalar_of(*value);
  }
  if (!config_ || !config_->contains(name)) return std::nullopt;
  const auto& value = (*config_)[name];
  if (value.is_structured()) return nlohmann::json::array({value.dump()});
  return value;
}

}  // namespace reprise::cli
