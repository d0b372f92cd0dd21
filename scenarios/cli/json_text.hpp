#pragma once
// JSON as `--json` prints it.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace reprise::cli {

/// Returns the document as indented ASCII text that ends with a line break. Keys come from files:
/// letters that a terminal obeys are written as "\u001b". Halves of characters (surrogates, which
/// Python's pickler writes as three bytes) can't stand in JSON that every parser reads: they become
/// the six letters \udcff, as on the terminal, so that two keys stay two. Other bytes that are no
/// UTF-8 become "\ufffd".
std::string json_text(nlohmann::json document);

}  // namespace reprise::cli
