// Tests that parse_report is the inverse of to_json and refuses all other texts.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/print.hpp"
#include "reports/evidence.hpp"
#include "reports/read_error.hpp"
#include "tests/reports/sample_report.hpp"

namespace reprise::reports::report_reader_test {
namespace {

using Json = nlohmann::json;

/// Returns the error for the text; empty if the text is a report.
std::string complaint(const std::string& text) {
  try {
    parse_report(text, "r.json");
    return "";
  } catch (const ReadError& error) {
    return error.what();
  }
}

std::string text_of(const Json& document) { return document.dump(2) + "\n"; }

/// Returns the sample report, changed to contain values that no passing report has.
Report awkward_report() {
  Report report = sample_report();
  ScenarioResult& one = report.scenarios[0];
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  one.verdict = Verdict::kFail;
  one.code = "ZERO_FILL";
  one.reason = "zeros\tand \x01 \xf0\x9f\x98\x80";
  one.ranks[0].max_delta = std::nan("");
  one.ranks[1].max_delta = kInfinity;
  one.ranks[2].max_delta = 1e-300;
  one.ranks[0].bit_mismatches = std::numeric_limits<std::uint64_t>::max();
  one.ranks[1].metrics_finite = false;
  one.ranks[1].shape_mismatches = {"w"};
  one.ranks[1].dtype_mismatches = {"v"};
  one.ranks[0].gpu =
      RankGpu{"node0", "NVIDIA H100", "00ff", "0000:01:00", {"NET/Socket/0", "P2P/CUMEM"}};
  one.first_difference = FirstDifference{.rank = 1,
                                         .key = "w",
                                         .index = {0, std::numeric_limits<std::int64_t>::min()},
                                         .saved = "1",
                                         .loaded = "2",
                                         .comes_from = "rank 0"};
  one.failure = Failure{.cause = "zeros",
                        .life = 1,
                        .layout = "tp2",
                        .step = 3,
                        .phase = "load",
                        .rank = 1,
                        .coordinates = "tp1",
                        .key = "w",
                        .index = {0, 1},
                        .saved = "1",
                        .loaded = "2",
                        .comes_from = "rank 0",
                        .consequences = {{.life = 1, .ranks = {0}, .code = "HANG", .text = "it"}},
                        .consequences_left_out = 1,
                        .placement = sample_placement()};
  one.generations = {{.step = 2, .life = 0, .state = "kept", .loaded_by = {1}},
                     {.step = 4, .life = 1, .state = "damaged", .skipped_by = {2, 3}}};
  one.trajectory[0].loss = -kInfinity;
  one.trajectory[0].uninterrupted_lr = std::nullopt;
  one.trajectory[0].uninterrupted_loss_scale = std::nullopt;
  one.lives[0].exit_code = std::numeric_limits<int>::min();
  report.scenarios[1].verdict = Verdict::kInconclusive;
  report.properties[0].verdict = Verdict::kFail;
  report.properties[0].counterexample = "dp=1";
  report.properties[0].code = "HANG";
  report.properties[1].counterexample = "";
  report.mutants[0].caught = false;
  report.project.dirty = true;
  take_another_course(report.scenarios[2]);
  report.shards = {{"scenarios", 2, 4, 318}};
  report.verdict = Verdict::kFail;
  return report;
}

TEST(ReportReader, what_was_written_is_read_and_written_the_same) {
  for (const auto& report : {sample_report(), awkward_report(), Report{}}) {
    const std::string text = to_json(report);
    EXPECT_EQ(to_json(parse_report(text, "r.json")), text);
  }
}

/// Changes one value of the document at a time. Each time, the reader must either refuse the
/// document or return a different report.
TEST(ReportReader, no_field_is_forgotten) {
  const Json document = Json::parse(to_json(awkward_report()));
  std::vector<std::string> refused;
  int read = 0;
  const Json flat = document.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    Json changed = document;
    Json& field = changed[Json::json_pointer(pointer)];
    if (value.is_string()) field = value.get<std::string>() + "x";
    if (value.is_boolean()) field = !value.get<bool>();
    if (value.is_number()) field = 77;
    if (changed == document) continue;  // the value is null or an empty list
    const std::string text = text_of(changed);
    if (!complaint(text).empty()) {
      refused.push_back(pointer.substr(pointer.rfind('/') + 1));
    } else {
      ++read;
      EXPECT_EQ(Json::parse(to_json(parse_report(text, "r.json"))), changed) << pointer;
    }
  }
  EXPECT_GT(read, 150);
  // The reader refuses these changes: an unknown verdict, outcome or lane; text in place of a
  // number; a count that does not match its items; and a later schema version.
  const std::set<std::string> names(refused.begin(), refused.end());
  EXPECT_EQ(names, (std::set<std::string>{"caught", "code", "doubled", "lane", "loss", "max_delta",
                                          "mismatches", "outcome", "passed", "run", "runs_doubled",
                                          "schema_version", "state", "status", "verdict"}));
}

/// True if the keys of the object there are names that users choose.
bool has_names_for_keys(const std::string& at) {
  return at.find(".distribution") != std::string::npos || at.ends_with(".refused") ||
         at.ends_with("].caught") || at == "matrix.left_out";
}

/// Returns the expected error for a document without this field. Empty if no error is expected,
/// because reports of older versions lack the field or because its name is chosen by users.
std::string complaint_without(const std::string& at, const std::string& key) {
  const std::string name = at.empty() ? key : at + "." + key;
  for (const char* optional :
       {"bound_bytes", "left_to_time", "property_cases", "empty", "exhaustive_more", "hsdp",
        "matrix", "coverage", "failure", "placement", "timeline", "generations", "crashed",
        "earlier_tries", "shards", "gpu"}) {
    if (key == optional) return "";
  }
  if (key == "code" && at.starts_with("properties[")) return "";
  if (key == "doubled") {  // of a version that did not write it, no scenario has it
    return at == "scenarios[3]"
               ? ""
               : "r.json: determinism.runs_doubled: says 3, but 2 of the scenarios "
                 "listed ran twice";
  }
  if (key == "exhaustive") {
    return "r.json: exhaustive_more: has an entry, but 'exhaustive' has none";
  }
  if (has_names_for_keys(at)) return "";
  if (at.find("caught_by") != std::string::npos && (key == "scenario" || key == "property")) {
    return "r.json: " + at + ": names neither a scenario nor a property, or both";
  }
  return "r.json: " + name + ": is missing";
}

TEST(ReportReader, a_field_that_is_gone_or_of_another_type_is_named) {
  const Json document = Json::parse(to_json(awkward_report()));
  const std::function<void(const Json&, const Json::json_pointer&, const std::string&)> visit =
      [&](const Json& node, const Json::json_pointer& at, const std::string& path) {
        for (std::size_t i = 0; node.is_array() && i < node.size(); ++i) {
          visit(node[i], at / i, path + "[" + std::to_string(i) + "]");
        }
        if (!node.is_object()) return;
        for (const auto& [key, value] : node.items()) {
          if (key == "policy") continue;
          const bool given = has_names_for_keys(path);
          const std::string name = path.empty() ? key
                                   : given      ? path + "[" + key + "]"
                                                : path + "." + key;
          Json changed = document;
          changed[at].erase(key);
          EXPECT_EQ(complaint(text_of(changed)), complaint_without(path, key));
          changed[at][key] = Json::array({Json::object()});
          EXPECT_EQ(complaint(text_of(changed)).find("r.json: " + name), 0U) << name;
          visit(value, at / key, name);
        }
      };
  visit(document, Json::json_pointer(), "");
}

TEST(ReportReader, every_prefix_is_refused) {
  Report report = awkward_report();
  report.scenarios.resize(1);
  const std::string text = to_json(report);
  ASSERT_EQ(complaint(text), "");
  for (std::size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {
    ASSERT_NE(complaint(text.substr(0, bytes)), "") << bytes;
  }
  const std::string half = complaint(text.substr(0, text.size() / 2));
  EXPECT_NE(half.find("is cut off after " + with_commas(text.size() / 2)), std::string::npos);
  EXPECT_EQ(complaint(text.substr(0, text.size() - 1)), "") << "whole except for its last newline";
}

TEST(ReportReader, torn_bytes_are_refused_or_read_as_they_are_without_a_crash) {
  const std::string text = to_json(sample_report());
  const std::string bytes("\0\xff\"}9", 5);
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::string torn = text;
    torn[at] = bytes[at % bytes.size()];
    const std::string said = complaint(torn);
    if (torn[at] == '\0' || torn[at] == '\xff') {
      EXPECT_NE(said, "") << at;
    }
  }
}

TEST(ReportReader, says_what_is_wrong) {
  const std::string good = to_json(sample_report());
  const auto with = [](const char* pointer, const Json& value) {
    Json document = Json::parse(to_json(sample_report()));
    document[Json::json_pointer(pointer)] = value;
    return text_of(document);
  };
  const std::pair<std::string, std::string> rows[] = {
      {"", "is empty"},
      {" \n", "is empty"},
      {"[]\n", "is not a JSON object"},
      {"null\n", "is not a JSON object"},
      {"{} {}\n", "is not valid JSON at byte 4"},
      {good + "x\n", "is not valid JSON at byte"},
      {good + good, "is not valid JSON at byte"},
      {good + std::string(8, '\0'), "is not valid JSON at byte " + std::to_string(good.size() + 1)},
      {good + '\0' + "x\n", "is not valid JSON at byte " + std::to_string(good.size() + 1)},
      {"\xef\xbb\xbf\n", "is cut off"},
      {"{\"a\": 1e999}\n", "holds a number that is too large"},
      {"{\"a\": 1, \"b\": {\"a\": 2, \"a\": 2}}\n", "a: occurs twice in one object"},
      {std::string(100000, '['), "is cut off"},
      {"{}\n", "schema_version: is missing"},
      {with("/schema_version", 3),
       "schema_version: is 3; this program reads 2; a newer reprise wrote the report"},
      {with("/schema_version", 0), "schema_version: is 0; this program reads 2"},
      {with("/schema_version", 1),
       "schema_version: is 1; this program reads 2; run the lane again with this program"},
      {with("/schema_version", "1"), "expected an integer, found the text \"1\""},
      {with("/verdict", "passed"), "verdict: 'passed' is not a verdict"},
      {with("/scenarios/0/incarnations/0/outcome", "lost"),
       "scenarios[0].incarnations[0].outcome: 'lost' is not an outcome of a life; the outcomes "
       "are: ran"},
      {with("/lane", "cpu"),
       "lane: 'cpu' is not a lane; the lanes are: files, gpu, mpi, program, sim, watch"},
      {with("/lanes/run", 4), "lanes.run: says 4, but 3 of the scenarios listed ran"},
      {with("/lanes/planned", -1), "lanes.planned: expected a count, found the number -1"},
      {with("/lanes/planned", 1.0), "expected a count, found a number that is not an integer"},
      {with("/scenarios", nullptr), "scenarios: expected a list, found null"},
      {with("/scenarios/0", Json::array()), "scenarios[0]"},
      {with("/scenarios/1/ranks/0/max_delta", "0"), "expected a number, \"nan\" or \"inf\""},
      {with("/scenarios/1/ranks/0/max_delta", nullptr), "expected a number"},
      {with("/scenarios/1/ranks/0/rank", true), "scenarios[1].ranks[0].rank: expected an integer"},
      {with("/scenarios/1/world", 1LL << 40), "expected an integer of 32 bits"},
      {with("/scenarios/1/ranks/0/loaded_step", ~0ULL), "expected an integer below 2^63"},
      {with("/project/dirty", 0), "project.dirty: expected true or false"},
      {with("/project", "x"), "project: expected an object"},
      {with("/not_claimed/0", 1), "not_claimed[0]: expected a text"},
  };
  for (const auto& [text, fragment] : rows) {
    EXPECT_NE(complaint(text).find(fragment), std::string::npos) << fragment << '\n'
                                                                 << complaint(text).substr(0, 200);
    EXPECT_EQ(complaint(text).find("r.json: "), 0U) << fragment;
  }
}

TEST(ReportReader, a_report_without_declared_bounds_is_read_and_written_equal) {
  Report report = sample_report();
  for (auto& result : report.scenarios) result.bound_bytes.reset();
  const std::string text = to_json(report);
  EXPECT_EQ(text.find("bound_bytes"), std::string::npos);
  EXPECT_EQ(to_json(parse_report(text, "r.json")), text);
}

TEST(ReportReader, fields_of_later_programs_are_passed_over_and_listed) {
  Json document = Json::parse(to_json(sample_report()));
  document["later"] = {1, 2};
  document["scenarios"][0]["later"] = "x";
  document["scenarios"][1]["later"] = "y";
  document["scenarios"][1]["ranks"][2]["node"] = {{"name", "n1"}};
  const Report report = parse_report(text_of(document), "r.json");
  EXPECT_EQ(to_json(report), to_json(sample_report()));
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const auto& field : unknown_fields(text_of(document), "r.json", report)) {
    found.emplace_back(field.path, field.count);
  }
  const std::vector<std::pair<std::string, std::uint64_t>> expected = {
      {"later", 1}, {"scenarios[].later", 2}, {"scenarios[].ranks[].node", 1}};
  EXPECT_EQ(found, expected);
}

TEST(ReportReader, knows_every_written_field_and_those_of_older_versions) {
  std::ifstream file(REPRISE_SOURCE_DIR "/reports/evidence/h100-a5ad3088/report-gpu-one.json");
  const std::string old((std::istreambuf_iterator<char>(file)), {});
  for (const auto& text : {to_json(sample_report()), to_json(awkward_report()), old}) {
    EXPECT_TRUE(unknown_fields(text, "r.json", parse_report(text, "r.json")).empty());
  }
}

}  // namespace
}  // namespace reprise::reports::report_reader_test
