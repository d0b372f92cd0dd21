#pragma once
// report.json of the lane `files`: stored checkpoints judged where they lie, so that checkpoints of
// real training jobs can be gated like scenarios.

#include <string>
#include <utility>
#include <vector>

#include "core/engine/diff.hpp"
#include "core/engine/verify.hpp"
#include "reports/report.hpp"

namespace reprise::cli {

reports::ScenarioResult verify_result(const std::string& path, const VerifyReport& report);
reports::ScenarioResult diff_result(const std::string& left, const std::string& right,
                                    const DiffReport& report);

/// Writes report.json and junit.xml into `directory`. `seconds`: of the whole command.
void write_files_report(std::vector<reports::ScenarioResult> results, double seconds,
                        const std::string& directory);

}  // namespace reprise::cli
