#pragma once
// Reads a YAML mapping strictly: unknown and duplicate keys are errors with a suggestion, and every
// error names file, line and column. yaml-cpp itself silently keeps duplicates. If a table of
// bindings is given, a value written as $name is replaced by the value of `name` in the table. If
// the bindings have a list of mistakes, a mistake is added to it, and reading goes on; otherwise
// the first mistake is thrown.

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

#include "driver/yaml/mistakes.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {

/// Values for $names, and the place for mistakes. This must outlive the maps that use it.
struct Bindings {
  std::vector<std::pair<std::string, YAML::Node>> values;
  std::set<std::string> used;    ///< names that were looked up
  Mistakes* mistakes = nullptr;  ///< null to throw the first mistake
};

class YamlMap {
 public:
  /// `what` is the mapping's name in messages, such as "job" or "step 3". Throws USAGE if `node` is
  /// not a mapping or repeats a key. If `bindings` is given, replaces each scalar value $name by
  /// the value bound to `name`, and throws USAGE if no value is bound to it. Where this class
  /// throws USAGE and the bindings collect mistakes, it adds a mistake of form: functions that
  /// return an optional then return nothing, lists lack the wrong items, and all others throw
  /// Unread.
  YamlMap(const YAML::Node& node, std::string file, std::string what, Bindings* bindings = nullptr);

  bool has(std::string_view key) const;
  /// Remembers that the key is known. From this call on, refuse_unknown() accepts the key.
  void know(std::string_view key);
  /// Returns the node under `key`, or an undefined node if the mapping lacks the key. The key is
  /// known from this call on, as after each of the calls below.
  YAML::Node node(std::string_view key);
  /// Like node(), but throws USAGE if the mapping lacks the key.
  YAML::Node required_node(std::string_view key);
  YamlMap map(std::string_view key);
  std::optional<std::string> text(std::string_view key);
  /// Reads the name of an error code.
  std::optional<Code> code(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key);
  /// Reads an integer from `least` to `most`.
  std::optional<std::int64_t> integer_in(std::string_view key, std::int64_t least,
                                         std::int64_t most);
  std::optional<double> number(std::string_view key);
  std::optional<bool> flag(std::string_view key);  ///< accepts true, false, yes and no
  /// Reads one of `words`. For any other word, throws an error that suggests the closest one.
  std::optional<std::string> word(std::string_view key, std::span<const std::string_view> words);
  /// Reads one of `values`, each written as the name that name_of() returns for it.
  template <class T>
  std::optional<T> one_of(std::string_view key, std::initializer_list<T> values);
  /// As one_of(), but reads a list without duplicates, or a single value.
  template <class T>
  std::vector<T> some_of(std::string_view key, std::span<const T> values);
  /// As word(), but reads a list without duplicates, or a single word.
  std::vector<std::string> words(std::string_view key, std::span<const std::string_view> words);
  std::vector<std::int64_t> integers(std::string_view key);  ///< a list, or one number
  std::vector<std::string> texts(std::string_view key);      ///< a list, or one text
  /// Like text(), but throws USAGE if the mapping lacks the key.
  std::string required(std::string_view key);
  /// Returns the value that was read under `key`. Throws USAGE if the mapping lacks the key.
  template <class T>
  T needed(std::string_view key, std::optional<T> value);

  /// Returns the items of the list under `key`. Throws USAGE if there is no such list.
  std::vector<YAML::Node> items(std::string_view key);
  /// Returns the mapping's keys in the file's order.
  std::vector<std::string> keys() const;

  /// Throws USAGE if the mapping has a key that no call has read. The message suggests a similar
  /// known key, or else lists all known keys.
  void refuse_unknown() const;
  /// Throws USAGE for a mistake of form: one that is a mistake whatever stands elsewhere.
  [[noreturn]] void refuse(const YAML::Node& at, const std::string& message) const;
  /// Throws USAGE for a mistake of sense.
  [[noreturn]] void fail(const YAML::Node& at, const std::string& message) const;
  /// Reads a part of the file by calling `read`. If mistakes are collected, adds the error that
  /// `read` throws, unless the part already has a mistake from which the error may follow. Returns
  /// true if the part has no mistake. If `sound` is false, other parts are wrong, and only mistakes
  /// of form are added. Where `read` throws, it ends: so that all fields of a mapping are looked
  /// at, each that may throw is a part of its own.
  template <class Read>
  bool attempt(Read read, bool sound = true) const;
  /// Reads each of the items by calling `read` with it, as parts of their own.
  template <class Items, class Read>
  void attempt_each(const Items& items, Read read) const;
  const std::string& file() const { return file_; }
  Bindings* bindings() const { return bindings_; }

 private:
  /// Like refuse(), but returns if mistakes are collected.
  void note(const YAML::Node& at, const std::string& message) const;
  /// Calls `read`. Returns an empty result if it throws Unread.
  template <class Read>
  static auto or_nothing(Read read) -> decltype(read());
  Mistakes* mistakes() const { return bindings_ == nullptr ? nullptr : bindings_->mistakes; }
  Mistake mistake(const YAML::Node& at, const std::string& message) const;
  [[noreturn]] void fail_lacking(std::string_view key);
  /// Reads a value of the type T, which is described by `wanted`.
  template <class T>
  std::optional<T> value(std::string_view key, std::string_view wanted);
  bool is_known(const YAML::Node& at, std::string_view key, const std::string& word,
                std::span<const std::string_view> words) const;
  YAML::Node bound(const YAML::Node& value) const;

  YAML::Node node_;
  std::string file_;
  std::string what_;
  Bindings* bindings_;
  std::vector<std::string> known_;
};

template <class T>
T YamlMap::needed(std::string_view key, std::optional<T> value) {
  if (value) return *std::move(value);
  if (!has(key)) fail_lacking(key);
  throw Unread();
}

template <class Read>
bool YamlMap::attempt(Read read, bool sound) const {
  if (mistakes() == nullptr) {
    read();
    return true;
  }
  const std::size_t before = mistakes()->met();
  const bool judged = mistakes()->judge_sense(false);
  mistakes()->judge_sense(judged && sound);
  bool ended = true;
  try {
    read();
  } catch (const Unread&) {
    ended = false;
  } catch (const Error& error) {
    ended = false;
    if (mistakes()->met() != before) mistakes()->judge_sense(false);
    mistakes()->add_sense(error, file_);
  }
  mistakes()->judge_sense(judged);
  return ended && mistakes()->met() == before;
}

template <class Items, class Read>
void YamlMap::attempt_each(const Items& items, Read read) const {
  for (const auto& item : items) attempt([&] { read(item); });
}

template <class Read>
auto YamlMap::or_nothing(Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Unread&) {
    return {};
  }
}

template <class T>
std::optional<T> YamlMap::one_of(std::string_view key, std::initializer_list<T> values) {
  std::vector<std::string_view> names;
  for (const T value : values) names.push_back(name_of(value));
  const auto name = word(key, names);
  if (!name) return std::nullopt;
  const auto place = std::find(names.begin(), names.end(), *name) - names.begin();
  return values.begin()[place];
}

template <class T>
std::vector<T> YamlMap::some_of(std::string_view key, std::span<const T> values) {
  std::vector<std::string_view> names;
  for (const T value : values) names.push_back(name_of(value));
  std::vector<T> written;
  for (const auto& name : words(key, names)) {
    const auto place = std::find(names.begin(), names.end(), name) - names.begin();
    written.push_back(values[static_cast<std::size_t>(place)]);
  }
  return written;
}

/// Returns the file's content. Throws NOT_FOUND, IO if it can't be read, or USAGE if it has more
/// than 64 KiB.
std::string read_yaml_text(const std::string& file);
/// Parses the text. Throws USAGE, with line and column, if the text is not YAML or not UTF-8, if it
/// has endless aliases, if it is empty, or if it has more than one document.
YAML::Node load_yaml(const std::string& text, const std::string& file);

}  // namespace reprise::driver
