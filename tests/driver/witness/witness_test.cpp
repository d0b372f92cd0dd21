// Tests the reader of witness files.
#include "driver/witness/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/read_error.hpp"
#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  try {
    parse_witness(text, "life0-rank0.jsonl");
    return "";
  } catch (const reports::ReadError& error) {
    return error.what();
  }
}

TEST(Witness, ReadsAWholeFile) {
  const RankWitness witness = parse_witness(RecordedFiles().first[1], "f");
  EXPECT_EQ(witness.rank, 1);
  EXPECT_EQ(witness.world, 2);
  EXPECT_EQ(witness.steps.size(), 3U);
  EXPECT_EQ(witness.steps[2].metrics.at("loss"), 0x1.3p+0);
  ASSERT_EQ(witness.states.size(), 2U);
  EXPECT_EQ(witness.states[0].tensors[0].boxes[0].box, (Box{{2}, {2}}));
  EXPECT_TRUE(witness.done);
  EXPECT_FALSE(witness.torn);
}

TEST(Witness, NotesATornLastLine) {
  const std::string text = RecordedFiles().first[0];
  const RankWitness witness = parse_witness(text.substr(0, text.size() - 5), "f");
  EXPECT_TRUE(witness.torn);
  EXPECT_FALSE(witness.done);
}

TEST(Witness, RefusesEveryOtherDeviation) {
  const std::string start = start_line(0, 0);
  const auto refused = [&](const std::string& line) { return refusal_of(start + line + "\n"); };
  EXPECT_THAT(refusal_of(step_line(0, 1)), HasSubstr("life0-rank0.jsonl:1"));
  EXPECT_THAT(refusal_of(start + start), HasSubstr("life0-rank0.jsonl:2"));
  EXPECT_THAT(refused("{\"what\": \"ste"), HasSubstr("life0-rank0.jsonl:2"));
  EXPECT_THAT(refused(R"({"what": "nothing"})"), HasSubstr("unknown"));
  EXPECT_THAT(refused(R"({"what": "step", "step": 1, "loss": "1.5"})"), HasSubstr("hexadecimal"));
  EXPECT_THAT(refused(R"({"what": "step", "step": 1, "loss": 1.5})"), HasSubstr("loss"));
  EXPECT_THAT(refused(R"({"what": "step", "step": 1, "step": 2})"), HasSubstr("twice"));
  EXPECT_THAT(refused(R"({"what": "phase", "name": "a", "edge": "middle"})"), HasSubstr("edge"));
  EXPECT_THAT(refusal_of(start + kDone + step_line(0, 1)), HasSubstr("after the end"));
}

TEST(Witness, RefusesAFieldThatNothingJudges) {
  const auto refused = [&](const std::string& line) {
    return refusal_of(start_line(0, 0) + line + "\n");
  };
  EXPECT_THAT(refused(R"({"what": "step", "step": 1, "tokens": "0x1p+0"})"), HasSubstr("tokens"));
  EXPECT_THAT(refused(R"({"what": "phase", "name": "a", "edge": "begin", "at": 1})"),
              HasSubstr("at"));
  EXPECT_THAT(
      refused(R"({"what": "state", "when": "end", "step": 1, "tensors": [], "objects": [], )"
              R"("buffers": []})"),
      HasSubstr("buffers"));
  EXPECT_THAT(refused(R"({"what": "done", "code": 0})"), HasSubstr("code"));
  EXPECT_THAT(refused(R"({"what": "exit", "code": 0, "why": "", "rank": 1})"), HasSubstr("rank"));
}

TEST(Witness, RefusesWhatIsToldTwice) {
  const auto refused = [&](const std::string& tensors, const std::string& objects) {
    return refusal_of(start_line(0, 0) +
                      R"({"what": "state", "when": "end", "step": 1, "tensors": [)" + tensors +
                      R"(], "objects": [)" + objects + "]}\n");
  };
  const std::string box = R"({"at": [0], "size": [1], "digest": "0000000000000001"})";
  const auto tensor = [&](const std::string& boxes) {
    return R"({"key": "w", "dtype": "int32", "shape": [2], "boxes": [)" + boxes + "]}";
  };
  const std::string object = R"({"key": "o", "digest": null})";
  EXPECT_THAT(refused(tensor(box) + "," + tensor(box), ""), HasSubstr("box [0:1] a second time"));
  EXPECT_THAT(refused(tensor(box + "," + box), ""), HasSubstr("box [0:1] a second time"));
  EXPECT_THAT(refused("", object + "," + object), HasSubstr("occurs twice"));
}

std::string refused_tensor(const std::string& tensor) {
  return refusal_of(start_line(0, 0) + R"({"what":"state","when":"save","step":1,"tensors":[)" +
                    tensor + "],\"objects\":[]}\n");
}

TEST(Witness, RefusesTensorsThatCannotBe) {
  EXPECT_EQ(refused_tensor(R"({"key":"w","dtype":"int32","shape":[4],"boxes":[]})"), "");
  EXPECT_THAT(refused_tensor(R"({"key":"w","dtype":"int33","shape":[4],"boxes":[]})"),
              HasSubstr("not a dtype"));
  EXPECT_THAT(refused_tensor(R"({"key":"w","dtype":"int32","shape":[-1],"boxes":[]})"),
              HasSubstr("negative"));
  EXPECT_THAT(refused_tensor(R"({"key":"w","dtype":"int32","shape":[4],"boxes":[)" +
                             box_json(3, 2, 1) + "]}"),
              HasSubstr("not a box"));
  EXPECT_THAT(
      refused_tensor(
          R"({"key":"w","dtype":"int32","shape":[4],"boxes":[{"at":[0],"size":[1],"digest":"1"}]})"),
      HasSubstr("hexadecimal digits"));
}

}  // namespace
}  // namespace reprise::driver
