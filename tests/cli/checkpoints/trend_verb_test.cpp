// Tests `reprise trend` on runs that torch and Megatron-Core saved, and on copies of them that hold
// stale bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::trend_verb_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string fixture(const std::string& name) {
  return std::string(REPRISE_TEST_DATA) + "/changes_2.15.0/" + name;
}

/// A copy of a run.
class RunCopy {
 public:
  explicit RunCopy(const std::string& name) {
    fs::copy(fixture(name), path(), fs::copy_options::recursive);
  }
  std::string path(const std::string& name = "") const {
    return directory_.path() + "/run" + (name.empty() ? "" : "/" + name);
  }
  /// Puts the bytes of one generation in the place of another.
  void replace(const std::string& name, const std::string& by) const {
    fs::remove_all(path(name));
    fs::copy(path(by), path(name), fs::copy_options::recursive);
  }

 private:
  contracts::TemporaryDirectory directory_;
};

TEST(TrendVerb, a_healthy_run_of_torch_moves_on) {
  const auto result = run_program({"trend", fixture("run")});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("2 weights without moments never changed: "
                              "model.frozen.bias, model.frozen.weight"),
                    HasSubstr("moving on: 2 checkpoints compared with the one before, 0 "
                              "errors, 0 warnings\n")));
  const auto json = Json::parse(run_program({"trend", "--json", fixture("run")}).out);
  EXPECT_EQ(json["verdict"], "moving on");
  ASSERT_EQ(json["checkpoints"].size(), 3U);
  const Json& last = json["checkpoints"][2];
  EXPECT_EQ(last["name"], "step-6");
  EXPECT_EQ(last["iteration"], 6);
  EXPECT_EQ(last["weights"], 7);
  EXPECT_EQ(last["weights_changed"], 7);
  EXPECT_EQ(last["unchanged"], Json::parse(R"(["model.frozen.bias", "model.frozen.weight"])"));
  EXPECT_EQ(last["bytes_shared"], (64 + 8) * 4);
}

TEST(TrendVerb, a_warm_up_from_a_rate_of_0_is_healthy) {
  const auto result = run_program({"trend", fixture("warm_up")});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("note ZERO_RATE: "), HasSubstr("0 errors, 0 warnings")));
  const RunCopy run("warm_up");
  run.replace("step-4", "step-3");
  EXPECT_EQ(run_program({"trend", run.path()}).exit_code, 1);
}

TEST(TrendVerb, a_healthy_run_of_megatron_moves_on) {
  const auto result = run_program({"trend", "--json", fixture("megatron")});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const auto json = Json::parse(result.out);
  ASSERT_EQ(json["checkpoints"].size(), 3U);
  EXPECT_EQ(json["checkpoints"][1]["iteration"], 20);
  EXPECT_GT(json["checkpoints"][1]["weights"], 5);
  for (const Json& finding : json["findings"]) EXPECT_EQ(finding["severity"], "note") << finding;
}

TEST(TrendVerb, later_checkpoints_that_hold_the_first_are_stale) {
  for (const char* name : {"run", "megatron"}) {
    const RunCopy run(name);
    const bool torch = std::string(name) == "run";
    run.replace(torch ? "step-4" : "iter_0000020", torch ? "step-2" : "iter_0000010");
    run.replace(torch ? "step-6" : "iter_0000030", torch ? "step-2" : "iter_0000010");
    const auto result = run_program({"trend", run.path()});
    EXPECT_EQ(result.exit_code, 1) << result.all();
    EXPECT_THAT(result.out,
                AllOf(HasSubstr("error STALE_BYTES: "), HasSubstr("error STALE_ITERATION: "),
                      HasSubstr("stale: 4 errors")))
        << name;
  }
}

TEST(TrendVerb, one_checkpoint_alone_is_inconclusive) {
  const RunCopy run("run");
  fs::remove_all(run.path("step-4"));
  fs::remove_all(run.path("step-6"));
  const auto result = run_program({"trend", run.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, HasSubstr("nothing to compare"));
  EXPECT_EQ(run_program({"trend", run.path("step-2")}).exit_code, 3);
}

TEST(TrendVerb, what_can_t_be_read_is_told_and_decides) {
  const RunCopy run("run");
  fs::resize_file(run.path("step-4/.metadata"), 20);
  const auto result = run_program({"trend", run.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("step-4 was not read: "), HasSubstr("not all looked at")));
  fs::remove(run.path("step-4/.metadata"));
  const auto unfinished = run_program({"trend", run.path()});
  EXPECT_EQ(unfinished.exit_code, 0) << unfinished.all();
  EXPECT_THAT(unfinished.out, HasSubstr("note: no checkpoint is in step-4\n"));
}

TEST(TrendVerb, checkpoints_may_be_given_one_by_one) {
  const auto result = run_program({"trend", fixture("run/step-2"), fixture("run/step-6")});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  const auto back = run_program({"trend", fixture("run/step-6"), fixture("run/step-2")});
  EXPECT_EQ(back.exit_code, 1) << back.all();
  EXPECT_THAT(back.out, HasSubstr("STALE_ITERATION"));
  const auto last =
      Json::parse(run_program({"trend", "--json", "--last", "2", fixture("run")}).out);
  EXPECT_EQ(last["checkpoints"].size(), 2U);
}

TEST(TrendVerb, a_directory_without_checkpoints_is_refused) {
  const contracts::TemporaryDirectory empty;
  const auto result = run_program({"trend", empty.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("NOT_FOUND"));
}

TEST(TrendVerb, verify_compares_the_numbers_with_an_older_checkpoint) {
  const auto good = run_program(
      {"verify", "--health", "--against", fixture("run/step-2"), fixture("run/step-4")});
  EXPECT_EQ(good.exit_code, 0) << good.all();
  EXPECT_THAT(good.out, HasSubstr("compared with the older checkpoint, 0 errors, 0 warnings"));
  const auto same = run_program(
      {"verify", "--health", "--against", fixture("run/step-4"), fixture("run/step-4")});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  EXPECT_THAT(same.out, HasSubstr("none of 7 weights differs from the older checkpoint"));
  const auto grown = run_program({"verify", "--health", "--limit", "norm-growth=1.0001",
                                  "--against", fixture("run/step-2"), fixture("run/step-6")});
  EXPECT_EQ(grown.exit_code, 1) << grown.all();
  EXPECT_THAT(grown.out, HasSubstr("the norm grew from "));
  const auto other =
      run_program({"verify", "--health", "--against", fixture("a"), fixture("run/step-2")});
  EXPECT_EQ(other.exit_code, 3) << other.all();
  const auto unasked = run_program({"verify", "--against", fixture("a"), fixture("b")});
  EXPECT_EQ(unasked.exit_code, 2);
}

/// Writes a file of one tensor in bytes.
void write_tensor(const fs::path& path, const std::string& key, const std::string& dtype,
                  const std::string& bytes, const std::string& shape) {
  fs::create_directories(path.parent_path());
  const std::string header = R"({")" + key + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
                             R"(,"data_offsets":[0,)" + std::to_string(bytes.size()) + "]}}";
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size());
  std::ofstream(path, std::ios::binary) << size << header << bytes;
}

TEST(TrendVerb, where_no_weight_is_compared_it_does_not_say_moving_on) {
  const contracts::TemporaryDirectory directory;
  const std::string run = directory.path() + "/run";
  for (const char* step : {"step-1", "step-2", "step-3"}) {
    write_tensor(run + "/" + step + "/model.safetensors", "w", "I8", std::string(128, '\1'),
                 "[128]");
  }
  const auto integers = run_program({"trend", run});
  EXPECT_EQ(integers.exit_code, 3) << integers.all();
  EXPECT_THAT(integers.out, HasSubstr("not judged: no checkpoint has a weight of floats"));
  EXPECT_EQ(Json::parse(run_program({"trend", "--json", run}).out)["verdict"], "inconclusive");
  for (const char* step : {"step-1", "step-2", "step-3"}) {
    write_tensor(run + "/" + step + "/model.safetensors", step, "F32", std::string(128, '\1'),
                 "[32]");
  }
  const auto others = run_program({"trend", run});
  EXPECT_EQ(others.exit_code, 3) << others.all();
  EXPECT_THAT(others.out, HasSubstr("no checkpoint has a tensor in common with the one before"));
}

TEST(TrendVerb, a_step_of_a_module_is_a_weight_and_no_iteration) {
  const contracts::TemporaryDirectory directory;
  const std::string run = directory.path() + "/run";
  const std::string first("\0\0\0\x3f", 4);     // 0.5
  const std::string second("\0\0\x80\x3e", 4);  // 0.25
  write_tensor(run + "/step-1/model.safetensors", "model.act.step", "F32", first, "[1]");
  write_tensor(run + "/step-2/model.safetensors", "model.act.step", "F32", second, "[1]");
  const auto result = run_program({"trend", run});
  EXPECT_EQ(result.exit_code, 0) << result.all();
}

TEST(TrendVerb, health_of_integers_is_not_judged) {
  const contracts::TemporaryDirectory directory;
  const std::string file = directory.path() + "/model.safetensors";
  write_tensor(file, "w", "I8", std::string(128, '\0'), "[128]");
  const auto result = run_program({"verify", "--health", file});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, HasSubstr("not judged: there are no numbers"));
}

TEST(TrendVerb, an_older_checkpoint_that_is_damaged_does_not_pass) {
  const RunCopy run("run");
  std::string largest;
  for (const auto& entry : fs::directory_iterator(run.path("step-2"))) {
    if (entry.path().extension() != ".distcp") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  const auto verify = [&run] {
    return run_program({"verify", "--health", "--against", run.path("step-2"), run.path("step-4")});
  };
  {
    // A bit within the elements of some tensor: the last record's bytes are checked, too.
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(fs::file_size(largest) / 2));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(fs::file_size(largest) / 2));
    file.put(static_cast<char>(byte ^ 1));
  }
  const auto flipped = verify();
  EXPECT_NE(flipped.exit_code, 0) << flipped.all();
  EXPECT_THAT(flipped.out, AllOf(HasSubstr("older checkpoint"), HasSubstr(": whole: ")));
  fs::resize_file(largest, 100);
  const auto cut = verify();
  EXPECT_NE(cut.exit_code, 0) << cut.all();
  EXPECT_THAT(cut.out, AllOf(HasSubstr("older checkpoint"), HasSubstr(": whole: ")));
  fs::remove_all(run.path("step-2"));
  const auto gone = verify();
  EXPECT_EQ(gone.exit_code, 3) << gone.all();
  EXPECT_THAT(gone.out, AllOf(HasSubstr("not compared with the older checkpoint"),
                              HasSubstr("0 of them compared")));
  EXPECT_EQ(
      run_program({"verify", "--all", "--health", "--against", run.path("step-4"), run.path()})
          .exit_code,
      2);
}

}  // namespace
}  // namespace reprise::test::trend_verb_test
