#pragma once
// A YAML mapping read strictly: unknown and duplicate keys are errors with a suggestion, and every
// error names file and line. yaml-cpp itself keeps duplicates in silence.

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::driver {

class YamlMap {
 public:
  /// `what` names the mapping in messages: "job", "step 3". Throws USAGE if `node` is no mapping or
  /// repeats a key.
  YamlMap(const YAML::Node& node, std::string file, std::string what);

  bool has(std::string_view key) const;
  /// The node under `key`, which counts as known from here on; an undefined node if it is not
  /// there.
  YAML::Node node(std::string_view key);
  /// The same, but it must be there.
  YAML::Node required_node(std::string_view key);
  YamlMap map(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key);
  std::optional<double> number(std::string_view key);
  std::vector<std::string> texts(std::string_view key);  ///< a list, or one text
  /// As text(), but it must be there.
  std::string required(std::string_view key);

  /// Throws USAGE for a key that was never asked for; the keys asked for are the suggestions.
  void refuse_unknown() const;
  [[noreturn]] void fail(const YAML::Node& at, const std::string& message) const;
  const std::string& file() const { return file_; }

 private:
  YAML::Node node_;
  std::string file_;
  std::string what_;
  std::vector<std::string> known_;
};

/// The file's content. NOT_FOUND, or USAGE for more than 64 KiB.
std::string read_yaml_text(const std::string& file);
/// USAGE with the line for text that is no YAML.
YAML::Node load_yaml(const std::string& text, const std::string& file);

}  // namespace reprise::driver
