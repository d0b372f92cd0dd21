#pragma once
// A YAML mapping read strictly: unknown and duplicate keys are errors with a suggestion, and every
// error names file and line. yaml-cpp itself keeps duplicates in silence. Values written as $name
// stand for what a table binds to that name.

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"

namespace reprise::driver {

/// Values for $names. Borrowed by the maps that read with them.
struct Bindings {
  std::vector<std::pair<std::string, YAML::Node>> values;
  std::set<std::string> used;  ///< names that were read
};

class YamlMap {
 public:
  /// `what` names the mapping in messages: "job", "step 3". Throws USAGE if `node` is no mapping or
  /// repeats a key. With `bindings`, each value that is a scalar $name is what it is bound to;
  /// USAGE for a name that is not.
  YamlMap(const YAML::Node& node, std::string file, std::string what, Bindings* bindings = nullptr);

  bool has(std::string_view key) const;
  /// The node under `key`, which counts as known from here on; an undefined node if it is not
  /// there.
  YAML::Node node(std::string_view key);
  /// The same, but it must be there.
  YAML::Node required_node(std::string_view key);
  YamlMap map(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  /// A code that an error carries, by its name.
  std::optional<Code> code(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key);
  /// From `least` to `most`.
  std::optional<std::int64_t> integer_in(std::string_view key, std::int64_t least,
                                         std::int64_t most);
  std::optional<double> number(std::string_view key);
  std::optional<bool> flag(std::string_view key);  ///< true, false, yes, no
  /// One of these words; another is refused with the one that may have been meant.
  std::optional<std::string> word(std::string_view key, std::span<const std::string_view> words);
  /// One of these values by its name, as name_of() says it.
  template <class T>
  std::optional<T> one_of(std::string_view key, std::initializer_list<T> values);
  /// Such words in a list, none twice, or one alone.
  std::vector<std::string> words(std::string_view key, std::span<const std::string_view> words);
  std::vector<std::int64_t> integers(std::string_view key);  ///< a list, or one number
  std::vector<std::string> texts(std::string_view key);      ///< a list, or one text
  /// As text(), but it must be there.
  std::string required(std::string_view key);

  /// The items of the list under `key`, which must be there.
  std::vector<YAML::Node> items(std::string_view key);
  /// The mapping's keys in the file's order.
  std::vector<std::string> keys() const;

  /// Throws USAGE for a key that was never asked for; the keys asked for are the suggestions.
  void refuse_unknown() const;
  [[noreturn]] void fail(const YAML::Node& at, const std::string& message) const;
  const std::string& file() const { return file_; }
  Bindings* bindings() const { return bindings_; }

 private:
  [[noreturn]] void fail_lacking(std::string_view key) const;
  void require_word(const YAML::Node& at, std::string_view key, const std::string& word,
                    std::span<const std::string_view> words) const;
  YAML::Node bound(const YAML::Node& value) const;

  YAML::Node node_;
  std::string file_;
  std::string what_;
  Bindings* bindings_;
  std::vector<std::string> known_;
};

template <class T>
std::optional<T> YamlMap::one_of(std::string_view key, std::initializer_list<T> values) {
  std::vector<std::string_view> names;
  for (const T value : values) names.push_back(name_of(value));
  const auto name = word(key, names);
  if (!name) return std::nullopt;
  const auto place = std::find(names.begin(), names.end(), *name) - names.begin();
  return values.begin()[place];
}

/// The file's content. NOT_FOUND, or USAGE for more than 64 KiB.
std::string read_yaml_text(const std::string& file);
/// USAGE with the line for text that is no YAML, is not UTF-8, or whose aliases make it endless.
YAML::Node load_yaml(const std::string& text, const std::string& file);

}  // namespace reprise::driver
