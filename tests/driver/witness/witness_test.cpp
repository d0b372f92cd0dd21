// Tests the reader of witness files, and the arithmetic of their digests.
#include "driver/witness/witness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "core/digest/witness_digest.hpp"
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

template <class T, std::size_t N>
std::string digest_text(const std::string& key, DType dtype, const Dims& shape,
                        const std::array<T, N>& elements) {
  const auto bytes =
      as_bytes(std::string_view(reinterpret_cast<const char*>(elements.data()), N * sizeof(T)));
  return hex(
      witness_digest(witness_key(key, name_of(dtype)), dtype, shape, Box::whole(shape), bytes));
}

/// docs/witness.md and tests/trainers/test_witness.py list the same test vectors.
TEST(WitnessDigest, GivesTheKnownNumbers) {
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(digest_text("model.w", DType::kFloat32, {2, 2}, std::array{1.F, 2.F, 3.F, 4.F}),
            "a2f7d39de7b68a8a");
  EXPECT_EQ(digest_text("n", DType::kInt64, {}, std::array{std::int64_t{7}}), "f64d5212941744ae");
  EXPECT_EQ(digest_text("flag", DType::kBool, {3}, std::array{true, false, true}),
            "d187eb957a8d7fcf");
  EXPECT_EQ(digest_text("half", DType::kFloat16, {2},
                        std::array{std::uint16_t{0x3c00}, std::uint16_t{0xc000}}),
            "ef76c4af55e551b3");
}

TEST(WitnessDigest, AddsUpOverDisjointBoxes) {
  const std::array<float, 6> whole = {1, 2, 3, 4, 5, 6};
  const auto bytes = [](const auto& values) {
    return ByteSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * 4);
  };
  const std::uint64_t key = witness_key("k", "float32");
  const auto part = [&](const Box& box, const auto& values) {
    return witness_digest(key, DType::kFloat32, {2, 3}, box, bytes(values));
  };
  EXPECT_EQ(part({{0, 0}, {2, 1}}, std::array{1.F, 4.F}) +
                part({{0, 1}, {2, 2}}, std::array{2.F, 3.F, 5.F, 6.F}),
            part({{0, 0}, {2, 3}}, whole));
  EXPECT_EQ(part({{1, 0}, {0, 3}}, std::array<float, 0>{}), 0U);
}

TEST(Witness, ReadsAWholeFile) {
  const RankWitness witness = parse_witness(Recorded().first[1], "f");
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
  const std::string text = Recorded().first[0];
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
  EXPECT_THAT(refusal_of(start + kDone + step_line(0, 1)), HasSubstr("after it was done"));
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
  EXPECT_THAT(refused("", object + "," + object), HasSubstr("is there twice"));
}

std::string refused_tensor(const std::string& tensor) {
  return refusal_of(start_line(0, 0) + R"({"what":"state","when":"save","step":1,"tensors":[)" +
                    tensor + "],\"objects\":[]}\n");
}

TEST(Witness, RefusesTensorsThatCannotBe) {
  EXPECT_EQ(refused_tensor(R"({"key":"w","dtype":"int32","shape":[4],"boxes":[]})"), "");
  EXPECT_THAT(refused_tensor(R"({"key":"w","dtype":"int33","shape":[4],"boxes":[]})"),
              HasSubstr("no dtype"));
  EXPECT_THAT(refused_tensor(R"({"key":"w","dtype":"int32","shape":[-1],"boxes":[]})"),
              HasSubstr("negative"));
  EXPECT_THAT(refused_tensor(R"({"key":"w","dtype":"int32","shape":[4],"boxes":[)" +
                             box_json(3, 2, 1) + "]}"),
              HasSubstr("no box"));
  EXPECT_THAT(
      refused_tensor(
          R"({"key":"w","dtype":"int32","shape":[4],"boxes":[{"at":[0],"size":[1],"digest":"1"}]})"),
      HasSubstr("hexadecimal digits"));
}

}  // namespace
}  // namespace reprise::driver
