#pragma once
// The same scenarios once more, on the simulated lane and in a second process: what came of them
// must be the same, on that lane to the event hash.

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/driver/run.hpp"

namespace reprise::driver {

/// The course that a run took.
struct Course {
  std::string name;
  std::string verdict;
  std::string event_hash;
  std::string content_digest;
  std::vector<std::int64_t> begins;  ///< the step that each life went on from
  bool left_to_time = false;         ///< which checkpoint that was

  friend bool operator==(const Course&, const Course&) = default;
};

Course course_of(const reports::ScenarioResult& result);
std::vector<Course> courses_of(const reports::Report& report);
/// Of a report.json; TORN_FILE if it is none.
std::vector<Course> courses_in(const std::string& report_json, const std::string& file);
/// Runs the request in another process of `options.executable`. INTERNAL if that leaves no report.
std::vector<Course> courses_elsewhere(const RunRequest& request);

/// Fills the report's determinism, and turns scenarios that took another course there into failures
/// with the code NOT_DETERMINISTIC or, of a report of another lane, LANES_DISAGREE: other verdict,
/// other content. Where time alone says which checkpoint a life goes on from, lanes may go on from
/// different ones, and have other content then. What was not run here is not compared.
void compare_courses(const std::vector<Course>& elsewhere, reports::Report& report);

}  // namespace reprise::driver
