#pragma once
// Checks that a report supports its claims. It recomputes the claims from the entries and does not
// trust the summary. Reads no files.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.hpp"

namespace reprise::reports {

/// A reason to refuse a report, and a remedy. Each is one line of text.
struct Refusal {
  std::string file;     ///< path of the report; empty if no particular report is concerned
  std::string subject;  ///< scenario, property, mutant or field; empty for the whole report
  std::string reason;
  std::string fix;
};

/// A report that was submitted; it may be unreadable.
struct Submission {
  std::string file;
  std::optional<Report> report = {};
  std::string unreadable = {};  ///< why it can't be read: absent, truncated, not a report
  bool newer = false;           ///< true if it can't be read because a newer program wrote it
  std::string sha256 = {};      ///< of the file, as hexadecimal digits; empty if it can't be read
};

/// A field of a report.json that this program does not know.
struct UnknownField {
  std::string path;         ///< without positions in lists, such as "scenarios[].later"
  std::uint64_t count = 0;  ///< number of times that it occurs
};
/// Returns the fields of the document that parse_report() ignored, sorted by path. `report` is what
/// parse_report() returned for the same text.
std::vector<UnknownField> unknown_fields(const std::string& text, const std::string& file,
                                         const Report& report);

/// What a scenario compared, summed over all ranks. Sums stop at 2^64 - 1.
struct Compared {
  std::uint64_t leaves = 0;  ///< number of tensors and objects
  std::uint64_t elements = 0;
};
Compared compared_of(const ScenarioResult& result);
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b);

/// Larger counts are refused as impossible: no rank compares so many elements, and no run tries so
/// many cases, pairs or timelines.
inline constexpr std::uint64_t kCountMax = std::uint64_t{1} << 48;

/// Says what nobody can know of a report from its entries.
inline constexpr const char* kNotKnown =
    "whether all values are those of the run (docs/report.md names those that no entry "
    "contradicts, such as times, the machine and texts); 'reprise gate --digest' demands the very "
    "file that a job wrote";

/// Subject of the reason to refuse an interrupted run.
inline constexpr const char* kInterrupted = "interrupted";

/// Returns all reasons why the report does not pass, except for scenarios that were not run: the
/// baseline decides whether those are allowed. The refusals have no `file`.
///
/// A scenario counts as passed if all of these are true: it has neither code nor reason; all ranks
/// are present; max_delta is 0 and no bit differs; metrics are finite and equal to those of the
/// uninterrupted run; all required faults fired; every rank that owns state compared some of it,
/// unless a planned fault cut the last life short; only excused keys were missing, unless
/// the last life was meant to end in an error. A run with a mutant proves
/// nothing, and has no other reason. An interrupted run has one reason for all that it did not run.
std::vector<Refusal> check_evidence(const Report& report);

}  // namespace reprise::reports
