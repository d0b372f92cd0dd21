#include "scenarios/driver/determinism.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "scenarios/driver/process.hpp"
#include "scenarios/driver/scratch_directory.hpp"
#include "scenarios/driver/text_file.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kDeadlineS = 3600;
constexpr std::string_view kCode = "NOT_DETERMINISTIC";

std::vector<std::string> command_of(const RunRequest& request, const std::string& report) {
  std::vector<std::string> words = {request.options.executable, "run"};
  words.insert(words.end(), request.selection.paths.begin(), request.selection.paths.end());
  words.insert(words.end(), {"--quiet", "--report", report});
  words.insert(words.end(), {"--seed", std::to_string(request.options.seed)});
  words.insert(words.end(), {"--jobs", std::to_string(std::max<std::size_t>(request.jobs, 1))});
  if (!request.selection.tag.empty()) {
    words.insert(words.end(), {"--tag", request.selection.tag});
  }
  if (!request.options.mutant.empty()) {
    words.insert(words.end(), {"--mutant", request.options.mutant});
  }
  return words;
}

std::string difference_of(const Course& here, const Course& there) {
  if (here.verdict != there.verdict) {
    return "the verdict is " + here.verdict + " here and " + there.verdict;
  }
  if (here.event_hash != there.event_hash) {
    return "the event hash is " + here.event_hash + " here and " + there.event_hash;
  }
  return "the content digest is " + here.content_digest + " here and " + there.content_digest;
}

}  // namespace

std::vector<Course> courses_of(const reports::Report& report) {
  std::vector<Course> courses;
  for (const auto& result : report.scenarios) {
    courses.push_back(
        {result.name, reports::name_of(result.verdict), result.event_hash, result.content_digest});
  }
  return courses;
}

std::vector<Course> courses_in(const std::string& report_json, const std::string& file) try {
  const auto document = nlohmann::json::parse(report_json);
  std::vector<Course> courses;
  for (const auto& result : document.at("scenarios")) {
    courses.push_back({result.at("name").get<std::string>(),
                       result.at("verdict").get<std::string>(),
                       result.at("event_hash").get<std::string>(),
                       result.at("content_digest").get<std::string>()});
  }
  return courses;
} catch (const nlohmann::json::exception& error) {
  throw Error(Code::kTornFile, std::string("no report: ") + error.what(), {.file = file});
}

std::vector<Course> courses_elsewhere(const RunRequest& request) {
  const ScratchDirectory scratch;
  const std::string log = scratch.path() + "/log";
  const ProcessEnd end = run_process(command_of(request, scratch.path()), log, kDeadlineS);
  const std::string report = scratch.path() + "/report.json";
  if (!std::filesystem::exists(report)) {
    throw Error(Code::kInternal, "the second process ended with " + std::to_string(end.exit_code) +
                                     " and left no report: " + text_of(log));
  }
  return courses_in(text_of(report), report);
}

void compare_courses(const std::vector<Course>& elsewhere, reports::Report& report) {
  const auto here = courses_of(report);
  report.runs_doubled = static_cast<std::uint64_t>(std::count_if(
      here.begin(), here.end(), [](const Course& course) { return !course.event_hash.empty(); }));
  for (std::size_t i = 0; i < here.size(); ++i) {
    const auto there = std::find_if(elsewhere.begin(), elsewhere.end(), [&](const Course& course) {
      return course.name == here[i].name;
    });
    if (there != elsewhere.end() && *there == here[i]) continue;
    ++report.determinism_mismatches;
    reports::ScenarioResult& result = report.scenarios[i];
    result.verdict = reports::Verdict::kFail;
    result.code = kCode;
    result.reason = there == elsewhere.end()
                        ? "a second process did not run it"
                        : difference_of(here[i], *there) + " in a second process";
  }
  report.verdict = reports::overall(report);
}

}  // namespace reprise::driver
