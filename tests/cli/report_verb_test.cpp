// Tests of what readers get of a report: the pages, and the schema of report.json. Where Python
// lacks a module, or there is no Chromium, what needs them is skipped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "core/base/bytes.hpp"
#include "core/base/sha256.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::test {
namespace {

using contracts::TemporaryDirectory;
using testing::HasSubstr;
using testing::Not;

const std::string kPageScenario = REPRISE_SOURCE_DIR "/scenarios/placements/tp2dp2-to-tp4.yaml";
const std::string kOtherPageScenario = REPRISE_SOURCE_DIR "/scenarios/placements/ep2.yaml";

std::string digest_of(const std::string& file) { return hex(sha256_of(as_bytes(text_of(file)))); }

void write_text(const std::string& file, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file) << text;
}

/// Returns a report that has every field at least once.
reports::Report whole_report() {
  reports::Report report = reports::sample_report();
  report.scenarios[1].first_difference = reports::FirstDifference{
      .rank = 1, .key = "<img src=x>", .index = {0}, .saved = "1", .loaded = "2", .comes_from = ""};
  report.scenarios[1].failure = reports::Failure{
      .cause = "zeros",
      .life = 1,
      .step = 3,
      .rank = 1,
      .consequences = {{.life = 1, .ranks = {0}, .code = "PEER_FAILED", .text = "rank 1 failed"}},
      .placement = reports::sample_placement()};
  report.scenarios[1].crashed = true;
  report.scenarios[0].earlier_tries = {{.code = "HANG", .reason = "late", .seconds = 2.5}};
  report.properties[0].code = "HANG";
  report.scenarios[1].generations = {
      {.step = 2, .life = 0, .state = "pruned", .loaded_by = {1}, .skipped_by = {2}}};
  return report;
}

/// Returns a Python that has the modules; empty if there is none.
std::string python_with(const std::string& modules) {
  for (const char* python : {"/usr/bin/python3", "python3"}) {
    const std::string command = std::string(python) + " -c 'import " + modules + "' 2>/dev/null";
    if (std::system(command.c_str()) == 0) return python;
  }
  return "";
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null").c_str()) == 0;
}

/// Runs a command, and returns what it printed if it failed.
testing::AssertionResult succeeds(const std::string& command) {
  const TemporaryDirectory directory;
  const std::string log = directory.path() + "/log";
  if (std::system((command + " >" + log + " 2>&1").c_str()) == 0) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << command << "\n" << text_of(log);
}

/// Expects the pages of the report.json in the directory to be there and made from it.
void expect_pages(const std::string& directory) {
  const std::string digest = digest_of(directory + "/report.json");
  EXPECT_THAT(text_of(directory + "/report.html"), HasSubstr(digest));
  EXPECT_THAT(text_of(directory + "/summary.md"), HasSubstr(digest));
  EXPECT_THAT(text_of(directory + "/junit.xml"), HasSubstr(digest));
}

TEST(ReportVerb, whoever_writes_a_report_writes_its_pages_too) {
  const TemporaryDirectory out;
  const std::vector<std::vector<std::string>> commands = {
      {"run", kPageScenario},
      {"search", "properties", "continuity", "--cases", "1"},
      {"mutants", kPageScenario, "--only", "floor-vs-ceil-chunk"},
      {"search", "exhaust", "--max-world", "1"}};
  std::string before;
  for (auto command : commands) {
    command.insert(command.end(), {"--report", out.path()});
    const auto result = run_program(command);
    ASSERT_EQ(result.exit_code, 0) << result.all();
    expect_pages(out.path());
    const std::string page = text_of(out.path() + "/report.html");
    EXPECT_NE(page, before) << command.front();
    before = page;
  }
  EXPECT_THAT(before, HasSubstr("floor-vs-ceil-chunk"));
}

TEST(ReportVerb, the_help_of_each_verb_names_every_file_that_a_report_has) {
  for (const char* verb : {"run", "search properties", "mutants", "search exhaust",
                           "search explore", "verify", "diff", "resume-proof"}) {
    std::istringstream words(verb);
    std::vector<std::string> line{std::istream_iterator<std::string>(words), {}};
    line.emplace_back("--help");
    std::string help = run_program(line).out;
    // The lines of the help are filled.
    for (char& c : help) c = c == '\n' ? ' ' : c;
    while (help.find("  ") != std::string::npos) help.replace(help.find("  "), 2, " ");
    for (const char* file : {"report.json", "junit.xml", "report.html", "summary.md"}) {
      EXPECT_THAT(help.substr(help.find("--report DIR")), HasSubstr(file)) << verb;
    }
  }
}

TEST(ReportVerb, makes_the_same_pages_from_report_json) {
  const TemporaryDirectory out;
  const TemporaryDirectory other;
  ASSERT_EQ(run_program({"run", kPageScenario, "--report", out.path()}).exit_code, 0);
  const auto result = run_program({"report", out.path(), "--out", other.path() + "/deep/down"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(result.out, "page: " + other.path() + "/deep/down/report.html\nsummary: " +
                            other.path() + "/deep/down/summary.md\n");
  for (const char* file : {"/report.html", "/summary.md"}) {
    EXPECT_EQ(text_of(other.path() + "/deep/down" + file), text_of(out.path() + file));
    std::filesystem::remove(out.path() + file);
  }
  EXPECT_EQ(run_program({"report", out.path()}).exit_code, 0);
  expect_pages(out.path());
}

TEST(ReportVerb, annotates_a_failure_and_no_pass) {
  const TemporaryDirectory out;
  ASSERT_EQ(run_program({"run", kPageScenario, "--report", out.path()}).exit_code, 0);
  const auto pass = run_program({"report", out.path(), "--annotate"});
  EXPECT_EQ(pass.exit_code, 0) << pass.all();
  EXPECT_THAT(pass.out, Not(HasSubstr("::error")));
  const std::vector<std::string> failing = {
      "run", kPageScenario, "--mutant", "floor-vs-ceil-chunk", "--report", out.path()};
  ASSERT_EQ(run_program(failing).exit_code, 1);
  const auto fail = run_program({"report", out.path(), "--annotate"});
  EXPECT_EQ(fail.exit_code, 0) << "the pages are written, whatever the verdict is: " << fail.all();
  EXPECT_THAT(fail.out, testing::StartsWith("::error file="));
  EXPECT_THAT(fail.out, HasSubstr("CHUNK_OVERLAP"));
  EXPECT_THAT(run_program({"report", out.path()}).out, Not(HasSubstr("::error")));
}

TEST(ReportVerb, warns_of_each_field_that_it_does_not_know) {
  const TemporaryDirectory out;
  const std::string text = to_json(whole_report());
  write_text(out.path() + "/report.json", "{\n  \"later\": 1," + text.substr(1));
  const auto result = run_program({"report", out.path()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(result.err,
            "warning: " + out.path() + "/report.json: the unknown field 'later' was ignored\n");
}

/// Writes a report whose first scenario ended with this verdict.
void write_night(const std::string& directory, reports::Verdict verdict, const std::string& day) {
  reports::Report report = reports::sample_report();
  report.started = "2026-01-" + day + "T00:00:00Z";
  report.scenarios[0].verdict = verdict;
  if (verdict == reports::Verdict::kFail) report.scenarios[0].code = "HANG";
  report.verdict = overall(report);
  write_text(directory + "/report.json", to_json(report));
}

TEST(ReportVerb, history_marks_what_is_new_ongoing_rare_or_resolved) {
  using reports::Verdict;
  const TemporaryDirectory out;
  const auto night = [&](const std::string& day) { return out.path() + "/nights/" + day; };
  write_night(night("01"), Verdict::kPass, "01");
  write_night(night("02"), Verdict::kFail, "02");
  write_night(night("03"), Verdict::kPass, "03");
  write_night(night("04"), Verdict::kFail, "04");
  const auto page = [&](const std::string& of, const std::vector<std::string>& history) {
    std::vector<std::string> words = {"report", night(of), "--out", out.path() + "/pages"};
    for (const auto& one : history) words.insert(words.end(), {"--history", one});
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 0) << result.all();
    return text_of(out.path() + "/pages/report.html");
  };
  EXPECT_THAT(page("02", {night("01")}), HasSubstr("\"name\":\"one\",\"status\":\"new\""));
  EXPECT_THAT(page("04", {night("02")}), HasSubstr("\"name\":\"one\",\"status\":\"ongoing\""));
  EXPECT_THAT(page("04", {night("03"), night("02")}),
              HasSubstr("\"name\":\"one\",\"status\":\"rare\""));
  EXPECT_THAT(page("03", {night("02")}), HasSubstr("\"resolved\":[[\"one\",\"FP\"]]"));
  EXPECT_THAT(page("04", {}), HasSubstr("\"history\":null"));
  // The folder of all of them stands for those that are older.
  EXPECT_THAT(page("04", {out.path() + "/nights"}), HasSubstr("\"strip\":\"PFPF\""));
  EXPECT_THAT(text_of(out.path() + "/pages/summary.md"), HasSubstr(" (fail, rare)\n"));
  const auto later = run_program({"report", night("03"), "--history", out.path() + "/nights"});
  EXPECT_THAT(later.err, HasSubstr("because it is not older: " + night("04")));
  EXPECT_THAT(later.err, Not(HasSubstr(night("03")))) << "itself is no news";
  const auto annotated =
      run_program({"report", night("02"), "--annotate", "--history", night("01")});
  EXPECT_THAT(annotated.out, HasSubstr("fail (new)%3A one"));
}

TEST(ReportVerb, a_history_that_is_none_is_exit_code_2) {
  const TemporaryDirectory out;
  write_night(out.path() + "/now", reports::Verdict::kPass, "02");
  std::filesystem::create_directories(out.path() + "/empty");
  write_text(out.path() + "/torn/report.json", "{");
  reports::Report other = reports::sample_report();
  other.lane = reports::ReportLane::kMpi;
  write_text(out.path() + "/mpi/report.json", to_json(other));
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"/empty", "there is neither a report.json nor a folder with one"},
      {"/nowhere", "is missing"},
      {"/torn", "is cut off"},
      {"/mpi", "reports of two lanes are not comparable: sim and mpi"}};
  for (const auto& [name, says] : rows) {
    const auto result =
        run_program({"report", out.path() + "/now", "--history", out.path() + name});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(out.path() + "/now/report.html")) << name;
  }
}

TEST(ReportVerb, what_is_no_report_is_exit_code_2) {
  const TemporaryDirectory out;
  write_text(out.path() + "/torn/report.json", to_json(whole_report()).substr(0, 1000));
  const std::vector<std::pair<std::string, std::string>> rows = {
      {out.path(), "report.json"},
      {out.path() + "/nowhere", "nowhere"},
      {out.path() + "/torn", "report.json: is cut off"},
      {out.path() + "/torn/report.json", "is cut off"}};
  for (const auto& [directory, says] : rows) {
    const auto result = run_program({"report", directory});
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, HasSubstr(says));
    EXPECT_FALSE(std::filesystem::exists(directory + "/report.html"));
  }
}

TEST(ReportSchema, has_each_field_that_the_program_writes_and_no_other) {
  const std::string python = python_with("jsonschema");
  if (python.empty())
    GTEST_SKIP() << "no jsonschema for Python: apt-get install python3-jsonschema";
  const TemporaryDirectory out;
  const std::string whole = out.path() + "/whole.json";
  write_text(whole, to_json(whole_report()));
  const std::string full = out.path() + "/full";
  const std::vector<std::vector<std::string>> commands = {
      {"run", kPageScenario, "--double", "--report", full},
      {"search", "properties", "continuity", "--cases", "2", "--report", full},
      {"mutants", kPageScenario, "--only", "floor-vs-ceil-chunk", "--report", full},
      {"search", "exhaust", "--max-world", "2", "--report", full},
      {"search", "explore", "--runs", "3", "--quiet", "--report", full},
      {"run", kPageScenario, "--mutant", "floor-vs-ceil-chunk", "--report", out.path() + "/fail"},
      {"verify", REPRISE_TEST_DATA "/mcore_0.16.1_gpt_tp2_pp2", "--report", out.path() + "/files"}};
  for (const auto& command : commands) run_program(command);
  EXPECT_TRUE(succeeds(python + " " REPRISE_SOURCE_DIR "/tests/pages/check_schema.py " +
                       REPRISE_SOURCE_DIR "/docs/report.schema.json " + whole + " " + full +
                       "/report.json " + out.path() + "/fail/report.json " + out.path() +
                       "/files/report.json"));
  const std::string text = text_of(full + "/report.json");
  for (const char* part : {"\"exhaustive\": {", "\"coverage\": {", "\"caught_by\": [\n"}) {
    EXPECT_THAT(text, HasSubstr(part)) << "the report must have this part";
  }
}

TEST(ReportPage, works_in_a_browser) {
  const std::string python = python_with("selenium.webdriver");
  if (python.empty()) GTEST_SKIP() << "no selenium for Python: apt-get install python3-selenium";
  for (const char* program : {"chromium", "chromedriver"}) {
    if (is_installed(program)) continue;
    GTEST_SKIP() << "no " << program << ": apt-get install chromium chromium-driver";
  }
  const TemporaryDirectory out;
  const auto report = [&](const std::string& name) { return out.path() + "/" + name; };
  run_program({"run", kPageScenario, kOtherPageScenario, "--report", report("pass")});
  run_program({"run", kPageScenario, kOtherPageScenario, "--mutant",
               "compute-weights-not-installed", "--report", report("fail")});
  EXPECT_THAT(text_of(report("pass/report.html")), HasSubstr("\"v pass\""));
  EXPECT_THAT(text_of(report("fail/report.html")), HasSubstr("\"v fail\""));
  write_text(report("whole/report.json"), to_json(whole_report()));
  ASSERT_EQ(run_program({"report", report("whole")}).exit_code, 0);
  write_night(report("night"), reports::Verdict::kFail, "03");
  write_night(report("pasts/1"), reports::Verdict::kPass, "01");
  write_night(report("pasts/2"), reports::Verdict::kFail, "02");
  ASSERT_EQ(run_program({"report", report("night"), "--history", report("pasts")}).exit_code, 0);
  const char* shots = std::getenv("REPRISE_SHOTS");
  EXPECT_TRUE(succeeds(python + " " REPRISE_SOURCE_DIR "/tests/pages/check_page.py " + out.path() +
                       " " + (shots == nullptr ? "" : shots)));
}

}  // namespace
}  // namespace reprise::test
