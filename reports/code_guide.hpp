#pragma once
// Explains each code of an error or a verdict: what it means, what usually causes it and what to do
// about it. `reprise explain` prints this table, and the page about judges repeats its meanings.

#include <span>
#include <string_view>

#include "properties/finding_code.hpp"

namespace reprise::reports {

/// The explanation of one code. Each text is one or more whole sentences.
struct CodeGuide {
  FindingCode code;
  std::string_view meaning;
  std::string_view causes;
  std::string_view action;
};

/// Returns the explanations of all codes, sorted by the codes' numbers.
std::span<const CodeGuide> code_guides();

}  // namespace reprise::reports
