#pragma once
// The same scenarios once more, in a second process: the event hashes must be the same.

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

  friend bool operator==(const Course&, const Course&) = default;
};

std::vector<Course> courses_of(const reports::Report& report);
/// Of a report.json; TORN_FILE if it is none.
std::vector<Course> courses_in(const std::string& report_json, const std::string& file);
/// Runs the request in another process of `options.executable`. INTERNAL if that leaves no report.
std::vector<Course> courses_elsewhere(const RunRequest& request);

/// Fills the report's determinism, and turns scenarios that took another course there into failures
/// with the code NOT_DETERMINISTIC.
void compare_courses(const std::vector<Course>& elsewhere, reports::Report& report);

}  // namespace reprise::driver
