#pragma once
// Describes the keys of a YAML mapping: one row for each key of a struct. The struct is read
// and written by the same rows:
//
//   Rows<Lie> rows = {row("rank", &Lie::rank, Whole{0, 1023}, Written::kNeeded), ...};
//   read_rows(map, rows, lie);
//   put_rows(out, rows, lie);
//
// The third part of a row is the kind of value: a function that reads it, such as Whole{0, 1023} or
// &YamlMap::flag. It returns nothing if the key is absent or its value is wrong. put_value() writes
// the value, unless the kind has its own `write`.

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/yaml/yaml_map.hpp"

namespace reprise::driver {

enum class Written : std::uint8_t {
  kIfUnusual,  ///< only if the value is not the default
  kAlways,
  kNeeded,  ///< always, and a mapping without the key is wrong
};

template <class T>
struct Row {
  std::string_view key;
  Written written = Written::kIfUnusual;
  /// Reads the value that stands under a key, usually `key`. An absent key changes nothing.
  std::function<void(YamlMap&, std::string_view, T&)> read;
  std::function<void(YAML::Emitter&, const T&)> write;  ///< writes the value without the key
  std::function<bool(const T&)> is_usual;               ///< true if the value is the default
  std::function<void(T&)> reset;                        ///< sets the default
};

template <class T>
using Rows = std::vector<Row<T>>;

/// Writes a list in one line, a flag, a number, a text, or the name that name_of() returns.
template <class Value>
void put_value(YAML::Emitter& out, const Value& value) {
  if constexpr (requires { name_of(value); }) {
    out << std::string(name_of(value));
  } else if constexpr (std::integral<Value> && !std::same_as<Value, bool>) {
    out << static_cast<std::int64_t>(value);
  } else if constexpr (std::ranges::range<Value> && !std::same_as<Value, std::string>) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const auto& item : value) put_value(out, item);
    out << YAML::EndSeq;
  } else {
    out << value;
  }
}

template <class Kind, class Value>
void put_as(const Kind& kind, YAML::Emitter& out, const Value& value) {
  if constexpr (requires { kind.write(out, value); }) {
    kind.write(out, value);
  } else {
    put_value(out, value);
  }
}

/// Makes a row for a part of T: a pointer to a member, or a function that returns a reference. An
/// optional part that is set is written as its value.
template <class T, class Part, class Kind>
Row<T> row(std::string_view key, Part part, Kind kind, Written written = Written::kIfUnusual) {
  static const T kUsual{};
  const auto get = [kind](YamlMap& map, std::string_view at) {
    if constexpr (requires { std::invoke(kind, map, at).has_value(); }) {
      return std::invoke(kind, map, at);
    } else {
      return map.has(at) ? std::optional(std::invoke(kind, map, at)) : std::nullopt;
    }
  };
  using Value = std::remove_cvref_t<std::invoke_result_t<Part, T&>>;
  using Got = typename std::invoke_result_t<decltype(get), YamlMap&, std::string_view>::value_type;
  const auto read = [part, get, written](YamlMap& map, std::string_view at, T& into) {
    auto got = get(map, at);
    if (written == Written::kNeeded) got = map.needed(at, std::move(got));
    if (got) std::invoke(part, into) = static_cast<Value>(*std::move(got));
  };
  const auto write = [part, kind](YAML::Emitter& out, const T& from) {
    if constexpr (std::is_constructible_v<Value, std::nullopt_t> && !std::same_as<Value, Got>) {
      put_as(kind, out, *std::invoke(part, from));
    } else {
      put_as(kind, out, std::invoke(part, from));
    }
  };
  const auto is_usual = [part](const T& value) {
    return std::invoke(part, value) == std::invoke(part, kUsual);
  };
  const auto reset = [part](T& value) { std::invoke(part, value) = std::invoke(part, kUsual); };
  return {key, written, read, write, is_usual, reset};
}

template <class T, class Value, class Kind>
Row<T> row(std::string_view key, Value T::*part, Kind kind, Written written = Written::kIfUnusual) {
  return row<T, Value T::*, Kind>(key, part, std::move(kind), written);
}

/// Makes a row for what no search makes simpler.
template <class T, class Read, class Write>
Row<T> fixed_row(std::string_view key, Written written, Read read, Write write) {
  return {key, written, read, write, [](const T& /*value*/) { return true; }, [](T& /*value*/) {}};
}

/// Reads all keys into the struct.
template <class T>
void read_rows(YamlMap& map, const Rows<T>& rows, T& into) {
  for (const auto& row : rows) {
    map.know(row.key);
    if (row.read) map.attempt([&] { row.read(map, row.key, into); });
  }
}

template <class T>
void put_row(YAML::Emitter& out, const Row<T>& row, const T& value) {
  out << YAML::Key << std::string(row.key) << YAML::Value;
  row.write(out, value);
}

/// Writes the rows whose keys are to be written.
template <class T>
void put_rows(YAML::Emitter& out, const Rows<T>& rows, const T& value) {
  for (const auto& row : rows) {
    if (row.written != Written::kIfUnusual || !row.is_usual(value)) put_row(out, row, value);
  }
}

/// Writes them as a mapping.
template <class T>
void put_map(YAML::Emitter& out, const Rows<T>& rows, const T& value) {
  out << YAML::BeginMap;
  put_rows(out, rows, value);
  out << YAML::EndMap;
}

template <class T>
bool are_usual(const Rows<T>& rows, const T& value) {
  return std::all_of(rows.begin(), rows.end(),
                     [&value](const Row<T>& row) { return row.is_usual(value); });
}

// --- kinds of values ----------------------------------------------------------------------------

/// A whole number from `least` to `most`.
struct Whole {
  std::int64_t least;
  std::int64_t most;

  auto operator()(YamlMap& map, std::string_view key) const {
    return map.integer_in(key, least, most);
  }
};

/// One of some values, each with its name in the file.
template <class Value>
struct Choice {
  std::vector<std::pair<Value, std::string_view>> choices;

  std::optional<Value> operator()(YamlMap& map, std::string_view key) const {
    std::vector<std::string_view> names;
    for (const auto& choice : choices) names.push_back(choice.second);
    const auto word = map.word(key, names);
    if (!word) return std::nullopt;
    const auto place = std::find(names.begin(), names.end(), *word) - names.begin();
    return choices[static_cast<std::size_t>(place)].first;
  }
  void write(YAML::Emitter& out, const Value& value) const {
    const auto chosen = std::find_if(choices.begin(), choices.end(),
                                     [&](const auto& choice) { return choice.first == value; });
    if (chosen != choices.end()) out << std::string(chosen->second);
  }
};

/// The values under the names that name_of() returns for them.
template <class Value>
Choice<Value> by_name(std::initializer_list<Value> values) {
  Choice<Value> choice;
  for (const Value value : values) choice.choices.emplace_back(value, name_of(value));
  return choice;
}

/// The values that `named` returns for the names.
template <class Names, class Named>
auto by_name(const Names& names, Named named) {
  using Found = std::invoke_result_t<Named, std::string_view>;
  if constexpr (requires(Found found) { found.value(); }) {
    return by_name(names, [&named](std::string_view name) { return named(name).value(); });
  } else {
    Choice<Found> choice;
    for (const auto name : names) choice.choices.emplace_back(named(name), name);
    return choice;
  }
}

/// One of some words.
inline Choice<std::string> words(const std::vector<std::string_view>& names) {
  return by_name(names, [](std::string_view name) { return std::string(name); });
}

/// A word for false or the first value, and one for true or the second.
template <class Value = bool>
Choice<Value> either(std::string_view first, std::string_view second) {
  return {{{Value{0}, first}, {Value{1}, second}}};
}

/// A flag that says the opposite of the value.
struct NotFlag {
  std::optional<bool> operator()(YamlMap& map, std::string_view key) const {
    const auto flag = map.flag(key);
    return flag ? std::optional(!*flag) : std::nullopt;
  }
  void write(YAML::Emitter& out, bool value) const { out << !value; }
};

/// A mapping with rows of its own.
template <class T>
struct Mapping {
  const Rows<T>& rows;
  void (*check)(YamlMap&, const T&) = nullptr;  ///< throws for values that don't go together
  T usual = {};                                 ///< value of a mapping without keys
  bool in_one_line = true;

  std::optional<T> operator()(YamlMap& map, std::string_view key) const {
    if (!map.has(key)) return std::nullopt;
    YamlMap inner = map.map(key);
    T value = usual;
    read_rows(inner, rows, value);
    inner.refuse_unknown();
    if (check != nullptr) check(inner, value);
    return value;
  }
  void write(YAML::Emitter& out, const T& value) const {
    if (in_one_line) out << YAML::Flow;
    put_map(out, rows, value);
  }
};

}  // namespace reprise::driver
