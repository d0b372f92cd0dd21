#pragma once
// The one place through which judges state what they find. A test can listen there, and silence one
// line of one judge, to see that a test of that judge needs it.

#include "properties/finding_code.hpp"

namespace reprise {

/// A line of a source file: where a judge states a code.
struct SourceLine {
  const char* file = "";
  int number = 0;

  /// Returns the line of the call. As a default argument, or as the default of a member, it is the
  /// line of whoever calls the function or makes the object; a helper passes it on.
  static constexpr SourceLine here(const char* file = __builtin_FILE(),
                                   int number = __builtin_LINE()) {
    return {file, number};
  }
};

/// Asked before a code is stated. Returns false if it is not to be stated. It may be asked on
/// several threads at once, and more than once for one statement.
using FindingWatch = bool (*)(const SourceLine& line, FindingCode code);

/// Sets what is asked from now on; null for none. Only tests set it.
void watch_findings(FindingWatch watch);

/// Called before each code is stated at this line. True unless a test has silenced that.
bool may_state(const SourceLine& line, FindingCode code);

}  // namespace reprise
