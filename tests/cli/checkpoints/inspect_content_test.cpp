// Tests that `inspect` reports the same content as torch. Torch's own descriptions are in
// tests/data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/value_json.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;

/// Returns the checkpoints that have torch's description next to them.
std::vector<std::string> described() {
  constexpr std::string_view kEnding = ".expected.json";
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(REPRISE_TEST_DATA)) {
    std::string name = fs::relative(entry.path(), REPRISE_TEST_DATA).string();
    if (!name.ends_with(kEnding)) continue;
    name.resize(name.size() - kEnding.size());
    if (name.ends_with("/objects") || name.ends_with("/spellings")) continue;  // no checkpoints
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::map<std::string, std::string> digests_of(const Json& inspected) {
  std::map<std::string, std::string> digests;
  for (const auto& tensor : inspected["tensors"]) {
    const auto key = tensor["key"].get<std::string>();
    const auto [known, is_new] =
        digests.emplace(key.substr(0, key.find("@rank")), tensor["sha256"]);
    EXPECT_EQ(known->second, tensor["sha256"])
        << key << ": all ranks have the same value in the fixtures";
  }
  return digests;
}

TEST(InspectContent, DigestsAreThoseThatTorchHashed) {
  ASSERT_GT(described().size(), 15U);
  for (const auto& name : described()) {
    const auto result = run_program({"inspect", "--json", "--sha256", data(name)});
    ASSERT_EQ(result.exit_code, 0) << name << result.all();
    std::map<std::string, std::string> expected;
    std::ifstream file(data(name) + ".expected.json");
    const Json account = Json::parse(file);
    for (const auto& [key, tensor] : account["tensors"].items()) {
      expected[key] = tensor["sha256"];
    }
    EXPECT_EQ(digests_of(Json::parse(result.out)), expected) << name;
  }
}

/// Returns the digests by key that a verb prints with --json.
std::map<std::string, std::string> printed_digests(std::vector<std::string> words) {
  words.emplace_back("--json");
  const auto result = run_program(words);
  EXPECT_EQ(result.exit_code, 0) << result.all();
  std::map<std::string, std::string> digests;
  const Json document = Json::parse(result.out);
  for (const Json& tensor : document["tensors"]) {
    digests[tensor["key"]] = tensor["digest"];
    EXPECT_EQ(tensor.contains("sha256"), words.size() == 5) << tensor["key"];
  }
  return digests;
}

TEST(InspectContent, DigestsAreThoseOfTheVerbDigest) {
  for (const auto& name : described()) {
    const auto expected = printed_digests({"digest", data(name)});
    ASSERT_FALSE(expected.empty()) << name;
    EXPECT_EQ(printed_digests({"inspect", "--digest", data(name)}), expected) << name;
    // Whole tensors are read for both, and chunks for the digest alone.
    EXPECT_EQ(printed_digests({"inspect", "--digest", "--sha256", data(name)}), expected) << name;
  }
}

TEST(InspectContent, TheDigestsOfCopiesAreEqual) {
  const std::string folder = "torch_2.15.0/";
  const auto a = printed_digests({"inspect", "--digest", data(folder + "same_content_a")});
  EXPECT_EQ(printed_digests({"inspect", "--digest", data(folder + "same_content_b")}), a);
  EXPECT_NE(printed_digests({"inspect", "--digest", data(folder + "different_content")}), a);
}

TEST(InspectContent, NoNumberOfThreadsChangesTheOutput) {
  const Victim damaged("torch_2.15.0/same_content_a");
  for (const char* key : {"embedding", "ids"}) {
    const auto place = damaged.elements_of(key);
    damaged.flip(place.file, place.offset + 5);
  }
  for (const std::string& path : {data("mcore_0.16.1_gpt_dp2"), damaged.path()}) {
    for (const char* form : {"--digest", "--sha256", "--stats"}) {
      const auto with = [&](const char* threads) {
        return run_program({"inspect", "--json", form, "--jobs", threads, path});
      };
      const auto one = with("1");
      EXPECT_EQ(one.exit_code, path == damaged.path() ? 2 : 0) << one.all();
      for (const char* threads : {"2", "7"}) {
        EXPECT_EQ(with(threads).all(), one.all()) << form << " --jobs " << threads;
      }
    }
  }
  for (const char* threads : {"0", "-1", "two", "1025"}) {
    EXPECT_EQ(run_program({"inspect", "--digest", "--jobs", threads, damaged.path()}).exit_code, 2);
  }
}

TEST(InspectContent, ATableForPeopleHoldsThemToo) {
  const auto result =
      run_program({"inspect", "--sha256", "--keys", "^ids$", data("torch_2.15.0/same_content_a")});
  EXPECT_THAT(result.out,  // SHA-256 of 0..6 as int64
              HasSubstr("81845a01dafa45c9b26e10a7af52a92e8604d5d8ef690f1e3ccdcfe3b5c6ae98"));
}

TEST(InspectContent, OneBitOfPayloadChangesOneDigest) {
  const Victim victim("torch_2.15.0/same_content_a");
  const auto inspect = [&victim](int exit_code) {
    const auto result = run_program({"inspect", "--json", "--sha256", victim.path()});
    EXPECT_EQ(result.exit_code, exit_code) << result.all();
    return digests_of(Json::parse(result.out));
  };
  const auto before = inspect(0);
  const auto place = victim.elements_of("embedding");
  victim.flip(place.file, place.offset + 5);
  const auto after = inspect(2);
  for (const auto& [key, digest] : before) {
    EXPECT_EQ(after.at(key) == digest, key != "embedding") << key;
  }
}

TEST(InspectContent, WhatDoesNotHaveItsChecksumIsDamage) {
  const std::vector<std::vector<std::string>> forms = {
      {"--sha256"}, {"--digest"}, {"--stats"}, {"--sha256", "--json"}, {"--digest", "--json"}};
  for (const auto& form : forms) {
    const Victim victim("torch_2.15.0/same_content_a");
    const auto place = victim.elements_of("embedding");
    victim.flip(place.file, place.offset + 5);
    std::vector<std::string> words = {"inspect", victim.path()};
    words.insert(words.end(), form.begin(), form.end());
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << result.all();
    EXPECT_THAT(result.err, HasSubstr("CHECKSUM"));
    EXPECT_THAT(result.err, HasSubstr("embedding"));
    EXPECT_THAT(result.err, HasSubstr(place.file));
    if (form.size() == 2) {
      EXPECT_EQ(Json::parse(result.out)["damage"][0]["key"], "embedding");
    }
    words.insert(words.end(), {"--keys", "layers"});  // the other tensors are undamaged
    EXPECT_EQ(run_program(words).exit_code, 0);
  }
}

TEST(ValueJson, EveryKindOfValueCanBeToldFromEveryOther) {
  const std::vector<Value> values = {
      NoneType{},
      false,
      0,
      0.0,
      -0.0,
      BigInt{{std::byte{0}, std::byte{0x80}}},
      "",
      "0",
      Bytes{},
      Bytes{std::byte{0xab}},
      List{},
      List{0},
      Tuple{},
      Tuple{{0}},
      Set{},
      Set{{}, true},
      Dict{},
      Dict{{0, 1}},
      Name{"torch", "float32"},
      TensorValue{DType::kUInt8, {1}, {std::byte{0}}},
      TensorValue{DType::kUInt8, {1}, {std::byte{1}}},
      TensorValue{DType::kInt8, {1}, {std::byte{0}}},
      Object{{"m", "C"}, Object::How::kCall},
      Object{{"m", "C"}, Object::How::kNew},
      Object{{"m", "C"}, Object::How::kNew, {0}},
      Object{{"m", "C"}, Object::How::kNew, {}, {0}},
      Object{{"m", "C"}, Object::How::kNew, {}, {}, {0}},
      Object{{"m", "C"}, Object::How::kNew, {}, {}, {}, {{0, 0}}},
  };
  std::map<std::string, std::size_t> seen;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto [at, is_new] = seen.emplace(cli::value_json(values[i]).dump(), i);
    EXPECT_TRUE(is_new) << at->first << ": values " << at->second << " and " << i;
  }
  EXPECT_EQ(cli::value_json(Tuple{{-1, 1.5, Bytes{std::byte{0xab}}}}).dump(),
            R"({"tuple":[-1,{"float":"3ff8000000000000"},{"bytes":"ab"}]})");
}

const std::string kHealthy = "mcore_0.16.1_gpt_tp2_pp2";

struct HealthRow {
  std::vector<std::string> options;
  int exit_code;
  const char* words;
};

TEST(Health, limits_decide_the_exit_code) {
  const HealthRow rows[] = {
      {{"--health"}, 0, "healthy: 4,368 numbers in 36 tensors looked at, 0 errors, 0 warnings"},
      {{"--health", "--limit", "abs=0.01"},
       1,
       "error LOAD_REJECTED: the largest absolute value is"},
      {{"--health", "--limit", "abs=0.01"}, 1, "not healthy: 4,368 numbers"},
      {{"--health", "--limit", "abs=1e30"}, 0, "healthy:"},
      {{"--health", "--limit", "zeros=0", "--limit", "abs=1e30"}, 1, "are zero"},
      {{"--limit", "nan=0"}, 2, "--limit needs --health"},
      {{"--health", "--no-payload"}, 2, "--no-payload leaves out"},
      {{"--health", "--limit", "nan"}, 2, "--limit nan: not KIND=N, such as nan=0"},
      {{"--health", "--limit", "nan=-1"}, 2, "not a count"},
      {{"--health", "--limit", "inf=1.5"}, 2, "not a count"},
      {{"--health", "--limit", "zeros=1.5"}, 2, "not a share"},
      {{"--health", "--limit", "abs=inf"}, 2, "not a number"},
      {{"--health", "--limit", "abs="}, 2, "not a number"},
      {{"--health", "--limit", "size=3"}, 2, "the kinds are nan, inf, zeros, denormals, abs, "},
  };
  for (const HealthRow& row : rows) {
    SCOPED_TRACE(row.options.back() + ' ' + row.words);
    std::vector<std::string> arguments{"verify", data(kHealthy)};
    arguments.insert(arguments.end(), row.options.begin(), row.options.end());
    const auto result = run_program(arguments);
    EXPECT_EQ(result.exit_code, row.exit_code) << result.all();
    EXPECT_THAT(result.all(), HasSubstr(row.words));
  }
}

TEST(Health, a_report_fails_with_it) {
  const contracts::TemporaryDirectory directory;
  const auto report = directory.path() + "/report";
  const auto result = run_program(
      {"verify", "--health", "--limit", "abs=0.01", "--report", report, data(kHealthy)});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  const Json json = [&] {
    std::ifstream file(report + "/report.json");
    return Json::parse(file);
  }();
  EXPECT_EQ(json["scenarios"][0]["verdict"], "fail");
  EXPECT_EQ(json["scenarios"][0]["code"], "LOAD_REJECTED");
}

TEST(Health, stats_are_printed_and_filtered) {
  const auto table = run_program({"inspect", "--stats", "--keys", "final", data(kHealthy)});
  EXPECT_EQ(table.exit_code, 0) << table.all();
  EXPECT_THAT(table.out, HasSubstr("denormal"));
  const auto result =
      run_program({"inspect", "--stats", "--json", "--keys", "final", data(kHealthy)});
  const Json json = Json::parse(result.out);
  ASSERT_FALSE(json["tensors"].empty());
  for (const auto& tensor : json["tensors"]) {
    EXPECT_GT(tensor["stats"]["numbers"].get<int>(), 0);
    EXPECT_LE(tensor["stats"]["min"].get<double>(), tensor["stats"]["mean"].get<double>());
  }
  EXPECT_EQ(json["damage"], Json::array());
}

}  // namespace
}  // namespace reprise::test
