#pragma once
// Finds the words in which the keys of two checkpoints differ, such as those that wrappers of
// modules leave in keys. Pure.
//
//   layers.0._checkpoint_wrapped_module.w  |  layers.0.w              a word removed
//   layers.0.attn.wq                       |  layers.0.self_attn.wq   a word replaced

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diff/diff.hpp"

namespace reprise {

/// Text to replace in a key.
struct KeyRule {
  enum class Place : std::uint8_t { kAnywhere, kStart, kEnd };
  std::string find;
  std::string replace;
  Place place = Place::kAnywhere;
  bool every = false;  ///< every place where it is found, instead of the first; with kAnywhere

  friend bool operator==(const KeyRule&, const KeyRule&) = default;
  friend auto operator<=>(const KeyRule&, const KeyRule&) = default;
};
std::string applied(const KeyRule& rule, std::string key);

struct WordHint {
  bool of_left = true;         ///< true if the rules change the left side's keys
  std::vector<KeyRule> rules;  ///< one after the other
  std::uint64_t keys = 0;      ///< keys that the rules make equal to one of the other side
};
/// Returns rules that match at least two keys, and at least half of the keys that only one side has
/// (counted on the side with fewer of them). They change no key that matched before, and make no
/// two keys equal. Returns nothing if there are none.
std::optional<WordHint> word_hint(const DiffReport& report);

}  // namespace reprise
