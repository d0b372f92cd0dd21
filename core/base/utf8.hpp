#pragma once
// Tells text from other bytes.

#include <string_view>

namespace reprise {

/// True if the bytes are valid UTF-8. Surrogates are allowed, because Python's pickler writes them.
bool is_utf8(std::string_view text);

}  // namespace reprise
