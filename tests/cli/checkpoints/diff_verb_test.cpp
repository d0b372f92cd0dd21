// Tests the output and exit code of `reprise diff` when part of the content was not compared.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

const std::string kDp2 = "mcore_0.16.1_gpt_dp2";
const std::string kTp2 = "mcore_0.16.1_gpt_tp2_pp2";
const std::string kBuckets = "mcore_0.16.1_buckets/iter_0000010";

std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  return text.substr(text.rfind('\n', end) + 1);
}

/// Replaces the object's bytes.
void replace_object(const Victim& victim, const std::string& key, const std::string& item) {
  victim.write("__99_0.distcp", item);
  victim.edit_metadata([&](Metadata& metadata) {
    metadata.catalog.files.emplace_back("__99_0.distcp");
    for (auto& object : metadata.catalog.objects) {
      if (object.key != key) continue;
      object.file = static_cast<FileIndex>(metadata.catalog.files.size() - 1);
      object.range = {0, item.size()};
    }
  });
}

TEST(DiffVerb, WhatIsBoundToALayoutDecidesUnlessItIsAccepted) {
  const contracts::TemporaryDirectory reports;
  const auto open = run_program({"diff", "--report", reports.path(), data(kDp2), data(kTp2)});
  EXPECT_EQ(open.exit_code, 3) << open.all();
  EXPECT_THAT(last_line(open.out), AllOf(StartsWith("not all compared: nothing differs in "),
                                         HasSubstr(" objects and 1 file beside them compared, "),
                                         EndsWith(" not comparable\n")));
  const Json report = Json::parse(text_of(reports.path() + "/report.json"));
  EXPECT_EQ(report["verdict"], "inconclusive");
  EXPECT_THAT(report["scenarios"][0]["reason"].get<std::string>(),
              AllOf(HasSubstr("not compared, first common_state['args']"), HasSubstr("layout")));

  const auto accepted = run_program(
      {"diff", "--accept", "layout-bound", "--report", reports.path(), data(kDp2), data(kTp2)});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.all();
  EXPECT_THAT(last_line(accepted.out),
              AllOf(StartsWith("same: "), EndsWith(" not comparable and accepted\n")));
  const Json passed = Json::parse(text_of(reports.path() + "/report.json"));
  EXPECT_EQ(passed["verdict"], "pass");
  EXPECT_THAT(passed["scenarios"][0]["replay"].get<std::string>(),
              StartsWith("reprise diff --accept layout-bound /"));
  EXPECT_FALSE(passed["scenarios"][0]["ranks"][0]["excused"].empty());
}

TEST(DiffVerb, JsonTellsTheOutcomeAndCountsWhatWasNotCompared) {
  const auto json = Json::parse(run_program({"diff", "--json", data(kDp2), data(kTp2)}).out);
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["outcome"], "not all compared");
  EXPECT_GT(json["not_comparable"], 0);
  EXPECT_EQ(json["not_known"], 0);
  EXPECT_EQ(json["different"], 0);
  EXPECT_GT(json["tensors_compared"], 0);
  EXPECT_EQ(json["checksums_checked"], true);
  const auto accepted = Json::parse(
      run_program({"diff", "--json", "--accept", "layout-bound", data(kDp2), data(kTp2)}).out);
  EXPECT_EQ(accepted["same"], true);
  EXPECT_EQ(accepted["layout_bound_accepted"], true);
}

TEST(DiffVerb, JsonTellsTheOptionsThatWereGivenAndNoOthers) {
  const auto options = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"diff", "--json"});
    words.insert(words.end(), {data(kDp2), data(kTp2)});
    return Json::parse(run_program(words).out)["options"];
  };
  EXPECT_EQ(options({}), Json::object());
  EXPECT_EQ(options({"--accept", "layout-bound", "--keys", "a", "--keys", "b c", "--values",
                     "--no-checksums", "--rename", "s/^embedding/e/", "--ignore", "z", "-q"}),
            (Json{{"accept", Json::array({"layout-bound"})},
                  {"keys", Json::array({"a", "b c"})},
                  {"ignore", Json::array({"z"})},
                  {"rename", Json::array({"s/^embedding/e/"})},
                  {"values", true},
                  {"no_checksums", true}}));
}

TEST(DiffVerb, ALostDistributedOptimizerIsDifferentWhateverIsAccepted) {
  const Victim victim(kBuckets);
  victim.edit_metadata([](Metadata& metadata) {
    std::erase_if(metadata.catalog.tensors,
                  [](const StoredTensor& tensor) { return tensor.key.starts_with("optimizer."); });
  });
  const auto result =
      run_program({"diff", "--accept", "layout-bound", data(kBuckets), victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("only in A"));
  EXPECT_THAT(last_line(result.out), StartsWith("different: 3 differ; "));
}

TEST(DiffVerb, OtherBytesOfWhatIsNotInterpretedAreNotKnown) {
  const std::string fixture = "torch_2.15.0/same_content_a";
  const Victim a(fixture);
  const Victim b(fixture);
  const Json whole = Json::parse(run_program({"diff", "--json", a.path(), b.path()}).out);
  std::string key;
  for (const auto& object : whole["objects"]) key = object["key"];
  replace_object(a, key, text_of(data("torch_2.15.0/objects/foreign_class.pt")));
  replace_object(b, key, text_of(data("torch_2.15.0/objects/legacy_stream.pt")));
  const auto result = run_program({"diff", a.path(), b.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out,
              HasSubstr(key + ": not known, different bytes, which are not interpreted"));
  EXPECT_THAT(last_line(result.out), HasSubstr(", 1 not known"));
  const auto ignored = run_program({"diff", "--ignore", key, a.path(), b.path()});
  EXPECT_EQ(ignored.exit_code, 0) << ignored.all();
  EXPECT_THAT(last_line(ignored.out), AllOf(StartsWith("same: "), HasSubstr(" ignored")));
}

TEST(DiffVerb, WhatWasLeftOutOnPurposeIsSaidInTheLastLine) {
  const std::string a = data("torch_2.15.0/same_content_a");
  EXPECT_THAT(last_line(run_program({"diff", "--keys", "layers.1", a, a}).out),
              HasSubstr(" keys ignored"));
  EXPECT_THAT(last_line(run_program({"diff", a, a}).out), Not(HasSubstr("ignored")));
  EXPECT_THAT(last_line(run_program({"diff", "--no-checksums", a, a}).out),
              EndsWith(", checksums not checked\n"));
  const auto nothing = run_program({"diff", "--ignore", ".", a, a});
  EXPECT_EQ(nothing.exit_code, 3) << nothing.all();
  EXPECT_THAT(last_line(nothing.out),
              AllOf(StartsWith("nothing was compared"), HasSubstr(" keys ignored")));
}

TEST(DiffVerb, KeysThatNameTheCommonStateCompareAllOfIt) {
  const auto result = run_program({"diff", "--keys", "^common_state$", data(kDp2), data(kBuckets)});
  EXPECT_EQ(result.exit_code, 1) << result.all();
}

TEST(DiffVerb, FilesBesideThePayloadAreComparedAndCounted) {
  const contracts::TemporaryDirectory reports;
  const Victim a("torch_2.15.0/same_content_a");
  const Victim b("torch_2.15.0/same_content_a");
  const auto run = [&] {
    const auto result = run_program({"diff", "--report", reports.path(), a.path(), b.path()});
    return std::pair(result.exit_code, result.out);
  };
  for (const auto* side : {&a, &b}) side->write("meta.pt", "anything");
  const auto [same, words_of_same] = run();
  EXPECT_EQ(same, 0) << words_of_same;
  EXPECT_THAT(last_line(words_of_same), HasSubstr(" objects and 1 file beside them compared"));
  const std::int64_t compared =
      Json::parse(text_of(reports.path() + "/report.json"))["scenarios"][0]["ranks"][0]["compared"];

  b.write("meta.pt", "anything else");
  const auto [open, words_of_open] = run();
  EXPECT_EQ(open, 3) << words_of_open;
  EXPECT_THAT(words_of_open,
              HasSubstr("meta.pt: not known, different bytes, which are not interpreted"));
  EXPECT_THAT(last_line(words_of_open),
              AllOf(StartsWith("not all compared: "), HasSubstr(", 1 not known")));
  const Json report = Json::parse(text_of(reports.path() + "/report.json"));
  EXPECT_THAT(report["scenarios"][0]["reason"].get<std::string>(),
              HasSubstr("1 not compared, first meta.pt"));
  EXPECT_EQ(report["scenarios"][0]["ranks"][0]["compared"], compared - 1);
  EXPECT_EQ(run_program({"diff", "--ignore", "^meta\\.pt$", a.path(), b.path()}).exit_code, 0);

  b.remove("meta.pt");
  const auto [different, words_of_different] = run();
  EXPECT_EQ(different, 1) << words_of_different;
  EXPECT_THAT(words_of_different, HasSubstr("meta.pt: only in A"));
  EXPECT_THAT(last_line(words_of_different), StartsWith("different: 1 differ; "));
  const Json failed = Json::parse(text_of(reports.path() + "/report.json"));
  EXPECT_EQ(failed["scenarios"][0]["reason"], "meta.pt: only in A");

  const Json json = Json::parse(run_program({"diff", "--json", a.path(), b.path()}).out);
  EXPECT_EQ(json["files_compared"], 0);
  EXPECT_EQ(json["different"], 1);
  EXPECT_EQ(json["files_beside_payload"][0]["key"], "meta.pt");
  EXPECT_EQ(json["files_beside_payload"][0]["verdict"], "only in A");
}

TEST(DiffVerb, OnlyWhatIsBoundToALayoutCanBeAccepted) {
  const auto result = run_program({"diff", "--accept", "everything", data(kDp2), data(kTp2)});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("only layout-bound can be accepted"));
  EXPECT_THAT(run_program({"diff", "--help"}).out,
              AllOf(HasSubstr("--accept layout-bound"), HasSubstr("3 if nothing differs")));
}

}  // namespace
}  // namespace reprise::test
