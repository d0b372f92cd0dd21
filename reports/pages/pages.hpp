#pragma once
// Turns a report into evidence for readers: a page, a summary and annotations.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "reports/pages/standing.hpp"
#include "reports/report.hpp"

namespace reprise::reports {

/// Returns report.html: one page that needs no other file, no network and no script. The SHA-256 is
/// that of the report.json with the same content. `earlier` are reports of the same lane; with
/// them, the page says which problems are new, and what was resolved.
std::string to_html(const Report& report, const std::string& report_sha256,
                    std::span<const PastReport> earlier = {});

/// GitHub refuses a summary of 1 MiB and more.
inline constexpr std::size_t kSummaryBytesMax = std::size_t{900} << 10U;
/// Returns summary.md in GitHub's Markdown. If not everything fits, whole rows are left out and
/// counted.
std::string to_summary(const Report& report, const std::string& report_sha256,
                       std::span<const PastReport> earlier = {},
                       std::size_t bytes_max = kSummaryBytesMax);

/// GitHub shows ten annotations of a step.
inline constexpr std::size_t kAnnotationsMax = 10;
/// Returns GitHub's commands for the worst problems, one per line; with earlier reports, new ones
/// come first. The last one counts the rest.
std::vector<std::string> annotations_of(const Report& report,
                                        std::span<const PastReport> earlier = {});

}  // namespace reprise::reports
