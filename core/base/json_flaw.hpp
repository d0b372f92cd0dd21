#pragma once
// Finds what a JSON parser settles in silence and a reader of evidence must refuse: repeated keys.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

struct JsonFlaw {
  enum class Kind {
    kRepeatedKey,  ///< `key` stands twice in one object
    kTooDeep,      ///< objects and lists stand within each other more than `depth_max` times
  };

  Kind kind;
  std::string key;
};

/// Returns the first flaw of the text, or none. It looks at each token once, before a document is
/// made. Of text that is no JSON it sees what stands before the first mistake: the parser proper
/// says what is wrong there.
std::optional<JsonFlaw> json_flaw(std::string_view text, std::size_t depth_max);

}  // namespace reprise
