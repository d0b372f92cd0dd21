#include "driver/language/model_file.hpp"

#include <charconv>
#include <filesystem>

#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kExtentMax = std::int64_t{1} << 40;
constexpr std::int64_t kLayersMax = 10000;

std::int64_t extent_of(const YamlMap& map, const YAML::Node& at, const std::string& text,
                       std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 0 || value > most) {
    map.fail(at, "needs a size from 0 to " + std::to_string(most) + ", not '" + text + "'");
  }
  return value;
}

Split split_of(const YamlMap& map, const YAML::Node& at, const std::string& text,
               const Dims& shape) {
  const auto slash = text.find('/');
  if (slash == std::string::npos || slash == 0) {
    map.fail(at, "needs splits such as tp/0, not '" + text + "'");
  }
  const auto dim = extent_of(map, at, text.substr(slash + 1), static_cast<std::int64_t>(kMaxNdim));
  if (dim >= static_cast<std::int64_t>(shape.size())) {
    map.fail(at, "splits dimension " + std::to_string(dim) + " of the shape " + to_string(shape));
  }
  return {text.substr(0, slash), static_cast<std::size_t>(dim)};
}

sim::ParameterSpec parameter_of(YamlMap map) {
  sim::ParameterSpec parameter;
  parameter.key = map.required("key");
  const YAML::Node shape = map.required_node("shape");
  for (const auto& extent : map.texts("shape")) {
    if (parameter.shape.size() == kMaxNdim) map.fail(shape, "has too many dimensions");
    parameter.shape.push_back(extent_of(map, shape, extent, kExtentMax));
  }
  if (!checked_volume(parameter.shape)) map.fail(shape, "is too large for a tensor");
  std::vector<Split> splits;
  for (const auto& text : map.texts("splits")) {
    splits.push_back(split_of(map, map.node("splits"), text, parameter.shape));
  }
  parameter.placement = Placement(std::move(splits));
  map.refuse_unknown();
  return parameter;
}

sim::ModelSpec gpt_of(YamlMap map, const std::string& name) {
  const auto size = [&map](std::string_view key, std::int64_t most) {
    return extent_of(map, map.node(key), map.required(key), most);
  };
  const sim::GptSizes sizes{.layers = size("layers", kLayersMax),
                            .hidden = size("hidden", 1 << 20),
                            .ffn = size("ffn", 1 << 22),
                            .vocabulary = size("vocabulary", 1 << 24)};
  map.refuse_unknown();
  return sim::gpt(name, sizes);
}

}  // namespace

sim::ModelSpec parse_model(const std::string& text, const std::string& file) {
  const std::string name = std::filesystem::path(file).stem().string();
  const YAML::Node root = load_yaml(text, file);
  YamlMap top(root, file, "the model");
  if (top.has("gpt")) {
    sim::ModelSpec model = gpt_of(top.map("gpt"), name);
    top.refuse_unknown();
    return model;
  }
  sim::ModelSpec model{name, {}};
  const YAML::Node parameters = top.node("parameters");
  if (!parameters.IsDefined() || !parameters.IsSequence()) {
    top.fail(root, "needs 'gpt' or a list under 'parameters'");
  }
  for (const auto& parameter : parameters) {
    model.parameters.push_back(parameter_of({parameter, file, "a parameter"}));
  }
  top.refuse_unknown();
  return model;
}

sim::ModelSpec read_model_file(const std::string& file) {
  return parse_model(read_yaml_text(file), file);
}

sim::ModelSpec model_of(const std::string& name_or_file) {
  return name_or_file.ends_with(".yaml") ? read_model_file(name_or_file)
                                         : sim::model_named(name_or_file);
}

}  // namespace reprise::driver
