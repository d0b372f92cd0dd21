// Tests the reader of files of torch.save on archives made by hand: hostile pickles, storages that
// are not there, names. Real files are read in tests/cli/checkpoints/torch_save_verbs_test.cpp.

#include "core/format/torch_save.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/format/torch_records.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "tests/core/format/items.hpp"
#include "tests/core/format/pickles.hpp"

namespace reprise::test::torch_save_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kNone = ")";

std::string number(std::int32_t value) { return "J" + le(value); }

/// A float32 tensor of this shape and these strides in storage `key` of `count` elements.
std::string tensor(const std::string& key, std::int32_t count, std::int32_t offset,
                   const std::vector<std::int32_t>& shape,
                   const std::vector<std::int32_t>& strides) {
  const auto tuple = [](const std::vector<std::int32_t>& numbers) {
    std::string all = "(";
    for (const std::int32_t one : numbers) all += number(one);
    return all + "t";
  };
  return global("torch._utils", "_rebuild_tensor_v2") + "((" + text("storage") +
         global("torch", "FloatStorage") + text(key) + text("cpu") + number(count) + "tQ" +
         number(offset) + tuple(shape) + tuple(strides) + "\x89" +
         global("collections", "OrderedDict") + ")RtR";
}

std::string dict(const std::string& entries) { return "}(" + entries + "u"; }

struct Made {
  Bytes bytes;
  TorchSaveFile read() const {
    SpanSource source(bytes, {.file = "made.pt", .offset = 0});
    return read_torch_save(source);
  }
};

Made file(const std::string& body, const std::vector<std::pair<std::string, Bytes>>& storages = {},
          const char* order = "little") {
  ArchiveWriter out("made");
  out.add("data.pkl", pickle(body));
  out.add("byteorder", to_bytes(order));
  for (const auto& [key, content] : storages) out.add("data/" + key, content);
  add_trailing_records(out, 0, 0);
  return {out.take()};
}

std::vector<std::string> keys_of(const TorchSaveFile& file) {
  std::vector<std::string> keys;
  for (const auto& tensor : file.tensors) keys.push_back(tensor.key);
  for (const auto& object : file.objects) keys.push_back(object.key);
  return keys;
}

TEST(TorchSave, names_join_the_keys_of_dicts_and_the_positions_of_lists) {
  const std::string one = tensor("0", 2, 0, {2}, {1});
  const TorchSaveFile read =
      file(dict(text("a.b") + one + text("a") + dict(text("c") + one + number(7) + one) +
                text("list") + "](" + one + dict("") + "e" + text("numbers") + "](" + number(1) +
                "e"),
           {{"0", Bytes(8)}})
          .read();
  EXPECT_THAT(keys_of(read), ElementsAre("a.b", "a.c", "a.7", "list.0", "list.1", "numbers"));
  EXPECT_TRUE(read.objects[0].dropped_by_dcp);
  EXPECT_FALSE(read.objects[1].dropped_by_dcp);
  ASSERT_EQ(read.findings.size(), 1U);  // the tensors share a storage
  EXPECT_THAT(read.findings[0].message, HasSubstr("tied"));
}

TEST(TorchSave, a_tuple_with_tensors_at_any_depth_is_taken_apart) {
  const std::string model = dict(text("w") + tensor("0", 2, 0, {2}, {1}));
  const std::string plain = "(" + number(3) + dict(text("b") + number(2)) + "t";
  const auto keys = [](const std::string& body) {
    const TorchSaveFile read = file(body, {{"0", Bytes(8)}}).read();
    for (const Finding& finding : read.findings) EXPECT_EQ(finding.severity, Severity::kNote);
    return keys_of(read);
  };
  EXPECT_THAT(keys("(" + model + model + "t"), ElementsAre("0.w", "1.w"));
  EXPECT_THAT(keys("(" + number(3) + model + "t"), ElementsAre("1.w", "0"));
  EXPECT_THAT(keys("](" + std::string("(") + number(3) + model + "te"),
              ElementsAre("0.1.w", "0.0"));
  EXPECT_THAT(
      keys("(" + number(3) + dict(text("d") + dict(text("e") + plain + text("f") + model)) + "t"),
      ElementsAre("1.d.f.w", "0", "1.d.e"));
  EXPECT_THAT(keys(plain), ElementsAre("value"));
}

TEST(TorchSave, a_view_has_the_bytes_from_its_first_element_to_its_last) {
  const TorchSaveFile read =
      file(dict(text("w") + tensor("0", 12, 1, {2, 3}, {1, 4})), {{"0", Bytes(48)}}, "big").read();
  ASSERT_EQ(read.tensors.size(), 1U);
  const auto& tensor = read.tensors[0];
  EXPECT_EQ(tensor.range.size, 4U * 10);  // elements 1 to 1 + 1 + 2 * 4
  EXPECT_EQ(tensor.range.offset, tensor.view->record->range.offset + 4);
  EXPECT_TRUE(tensor.view->byteswap);
  EXPECT_EQ(tensor.view->strides, (Dims{1, 4}));
}

struct Row {
  const char* what;
  std::string body;
  std::vector<std::pair<std::string, Bytes>> storages;
  Code code;
  std::string words;
  std::string key;
};

TEST(TorchSave, what_is_wrong_with_one_tensor_is_told_and_others_are_read) {
  const std::string good = text("good") + tensor("g", 2, 0, {2}, {1});
  const std::vector<Row> rows = {
      {"short",
       text("w") + tensor("0", 4, 0, {4}, {1}),
       {{"0", Bytes(12)}},
       Code::kTornFile,
       "record 'data/0' has 12 bytes, but the storage of the tensor has 16",
       "w"},
      {"missing",
       text("w") + tensor("1", 4, 0, {4}, {1}),
       {},
       Code::kCoverageGap,
       "the record of its storage is missing: data/1",
       "w"},
      {"view too large",
       text("w") + tensor("0", 4, 2, {3}, {1}),
       {{"0", Bytes(16)}},
       Code::kExtentMismatch,
       "extends beyond its storage",
       "w"},
      {"overflow",
       text("w") + tensor("0", 4, 0, {2147483647, 2147483647, 2147483647}, {0, 0, 0}),
       {{"0", Bytes(16)}},
       Code::kExtentMismatch,
       "extends beyond its storage",
       "w"},
      {"expanded",
       text("w") + tensor("0", 1, 0, {2147483647, 1024}, {0, 0}),
       {{"0", Bytes(4)}},
       Code::kUnsupported,
       "an expanded tensor of shape [2147483647, 1024]",
       "w"},
      {"same name",
       text("a") + dict(text("b") + number(1)) + text("a.b") + number(2),
       {},
       Code::kUnsupported,
       "two values have this name",
       "a.b"},
      {"key",
       text("d") + dict(number(1) + number(2) + "\x86" + number(1)),
       {},
       Code::kUnsupported,
       "a dict has a key that is neither",
       "d"},
      {"in an object",
       text("o") + global("argparse", "Namespace") + ")\x81" +
           dict(text("t") + tensor("0", 1, 0, {1}, {1})) + "b",
       {{"0", Bytes(4)}},
       Code::kUnsupported,
       "tensors are read in dicts and lists",
       "o"},
      {"itself",
       text("l") + "]q\x05(h\x05" + tensor("0", 1, 0, {1}, {1}) + "e",
       {{"0", Bytes(4)}},
       Code::kUnsupported,
       "contain themselves",
       ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    auto storages = row.storages;
    storages.emplace_back("g", Bytes(8));
    const TorchSaveFile read = file(dict(good + row.body), storages).read();
    EXPECT_EQ(read.tensors.front().key, "good");
    ASSERT_FALSE(read.findings.empty());
    const Finding& finding = read.findings.front();
    EXPECT_EQ(finding.code, row.code) << finding.message;
    EXPECT_EQ(finding.severity, Severity::kError);
    EXPECT_THAT(finding.message, HasSubstr(row.words));
    EXPECT_EQ(finding.file, "made.pt");
    EXPECT_TRUE(finding.offset.has_value());
    if (!row.key.empty()) {
      EXPECT_EQ(finding.key, row.key);
    }
  }
}

TEST(TorchSave, names_that_run_code_are_refused_and_none_is_called) {
  for (const std::string& body :
       {global("os", "system") + "(" + text("true") + "tR",
        dict(text("w") + global("builtins", "eval") + "(" + text("1") + "tR"),
        global("posix", "system") + "(" + text("true") + "tR"}) {
    EXPECT_EQ(error_of([&] { file(body).read(); }).code(), Code::kRefusedName);
  }
}

TEST(TorchSave, a_dict_that_is_held_very_often_costs_no_more_than_the_pickle) {
  // Each level holds the level below twice: 2^60 values.
  std::string body = dict(text("v") + number(1)) + "q\x01";
  for (char level = 1; level < 60; ++level) {
    body = body + "0" + dict(text("a") + "h" + level + text("b") + "h" + level) + "q" +
           static_cast<char>(level + 1);
  }
  EXPECT_EQ(error_of([&] { file(body).read(); }).code(), Code::kLimit);
}

TEST(TorchSave, of_equal_keys_the_last_value_counts_as_in_python) {
  const TorchSaveFile read =
      file(dict(text("a") + number(1) + text("a") + tensor("0", 1, 0, {1}, {1})), {{"0", Bytes(4)}})
          .read();
  EXPECT_THAT(keys_of(read), ElementsAre("a"));
  EXPECT_EQ(read.tensors.size(), 1U);
  EXPECT_TRUE(read.findings.empty());
}

TEST(TorchSave, more_records_than_an_item_may_have_are_read) {
  std::string body;
  std::vector<std::pair<std::string, Bytes>> storages;
  for (int n = 0; n < 5000; ++n) {
    const std::string key = std::to_string(n);
    body += text(key) + tensor(key, 1, 0, {1}, {1});
    storages.emplace_back(key, Bytes(4));
  }
  EXPECT_EQ(file(dict(body), storages).read().tensors.size(), 5000U);
}

}  // namespace
}  // namespace reprise::test::torch_save_test
