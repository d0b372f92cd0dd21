#pragma once
// What a search by random timelines saw: the named states, how fast new behaviour appeared, and the
// failures that it found.

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::reports {

/// A named state, and the number of timelines that reached it.
struct Mark {
  std::string name;
  std::uint64_t count = 0;
};

/// A point of the curve of new behaviour: what had been seen after so many timelines.
struct CurvePoint {
  std::uint64_t runs = 0;
  std::uint64_t marks = 0;   ///< distinct marks
  std::uint64_t tuples = 0;  ///< distinct tuples of place, fault and outcome
};

struct SearchFinding {
  std::string signature;  ///< code and reason without numbers
  std::string code;
  std::string reason;
  std::uint64_t count = 0;     ///< timelines that failed so
  std::uint64_t at_run = 0;    ///< number of the first of them, counted from 1
  std::string recipe;          ///< of the first of them, for `reprise search explore --recipe`
  std::string file = {};       ///< the shrunk scenario; empty if none was written
  std::string status = "new";  ///< "new", "ongoing" or "resolved", against an earlier search
};

struct Coverage {
  std::uint64_t seed = 0;
  std::uint64_t runs = 0;
  std::uint64_t branches = 0;      ///< those of the runs that branched from another one
  std::uint64_t inconclusive = 0;  ///< those of the runs that showed nothing
  std::vector<Mark> marks = {};
  std::vector<CurvePoint> curve = {};
  std::vector<SearchFinding> findings = {};
};

/// A mark that fewer timelines reached is rare.
inline constexpr std::uint64_t kRareBelow = 10;

/// Returns the names of the marks that no timeline reached.
std::vector<std::string> unreached(const Coverage& coverage);
/// Returns the names of the marks that some timelines reached, but fewer than kRareBelow.
std::vector<std::string> rare(const Coverage& coverage);
/// Returns all reasons why the search does not show that nothing fails: findings that were not
/// resolved, marks that were never reached, no timelines, counts that contradict each other.
std::vector<std::string> flaws_of(const Coverage& coverage);
/// True if the search found a failure.
bool has_findings(const Coverage& coverage);

}  // namespace reprise::reports
