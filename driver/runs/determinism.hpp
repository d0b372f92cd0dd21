#pragma once
// Runs the same scenarios again on the simulated lane in a second process. Both runs must have the
// same results. If the first run was on the simulated lane, too, they must also have the same event
// hashes.

#include <cstdint>
#include <string>
#include <vector>

#include "driver/runs/run.hpp"

namespace reprise::driver {

/// The parts of a result that must be equal in two runs.
struct Course {
  std::string name;
  std::string verdict;
  std::string event_hash;
  std::string content_digest;
  std::vector<std::int64_t> begins;  ///< for each life, the step from which it continued
  /// True if timing decides which checkpoint a life loads.
  bool left_to_time = false;

  friend bool operator==(const Course&, const Course&) = default;
};

Course course_of(const reports::ScenarioResult& result);
/// Reads the courses from the text of a report.json. Throws TORN_FILE if the text is not a report.
std::vector<Course> courses_in(const std::string& report_json, const std::string& file);
/// Runs the request in another process of `options.executable`. That process has another order of
/// addresses (see shake_heap), and its fresh memory has other bytes. Throws INTERNAL if that
/// process writes no report.
std::vector<Course> courses_elsewhere(const RunRequest& request);

/// Compares the report with `elsewhere`, another run of the same scenarios, and enters the result
/// in the report. A scenario fails if its verdict or content differs. The code is
/// NOT_DETERMINISTIC, or LANES_DISAGREE if this report is from a lane other than the simulated one.
/// If timing decides which checkpoint a life loads, content is compared between lanes only if both
/// runs loaded the same checkpoint. Scenarios that were not run here are ignored.
void compare_courses(const std::vector<Course>& elsewhere, reports::Report& report);

}  // namespace reprise::driver
