#pragma once
// Decides what a scenario shows that a deadline ended once, and that was then run once more.

#include "reports/report.hpp"

namespace reprise::driver {

/// One try of a scenario.
struct ProgramTry {
  reports::ScenarioResult result;
  /// True if it did not pass because a process was ended at its deadline, and for no other reason.
  bool at_deadline = false;
  /// True if each process that was ended so still reported something, so that it was only slow.
  bool progressing = false;
};

/// Returns the result of the second try, with the first one among its earlier tries. A pass stays a
/// pass if the first try was only slow. If the first try may have hung, the result is inconclusive,
/// with the code and the place of the first: a program that hangs at times is no pass, and a second
/// try does not prove that it hangs.
reports::ScenarioResult with_second_try(const ProgramTry& first, reports::ScenarioResult second);

}  // namespace reprise::driver
