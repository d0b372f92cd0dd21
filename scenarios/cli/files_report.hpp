#pragma once
// Makes the report.json of the lane `files`, which judges stored checkpoints in place, so that
// checkpoints of real training jobs can be gated like scenarios.

#include <string>
#include <utility>
#include <vector>

#include "core/engine/diff.hpp"
#include "core/engine/verify.hpp"
#include "reports/report.hpp"

namespace reprise::cli {

reports::ScenarioResult verify_result(const std::string& path, const VerifyReport& report);

/// A diff with the arguments of the command line.
struct DiffRequest {
  std::string left;
  std::string right;
  std::string options;  ///< as given, quoted for a shell; empty or with a trailing space
  LayoutBound layout_bound = LayoutBound::kDecides;
};
reports::ScenarioResult diff_result(const DiffRequest& request, const DiffReport& report);

/// Writes report.json and junit.xml into `directory`. `seconds` is the time of the whole command.
void write_files_report(std::vector<reports::ScenarioResult> results, double seconds,
                        const std::string& directory);

}  // namespace reprise::cli
