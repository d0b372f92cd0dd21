#pragma once
// Makes the report.json of the lane `files`, which judges stored checkpoints and runs no job. The
// verb `gate` can then judge checkpoints of real training jobs just as it judges scenarios.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/diff/diff.hpp"
#include "core/verify/verify.hpp"
#include "reports/report.hpp"

namespace reprise::cli {

reports::ScenarioResult verify_result(const std::string& path, const VerifyReport& report);

/// The arguments of the verb `diff` as given on the command line.
struct DiffRequest {
  std::string left;
  std::string right;
  std::string options;  ///< options as given, quoted for a shell; if not empty, they end in a space
  LayoutBound layout_bound = LayoutBound::kDecides;
  /// The same options by name, such as "no_checksums", each with its values; a flag has none.
  std::map<std::string, std::vector<std::string>> given = {};
};
/// Returns the command that compares the two again, for a shell.
std::string command_of(const DiffRequest& request);
reports::ScenarioResult diff_result(const DiffRequest& request, const DiffReport& report);

/// Writes report.json, junit.xml and the pages into `directory`. `seconds` is the duration of the
/// whole command.
void write_files_report(std::vector<reports::ScenarioResult> results, double seconds,
                        const std::string& directory);

}  // namespace reprise::cli
