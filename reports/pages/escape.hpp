#pragma once
// Makes text from a report safe for the medium that it is put into. All functions also escape
// control characters and invalid UTF-8, as printable() does.

#include <cstddef>
#include <string>
#include <string_view>

namespace reprise::reports {

/// Returns the text for the content or for a quoted attribute of HTML and SVG. Line breaks stay.
std::string in_html(std::string_view text);

/// Returns the text for the message of a GitHub annotation.
std::string in_annotation(std::string_view text);
/// Returns the text for a property of a GitHub annotation, such as its title.
std::string in_annotation_property(std::string_view text);

/// Returns the text if it has at most `bytes_max` bytes. Otherwise returns the whole characters
/// that fit, and an ellipsis.
std::string clipped(std::string_view text, std::size_t bytes_max);

}  // namespace reprise::reports
