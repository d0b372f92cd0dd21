#include "driver/runs/determinism.hpp"

#include <algorithm>
#include <filesystem>

#include "driver/lanes/process.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/yaml/text_file.hpp"
#include "properties/finding_code.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kDeadlineS = 3600;
/// Makes glibc fill memory when it is given out and taken back, so that what is read before it is
/// written differs from the first run. Other libraries ignore the variable.
constexpr const char* kFillMemory = "MALLOC_PERTURB_=90";
/// Makes the second process start with holes in its heap; see shake_heap.
constexpr const char* kHeapSeed = "1";

std::vector<std::string> command_of(const RunRequest& request, const std::string& report) {
  std::vector<std::string> words = {"env", kFillMemory, request.options.executable, "run"};
  words.insert(words.end(), request.selection.paths.begin(), request.selection.paths.end());
  words.insert(words.end(), {"--quiet", "--report", report, "--heap-seed", kHeapSeed});
  words.insert(words.end(), {"--seed", std::to_string(request.options.seed)});
  words.insert(words.end(), {"--jobs", std::to_string(std::max<std::size_t>(request.jobs, 1))});
  words.insert(words.end(), {"--rows", std::to_string(request.selection.rows_max)});
  if (!request.selection.tag.empty()) {
    words.insert(words.end(), {"--tag", request.selection.tag});
  }
  for (const auto& tag : request.selection.not_tags) words.insert(words.end(), {"--not-tag", tag});
  const std::size_t shards = request.selection.shards;
  if (shards > 1) {
    words.insert(words.end(), {"--shard", std::to_string(request.selection.shard) + "/" +
                                              std::to_string(shards)});
  }
  // In one word, because an expression may begin with a dash.
  if (!request.selection.names.empty()) words.push_back("--names=" + request.selection.names);
  words.emplace_back("--keep-going");  // this process has read the same files, and said what is bad
  if (!request.options.mutant.empty()) {
    words.insert(words.end(), {"--mutant", request.options.mutant});
  }
  return words;
}

/// Returns the first difference between the courses of a scenario; empty if they are equal. Event
/// hashes exist only on the simulated lane, so they are compared only if `same_lane` is true.
std::string difference_of(const Course& here, const Course& there, bool same_lane) {
  if (here.verdict != there.verdict) {
    return "the verdict is " + here.verdict + " here and " + there.verdict;
  }
  if (same_lane && here.event_hash != there.event_hash) {
    return "the event hash is " + here.event_hash + " here and " + there.event_hash;
  }
  if (here.content_digest == there.content_digest) return "";
  const bool left_to_time = !same_lane && (here.left_to_time || there.left_to_time);
  if (left_to_time && here.begins != there.begins) return "";
  return "the content digest is " + here.content_digest + " here and " + there.content_digest;
}

}  // namespace

Course course_of(const reports::ScenarioResult& result) {
  std::vector<std::int64_t> begins;
  for (const auto& life : result.lives) begins.push_back(life.first_step);
  return {result.name,       reports::name_of(result.verdict),
          result.event_hash, result.content_digest,
          std::move(begins), result.left_to_time};
}

std::vector<Course> courses_in(const std::string& report_json, const std::string& file) try {
  const auto report = reports::parse_report(report_json, file);
  std::vector<Course> courses;
  for (const auto& result : report.scenarios) courses.push_back(course_of(result));
  return courses;
} catch (const reports::ReadError& error) {
  throw Error(Code::kTornFile, std::string("no report: ") + error.what());
}

std::vector<Course> courses_elsewhere(const RunRequest& request) {
  const ScratchDirectory scratch;
  const std::string log = scratch.path() + "/log";
  const ProcessEnd end =
      run_process(command_of(request, scratch.path()), log, {.deadline_s = kDeadlineS});
  const std::string report = scratch.path() + "/report.json";
  if (!std::filesystem::exists(report)) {
    throw Error(Code::kInternal, "the second process ended with " + std::to_string(end.exit_code) +
                                     " but left no report: " + text_of(log));
  }
  return courses_in(text_of(report), report);
}

void compare_courses(const std::vector<Course>& elsewhere, reports::Report& report) {
  const bool same_lane = report.lane == reports::ReportLane::kSim;
  const std::string where = same_lane ? " in a second process" : " on the lane sim";
  for (auto& result : report.scenarios) {
    if (result.verdict == reports::Verdict::kNotRun) continue;
    result.doubled = true;
    const auto there = std::find_if(elsewhere.begin(), elsewhere.end(), [&](const Course& course) {
      return course.name == result.name;
    });
    const std::string difference = there == elsewhere.end()
                                       ? "it was not run"
                                       : difference_of(course_of(result), *there, same_lane);
    if (difference.empty()) continue;
    // A failure explains by itself why the lanes disagree, and counts once.
    if (!same_lane && result.verdict != reports::Verdict::kPass) {
      result.verdict = reports::Verdict::kFail;
      reports::restate_failure(result);
      continue;
    }
    result.code = name_of(same_lane ? judged::kNotDeterministic : judged::kLanesDisagree);
    result.reason = difference + where;
    result.verdict = reports::Verdict::kFail;
    reports::restate_failure(result);
  }
  report.verdict = reports::overall(report);
}

}  // namespace reprise::driver
