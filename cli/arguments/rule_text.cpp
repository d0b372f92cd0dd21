#include "cli/arguments/rule_text.hpp"

#include <vector>

#include "core/base/print.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {

std::string_view purpose_of(const ShippedMap& map) {
  std::string_view line = map.text.substr(0, map.text.find('\n'));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of("# ")));
  return line;
}

RuleText rule_text(const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto& map : shipped_maps()) {
    if (map.name == name) return {"map " + name, std::string(map.text), true};
    names.push_back(map.name);
  }
  try {
    return {name, driver::read_yaml_text(name)};
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound) throw;
    throw Error(error.code(),
                error.message() + "; maps that come with the program: " + join(names, ", "),
                error.place());
  }
}

}  // namespace reprise::cli
