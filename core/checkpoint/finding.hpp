#pragma once
// Creates and counts findings, which are the results of examining a checkpoint.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/inspect.hpp"

namespace reprise {

Finding finding_from(const Error& error, Severity severity = Severity::kError);

std::size_t count_of(const Findings& findings, Severity severity);

}  // namespace reprise
