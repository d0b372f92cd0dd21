#pragma once
// Finds flaws such as repeated keys, which JSON parsers silently accept. A report that serves as
// evidence must not have them.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

struct JsonFlaw {
  enum class Kind {
    kRepeatedKey,  ///< `key` occurs twice in one object
    kTooDeep,      ///< objects and lists are nested deeper than `depth_max`
  };

  Kind kind;
  std::string key;
};

/// Returns the first flaw of the text, if any. Examines each token once, before a document is
/// built. If the JSON is invalid, only the text before the first mistake is examined; the actual
/// parser reports the mistake.
std::optional<JsonFlaw> json_flaw(std::string_view text, std::size_t depth_max);

}  // namespace reprise
