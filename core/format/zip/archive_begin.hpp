#pragma once
// Finds where an archive begins that ends at a given position, for files with archives in a row.

#include <cstdint>
#include <optional>

#include "core/format/zip/item_source.hpp"

namespace reprise {

/// Returns where the archive begins that ends at byte `end` of the source, as its end record says.
/// Returns nothing if no end record without a comment ends there, or if it says what can't be.
/// Nothing else of the archive is checked.
std::optional<std::uint64_t> archive_begin(ItemSource& source, std::uint64_t end);

}  // namespace reprise
