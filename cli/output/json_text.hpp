#pragma once
// Writes JSON documents as text for `--json`.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reprise::cli {

/// Returns the document as indented ASCII text that ends with a line break. Keys come from files,
/// so control characters are escaped, for example as "\u001b". Python's pickler writes a lone
/// surrogate as three bytes, which some JSON parsers refuse. Such a surrogate is written as an
/// escape of six characters such as \udcff, as on the terminal, so that different keys stay
/// different. Other bytes that are not UTF-8 become "\ufffd".
std::string json_text(nlohmann::json document);

}  // namespace reprise::cli
