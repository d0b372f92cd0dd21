#include "core/format/backend_info.hpp"

#include <gtest/gtest.h>

#include "tests/core/format/items.hpp"

namespace reprise {
namespace {

TEST(BackendInfo, reads_the_two_keys_of_new_versions_and_the_four_of_old_ones) {
  BackendInfo of_both;
  of_both.names_common = true;
  EXPECT_EQ(read_backend_info(write_backend_info()), of_both);
  const BackendInfo expected;
  EXPECT_EQ(read_backend_info(
                as_bytes(R"({"sharded_backend":"torch_dist","sharded_backend_version":1})")),
            expected);
  EXPECT_EQ(read_backend_info(as_bytes("\n{ \"sharded_backend\" : \"torch_dist\" }\n")), expected);
}

TEST(BackendInfo, writes_the_four_keys_as_python_does) {
  EXPECT_EQ(as_text(write_backend_info()),
            "{\"sharded_backend\": \"torch_dist\", \"sharded_backend_version\": 1, "
            "\"common_backend\": \"torch\", \"common_backend_version\": 1}");
}

TEST(BackendInfo, lists_unknown_keys) {
  const BackendInfo info =
      read_backend_info(as_bytes(R"({"sharded_backend":"torch_dist","colour":[1],"x":{"y":2}})"));
  EXPECT_EQ(info.unknown_keys, (std::vector<std::string>{"colour", "x"}));
}

struct Row {
  const char* text;
  Code code;
  const char* words;
};

TEST(BackendInfo, refuses_other_backends_by_name_and_what_is_no_json_by_place) {
  const Row rows[] = {
      {R"({"sharded_backend":"zarr","sharded_backend_version":1})", Code::kUnsupported, "'zarr'"},
      {R"({"sharded_backend":"tensorstore"})", Code::kUnsupported, "'tensorstore'"},
      {R"({"sharded_backend":"torch_dist","sharded_backend_version":2})", Code::kUnsupported,
       "version 2"},
      {R"({"sharded_backend":"torch_dist","common_backend":"zip"})", Code::kUnsupported, "'zip'"},
      {R"({"sharded_backend":"torch_dist","common_backend":"torch","common_backend_version":2})",
       Code::kUnsupported, "version 2"},
      {R"({"sharded_backend":7})", Code::kTornFile, "another type"},
      {R"({"sharded_backend":"torch_dist","sharded_backend_version":"1"})", Code::kTornFile,
       "another type"},
      {R"({"common_backend":"torch"})", Code::kTornFile, "missing"},
      {R"({"sharded_backend":"torch_dist","sharded_backend":"zarr"})", Code::kTornFile, "twice"},
      {R"({"sharded_backend_version":1e999})", Code::kTornFile, "not a JSON document"},
      {R"(["sharded_backend"])", Code::kTornFile, "object"},
      {"", Code::kTornFile, "not a JSON document"},
      {R"({"sharded_backend":"torch_dist")", Code::kTornFile, "not a JSON document"},
      {"{\"sharded_backend\":\"\xff\"}", Code::kTornFile, "not a JSON document"},
  };
  for (const Row& row : rows) {
    const Error error =
        test::error_of([&] { read_backend_info(as_bytes(row.text), {.file = "metadata.json"}); });
    EXPECT_EQ(error.code(), row.code) << row.text << ": " << error.what();
    EXPECT_NE(error.message().find(row.words), std::string::npos) << error.what();
    EXPECT_EQ(error.place().file, "metadata.json");
  }
}

TEST(BackendInfo, gives_the_offset_of_the_first_wrong_byte) {
  const Error error = test::error_of([] { read_backend_info(as_bytes(R"({"a":1,?})")); });
  EXPECT_EQ(error.place().offset, 7U);
}

TEST(BackendInfo, refuses_deep_and_long_documents) {
  const std::string deep = "{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}";
  EXPECT_EQ(test::error_of([&] { read_backend_info(as_bytes(deep)); }).code(), Code::kLimit);
  const std::string unclosed = "{\"a\":" + std::string(1000000, '[');
  EXPECT_EQ(test::error_of([&] { read_backend_info(as_bytes(unclosed)); }).code(), Code::kLimit);
  const std::string spaces(2 << 20, ' ');
  EXPECT_EQ(test::error_of([&] { read_backend_info(as_bytes(spaces)); }).code(), Code::kLimit);
}

TEST(BackendInfo, refuses_every_truncation) {
  const Bytes whole = write_backend_info();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ByteSpan part = ByteSpan(whole).first(size);
    EXPECT_EQ(test::error_of([&] { read_backend_info(part); }).code(), Code::kTornFile) << size;
  }
}

}  // namespace
}  // namespace reprise
