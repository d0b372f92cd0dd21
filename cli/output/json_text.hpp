#pragma once
// Text form of JSON for `--json`.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reprise::cli {

/// Returns the document as indented ASCII text that ends with a line break. Keys come from files:
/// control characters are escaped as "\u001b". Surrogates (which Python's pickler writes as three
/// bytes) can't occur in JSON that every parser reads: each becomes the six letters \udcff, as on
/// the terminal, so that different keys stay different. Other bytes that are not UTF-8 become
/// "\ufffd".
std::string json_text(nlohmann::json document);

}  // namespace reprise::cli
