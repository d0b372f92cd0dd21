// Tests what a header of a safetensors file may be, and how each flaw is refused: with its code,
// key and offset.

#include "core/format/safetensors_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/geometry/folded_shape.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/core/format/items.hpp"
#include "tests/fixtures/safetensors_file.hpp"

namespace reprise::test::safetensors_header_test {
namespace {

using contracts::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kBegin = 100;  // where the JSON object begins in its file

SafetensorsHeader read(const std::string& json) {
  return read_safetensors_header(as_bytes(json), {.file = "f", .offset = kBegin});
}

std::string one(const std::string& dtype, const std::string& shape, std::uint64_t end) {
  return "{" + safetensors_entry("w", dtype, shape, 0, end) + "}";
}

TEST(SafetensorsHeader, a_header_tells_types_shapes_and_places) {
  const std::string json = "{\"__metadata__\":{\"format\":\"pt\"}," +
                           safetensors_entry("b", "BF16", "3", 24, 30) + "," +
                           safetensors_entry("a", "F32", "2,3", 0, 24) + "}  ";
  const SafetensorsHeader header = read(json);
  EXPECT_EQ(header.data_begin, 8 + json.size());
  EXPECT_EQ(header.metadata.at("format"), "pt");
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[0].key, "a");
  EXPECT_EQ(header.entries[0].dtype, DType::kFloat32);
  EXPECT_EQ(header.entries[0].shape, (Dims{2, 3}));
  EXPECT_EQ(header.entries[0].range, (ByteRange{header.data_begin, 24}));
  EXPECT_EQ(header.entries[1].range, (ByteRange{header.data_begin + 24, 6}));
}

TEST(SafetensorsHeader, every_type_has_its_width) {
  struct Row {
    const char* name;
    DType dtype;
    std::uint64_t bytes;  // of a tensor of 2 x 2
  };
  const std::vector<Row> rows = {{"BOOL", DType::kBool, 4},
                                 {"U8", DType::kUInt8, 4},
                                 {"I8", DType::kInt8, 4},
                                 {"F8_E5M2", DType::kFloat8E5M2, 4},
                                 {"F8_E4M3", DType::kFloat8E4M3FN, 4},
                                 {"F8_E8M0", DType::kFloat8E8M0FNU, 4},
                                 {"F8_E4M3FNUZ", DType::kFloat8E4M3FNUZ, 4},
                                 {"F8_E5M2FNUZ", DType::kFloat8E5M2FNUZ, 4},
                                 {"I16", DType::kInt16, 8},
                                 {"U16", DType::kUInt16, 8},
                                 {"F16", DType::kFloat16, 8},
                                 {"BF16", DType::kBFloat16, 8},
                                 {"I32", DType::kInt32, 16},
                                 {"U32", DType::kUInt32, 16},
                                 {"F32", DType::kFloat32, 16},
                                 {"C64", DType::kComplex64, 32},
                                 {"F64", DType::kFloat64, 32},
                                 {"I64", DType::kInt64, 32},
                                 {"U64", DType::kUInt64, 32}};
  for (const Row& row : rows) {
    EXPECT_EQ(read(one(row.name, "2,2", row.bytes)).entries.at(0).dtype, row.dtype) << row.name;
  }
  const SafetensorsEntry packed = read(one("F4", "2,6", 6)).entries.at(0);
  EXPECT_EQ(packed.dtype, DType::kFloat4E2M1FNx2);
  EXPECT_EQ(packed.shape, (Dims{2, 3})) << "torch's element has two values";
}

TEST(SafetensorsHeader, unusual_headers_are_read) {
  EXPECT_TRUE(read("{}").entries.empty());
  EXPECT_EQ(read(one("F32", "", 4)).entries.at(0).shape.size(), 0U);
  EXPECT_EQ(read(one("F32", "0,7", 0)).entries.at(0).range.size, 0U);
  const SafetensorsEntry folded = read(one("U8", "1,1,1,1,1,1,1,2,3", 6)).entries.at(0);
  EXPECT_EQ(folded.shape, (Dims{1, 1, 1, 1, 1, 1, 1, 6}));
  EXPECT_THAT(folded.folded, ElementsAre(2, 3));
  const std::string other =
      R"({"w":{"dtype":"U8","new":{"a":[1,null,-2.5,true,"x"]},"shape":[1],"data_offsets":[0,1]}})";
  EXPECT_EQ(read(other).entries.size(), 1U) << "fields that no reader knows are passed over";
}

TEST(SafetensorsHeader, each_flaw_has_its_code_key_and_offset) {
  const std::string two = safetensors_entry("v", "U8", "1", 0, 1);
  struct Row {
    std::string json;
    Code code;
    std::string words;
    std::string key = "w";
    std::uint64_t offset = kBegin + 4;  // behind {"w"
  };
  const std::string deep(40, '[');
  const std::vector<Row> rows = {
      {"", Code::kTornFile, "not a JSON object", "", kBegin},
      {" {}", Code::kTornFile, "not a JSON object", "", kBegin},
      {"[1]", Code::kTornFile, "not a JSON object", "", kBegin},
      {"{\"w\":", Code::kTornFile, "not JSON", "", kBegin + 5},
      {"{} x", Code::kTornFile, "not JSON", "", kBegin + 3},
      {"{}\n{}", Code::kTornFile, "not JSON", "", kBegin + 3},
      {std::string("{}\0", 3), Code::kTornFile, "NUL", "", kBegin + 2},
      {std::string("{}\0{\"w\":1}", 10), Code::kTornFile, "NUL", "", kBegin + 2},
      {"{\"\xff\":1}", Code::kTornFile, "UTF-8", "", kBegin + 2},
      {"{\"\\ud800\":1}", Code::kTornFile, "not JSON", "", kBegin + 8},
      {"{\"w\":1}", Code::kTornFile, "does not describe a tensor"},
      {"{\"w\":[]}", Code::kTornFile, "does not describe a tensor"},
      {"{\"w\":{}}", Code::kTornFile, "needs dtype, shape"},
      {"{\"__metadata__\":{\"a\":1}}", Code::kTornFile, "no text", "", kBegin + 23},
      {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", Code::kTornFile, "'a' occurs twice", "",
       kBegin + 28},
      {"{" + two + "," + two + "}", Code::kTornFile, "'v' occurs twice", "v",
       kBegin + two.size() + 5},
      {R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", Code::kTornFile,
       "'dtype' occurs twice"},
      {R"({"w":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}})", Code::kTornFile,
       "'shape' occurs twice"},
      {R"({"w":{"dtype":3,"shape":[1],"data_offsets":[0,1]}})", Code::kTornFile, "describe"},
      {R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", Code::kTornFile, "describe"},
      {R"({"w":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", Code::kTornFile, "describe"},
      {R"({"w":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", Code::kTornFile, "describe"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", Code::kTornFile, "two data"},
      {R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,99999999999999999999]}})",
       Code::kTornFile, "describe"},
      {one("F6_E2M3", "4", 3), Code::kUnsupported, "'F6_E2M3' is not supported"},
      {one("F4", "3", 2), Code::kUnsupported, "no multiple of 2"},
      {one("F4", "", 1), Code::kUnsupported, "no multiple of 2"},
      {one("F32", "2,3", 20), Code::kExtentMismatch, "20 bytes, but its dtype and shape need 24"},
      {"{" + safetensors_entry("w", "U8", "1", 5, 4) + "}", Code::kTornFile, "before they begin"},
      {one("F32", "9223372036854775807,2", 0), Code::kLimit, "2^62"},
      {one("F32", "4294967296,4294967296,0", 0), Code::kLimit, "2^62"},
      {one("U8", "1,1,1,1,1,1,1,4294967296,4294967296,0", 0), Code::kLimit, "2^62"},
      {one("U8", "18446744073709551615", 0), Code::kLimit, "2^62"},
      {"{" + safetensors_entry("w", "U8", "0", 18446744073709551615U, 18446744073709551615U) + "}",
       Code::kLimit, "data_offsets of more"},
      {"{\"w\":{\"new\":" + deep, Code::kLimit, "nested deeper"},
      {"{\"" + std::string(16385, 'k') + "\":1}", Code::kUnsupported, "a key of 16385 bytes",
       std::string(16384, 'k'), kBegin + 16388},
      {R"({"__metadata__":3})", Code::kTornFile, "describe", "", kBegin + 18},
      {R"({"w":null})", Code::kTornFile, "describe"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.json.substr(0, 200));
    const auto error = error_of([&] { read(row.json); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), row.code) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(row.words));
    EXPECT_EQ(error->place().key, row.key);
    EXPECT_EQ(error->place().file, "f");
    EXPECT_EQ(error->place().offset, row.offset) << error->what();
  }
}

TEST(SafetensorsHeader, the_metadata_may_be_null) {
  const auto header =
      read("{\"__metadata__\":null," + safetensors_entry("w", "U8", "1", 0, 1) + "}");
  EXPECT_EQ(header.entries.size(), 1U);
  EXPECT_TRUE(header.metadata.empty());
}

TEST(SafetensorsHeader, a_tensor_has_at_most_64_dimensions) {
  std::string shape = "1";
  for (int d = 1; d < 64; ++d) shape += ",1";
  EXPECT_EQ(read(one("U8", shape, 1)).entries.at(0).folded.size(), 57U);
  const auto error = error_of([&] { read(one("U8", shape + ",1", 1)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kUnsupported);
}

TEST(SafetensorsHeader, the_length_is_at_most_that_of_the_file) {
  const auto bytes = [](std::uint64_t length, std::uint64_t size) {
    Bytes first;
    append_le(first, length);
    return safetensors_header_bytes(first, size, {.file = "f", .offset = 0});
  };
  EXPECT_EQ(bytes(92, 100), 92U);
  EXPECT_EQ(bytes(kSafetensorsHeaderMax, kSafetensorsHeaderMax + 8), kSafetensorsHeaderMax);
  const auto code = [&](std::uint64_t length, std::uint64_t size) {
    return contracts::code_of([&] { bytes(length, size); });
  };
  EXPECT_EQ(code(93, 100), Code::kTornFile);
  EXPECT_EQ(code(0, 7), Code::kTornFile);
  EXPECT_EQ(code(kSafetensorsHeaderMax + 1, std::uint64_t{1} << 40U), Code::kLimit);
  EXPECT_EQ(code(~std::uint64_t{0}, std::uint64_t{1} << 40U), Code::kLimit);
}

using Found = std::tuple<Code, std::string, std::uint64_t>;  // code, key, offset

/// Tensors behind a header that ends at 10.
struct Ranges {
  const char* what;
  std::vector<ByteRange> ranges;
  std::uint64_t size;
  std::vector<Found> found;
};

TEST(SafetensorsHeader, tensors_fill_the_file_and_share_no_byte) {
  const auto error = [](Code code, const char* key, std::uint64_t offset) {
    return Found{code, key, offset};
  };
  const std::vector<Ranges> rows = {
      {"nothing", {}, 10, {}},
      {"side by side", {{10, 4}, {14, 6}}, 20, {}},
      {"empty ones between", {{10, 0}, {10, 4}, {14, 0}, {14, 6}, {20, 0}}, 20, {}},
      {"a gap before", {{12, 8}}, 20, {error(Code::kCoverageGap, "0", 10)}},
      {"a gap between", {{10, 4}, {15, 5}}, 20, {error(Code::kCoverageGap, "1", 14)}},
      {"a gap behind", {{10, 4}}, 20, {error(Code::kCoverageGap, "0", 14)}},
      {"only a gap", {}, 20, {error(Code::kCoverageGap, "", 10)}},
      {"an overlap", {{10, 6}, {15, 5}}, 20, {error(Code::kChunkOverlap, "1", 15)}},
      {"twice the same", {{10, 10}, {10, 10}}, 20, {error(Code::kChunkOverlap, "1", 10)}},
      {"an empty one within", {{10, 10}, {12, 0}}, 20, {error(Code::kChunkOverlap, "1", 12)}},
      {"a short one within",
       {{10, 9}, {12, 1}, {19, 1}},
       20,
       {error(Code::kChunkOverlap, "1", 12)}},
      {"the end is cut off", {{10, 4}, {14, 6}}, 19, {error(Code::kTornFile, "1", 14)}},
      {"all is cut off", {{10, 4}, {14, 6}}, 10, {error(Code::kTornFile, "0", 10)}},
      {"far behind",
       {{10, 4}, {std::uint64_t{1} << 62U, 6}},
       14,
       {error(Code::kTornFile, "1", std::uint64_t{1} << 62U), error(Code::kCoverageGap, "1", 14)}},
  };
  for (const Ranges& row : rows) {
    SCOPED_TRACE(row.what);
    SafetensorsHeader header{.data_begin = 10, .entries = {}, .metadata = {}};
    for (std::size_t i = 0; i < row.ranges.size(); ++i) {
      header.entries.push_back({.key = std::to_string(i), .range = row.ranges[i]});
    }
    std::vector<Found> found;
    for (const Finding& one :
         check_safetensors_layout(header, row.size, {.file = "f", .offset = 0})) {
      EXPECT_EQ(one.severity, Severity::kError);
      EXPECT_EQ(one.file, "f");
      found.emplace_back(one.code, one.key, one.offset.value_or(0));
    }
    EXPECT_EQ(found, row.found);
  }
}

TEST(SafetensorsHeader, many_flaws_of_a_kind_are_one_finding) {
  SafetensorsHeader header{.data_begin = 10, .entries = {}, .metadata = {}};
  for (std::uint64_t i = 0; i < 5; ++i) {
    header.entries.push_back({.key = std::to_string(i), .range = {11 + 2 * i, 1}});
  }
  const Findings found = check_safetensors_layout(header, 20, {.file = "f", .offset = 0});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message, HasSubstr("and 4 more in this file"));
}

/// Returns what a header says, and what is wrong with it.
std::string listing_of(const Bytes& file) {
  const ErrorPlace place{.file = "f", .offset = 0};
  const auto length = safetensors_header_bytes(file, file.size(), place);
  const SafetensorsHeader header =
      read_safetensors_header(ByteSpan(file).subspan(kSafetensorsLengthBytes, length), place);
  std::string listing;
  for (const SafetensorsEntry& entry : header.entries) {
    listing += entry.key + ' ' + std::string(name_of(entry.dtype)) + to_string(entry.shape) +
               shape_text(entry.folded) + std::to_string(entry.range.offset) + '\n';
  }
  for (const auto& [key, text] : header.metadata) listing += key + '=' + text + '\n';
  if (!check_safetensors_layout(header, file.size(), place).empty()) {
    throw Error(Code::kCoverageGap, "flaws");
  }
  return listing;
}

TEST(SafetensorsHeader, each_flipped_bit_of_a_real_header_is_damage_or_shows) {
  std::size_t damaged = 0;
  std::size_t shown = 0;
  std::size_t hidden = 0;
  for (const char* name :
       {"one/model.safetensors", "dtypes/model.safetensors", "adapter/adapter_model.safetensors",
        "pieces/shard-00002-model-00001-of-00001.safetensors"}) {
    Bytes file = test_file(std::string("safetensors_0.8.0/") + name);
    const std::string before = listing_of(file);
    const std::size_t end = kSafetensorsLengthBytes + load_le<std::uint64_t>(file);
    const std::size_t object_end = as_text(file).rfind('}', end - 1);
    for (std::size_t bit = 0; bit < end * 8; ++bit) {
      const auto mask = static_cast<std::byte>(1U << (bit % 8));
      file[bit / 8] ^= mask;
      std::string after;
      const auto refused = error_of([&] { after = listing_of(file); });
      file[bit / 8] ^= mask;
      if (refused) {
        ++damaged;
      } else if (after != before) {
        ++shown;
      } else {
        ++hidden;
        EXPECT_GT(bit / 8, object_end)
            << name << ": only the spaces behind the object mean nothing";
      }
    }
  }
  EXPECT_GT(damaged, 20'000U);
  EXPECT_GT(shown, 1'000U);
  EXPECT_LT(hidden, 100U) << damaged << ' ' << shown;
}

}  // namespace
}  // namespace reprise::test::safetensors_header_test
