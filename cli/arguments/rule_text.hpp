#pragma once
// The texts of rules: of a file, or of the maps that come with the program.

#include <span>
#include <string>
#include <string_view>

namespace reprise::cli {

struct ShippedMap {
  std::string_view name;
  std::string_view text;
};
/// Returns the files of the folder maps, which are part of the program.
std::span<const ShippedMap> shipped_maps();
/// Returns the first line of the map's text, without its comment sign: what it is for.
std::string_view purpose_of(const ShippedMap& map);

struct RuleText {
  std::string place;  ///< for messages
  std::string text;
  bool shipped = false;
};
/// Returns the map of this name or, if there is none, the content of the file. Throws the errors of
/// driver::read_yaml_text, which name the maps if there is no such file.
RuleText rule_text(const std::string& name);

}  // namespace reprise::cli
