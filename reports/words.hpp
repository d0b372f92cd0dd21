#pragma once
// Words of enumerations in documents. An enumeration has them if a function words_of() in its
// namespace returns them.

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace reprise::reports {

/// Word N is that of the enumerator with the value N.
struct Words {
  std::string_view one;  ///< what each of them is, such as "a verdict"
  std::string_view all;  ///< what they are together, such as "verdicts"
  std::span<const std::string_view> words;
};

template <class Value>
concept Worded = std::is_enum_v<Value> && requires(Value value) {
  { words_of(value) } -> std::same_as<Words>;
};

template <Worded Value>
std::string name_of(Value value) {
  return std::string(words_of(value).words[static_cast<std::size_t>(value)]);
}

/// Returns the value with that word; empty if there is none.
template <Worded Value>
std::optional<Value> named(std::string_view word) {
  const auto words = words_of(Value{}).words;
  const auto at = std::ranges::find(words, word);
  if (at == words.end()) return std::nullopt;
  return static_cast<Value>(at - words.begin());
}

/// Returns "'cpu' is not a lane; the lanes are: files, gpu", with all words.
std::string is_none_of(const Words& words, std::string_view word);

}  // namespace reprise::reports
