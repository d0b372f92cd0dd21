// Tests that the output of `reprise diff` stays readable however much differs.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/diff_text.hpp"
#include "tests/contracts/not_root.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/fixtures/written_checkpoint.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::diff_readable_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

std::string stored(WrittenCheckpoint& checkpoint) {
  checkpoint.store();
  return checkpoint.path() + "/ckpt";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Two checkpoints with 2,400 tensors that differ in one element each, and one that is the same.
struct Many {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  std::string left;
  std::string right;

  Many() {
    for (int layer = 0; layer < 800; ++layer) {
      for (const char* name : {"fc1", "fc2", "norm"}) {
        const std::string key = "layers." + std::to_string(layer) + "." + name;
        a.bytes(key, 2, 1);
        b.bytes(key, 2, layer == 7 ? 9 : 2);
      }
    }
    for (auto* side : {&a, &b}) side->bytes("embedding", 2, 1);
    a.bytes("head", 2, 1);
    left = stored(a);
    right = stored(b);
  }
};

TEST(DiffReadable, two_thousand_rows_begin_with_counts_and_are_cut_in_one_line) {
  const Many many;
  const auto result = run_program({"diff", many.left, many.right});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_GT(lines.size(), 5U);
  EXPECT_LT(lines.size(), 60U);
  EXPECT_THAT(lines[0], AllOf(StartsWith("what differs"), EndsWith("tensors")));
  EXPECT_THAT(result.out, HasSubstr("value differs    2,400\n"));
  EXPECT_THAT(result.out, HasSubstr("only in A            1\n"));
  EXPECT_THAT(result.out, HasSubstr("2,361 of 2,401 rows are not shown: --limit 0 shows all"));
  EXPECT_THAT(lines.back(), StartsWith("different: 2,401 differ; "));
  // Layer 2 comes before layer 10.
  EXPECT_LT(result.out.find("layers.2.fc1"), result.out.find("layers.10.fc1"));
  EXPECT_EQ(result.out.find("layers.100.fc1"), std::string::npos);

  const auto few = run_program({"diff", "--limit", "3", many.left, many.right});
  EXPECT_THAT(few.out, HasSubstr("2,398 of 2,401 rows are not shown"));
  const auto all = run_program({"diff", "--limit", "0", many.left, many.right});
  EXPECT_THAT(all.out, AllOf(HasSubstr("layers.799.norm"), Not(HasSubstr("not shown"))));
  EXPECT_GT(lines_of(all.out).size(), 2400U);
  const auto json =
      Json::parse(run_program({"diff", "--json", "--limit", "3", many.left, many.right}).out);
  EXPECT_EQ(json["tensors"].size(), 2402U);
  EXPECT_EQ(json["summary"]["tensors"]["different"], 2400);
  EXPECT_EQ(json["summary"]["tensors"]["only in A"], 1);
  EXPECT_EQ(json["summary"]["tensors"]["same"], 1);
}

TEST(DiffReadable, stat_counts_groups_of_keys_and_lists_no_key) {
  const Many many;
  const auto result = run_program({"diff", "--stat", many.left, many.right});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(
      result.out,
      ContainsRegex("layers\\.\\*\\.fc1 +800 +100% +1\\.04  800 value differs; max_delta 8\n"));
  EXPECT_THAT(
      result.out,
      ContainsRegex("layers\\.\\*\\.norm +800 +100% +1\\.04  800 value differs; max_delta 8\n"));
  EXPECT_THAT(result.out, ContainsRegex("head +1 +1 only in A\n"));
  EXPECT_THAT(result.out, HasSubstr("1 group is of keys the same throughout\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("layers.2")));
  EXPECT_LT(lines_of(result.out).size(), 15U);
}

/// The same tensors, with "model." before the keys of A.
struct Prefixed {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  std::string left;
  std::string right;

  Prefixed() {
    for (const char* key : {"x", "y.w", "z"}) {
      a.bytes(std::string("model.") + key, 2, 1);
      b.bytes(key, 2, 1);
    }
    left = stored(a);
    right = stored(b);
  }
};

TEST(DiffReadable, a_prefix_is_hinted_at_and_the_hint_works) {
  const Prefixed both;
  const auto left = run_program({"diff", both.left, both.right});
  EXPECT_EQ(left.exit_code, 1);
  EXPECT_THAT(left.out, HasSubstr("hint: 3 keys of A are keys of B with 'model.' before them: "
                                  "--rename 's/^model\\.//' matches them\n"));
  const auto right = run_program({"diff", both.right, both.left});
  EXPECT_THAT(right.out, HasSubstr("--rename 's/^/model./' matches them\n"));
  EXPECT_EQ(Json::parse(run_program({"diff", "--json", both.left, both.right}).out)["rename_hint"],
            "s/^model\\.//");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"diff", "--rename", "s/^model\\.//", both.left, both.right},
           {"diff", "--rename", "s/^/model./", both.right, both.left},
           {"diff", "--rename", "s,model,net,", "--rename", "s|(n)et\\.||", both.left, both.right},
       }) {
    const auto renamed = run_program(words);
    EXPECT_EQ(renamed.exit_code, 0) << words[2] << renamed.all();
    EXPECT_THAT(renamed.out, AllOf(StartsWith("same: 6 elements"), Not(HasSubstr("hint"))));
  }
}

TEST(DiffReadable, a_hint_escapes_what_means_something_in_an_expression) {
  EXPECT_EQ(cli::substitution_for({PrefixHint::Side::kLeft, "a+b/c.", 2}), "s/^a\\+b\\/c\\.//");
  EXPECT_EQ(cli::substitution_for({PrefixHint::Side::kRight, "a&b/c.", 2}), "s/^/a\\&b\\/c./");
}

TEST(DiffReadable, a_rename_that_can_t_be_meant_is_refused) {
  const Prefixed both;
  const std::pair<const char*, const char*> rows[] = {
      {"s/model", "lacks a '/'"},
      {"s/model/net", "lacks a '/'"},
      {"y/a/b/", "is not a substitution"},
      {"s", "is not a substitution"},
      {"s//x/", "has an empty expression"},
      {"s/a/b/i", "ends in 'i'"},
      {"s/(/b/", "is not a valid regular expression"},
      {"s/^no such key//", "changes no key of A"},
      {"s/.*//", "leaves nothing of the key"},
      {"s/model\\.(x|z)/one/", "two keys become 'one'"},
  };
  for (const auto& [rename, says] : rows) {
    const auto result = run_program({"diff", "--rename", rename, both.left, both.right});
    EXPECT_EQ(result.exit_code, 2) << rename << result.all();
    EXPECT_THAT(result.err, AllOf(HasSubstr("USAGE"), HasSubstr(says))) << rename;
  }
  EXPECT_EQ(run_program(
                {"diff", "--rename", "s/o/0/g", "--rename", "s/m0del\\.//", both.left, both.right})
                .exit_code,
            0);
}

TEST(DiffReadable, values_of_other_dtypes_are_compared_only_on_request) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  a.tensor("w", DType::kInt8, {1}, Bytes(1, std::byte{3}));
  b.tensor("w", DType::kUInt8, {1}, Bytes(1, std::byte{3}));
  const std::string left = stored(a);
  const std::string right = stored(b);
  const auto bits = run_program({"diff", left, right});
  EXPECT_EQ(bits.exit_code, 1);
  EXPECT_THAT(bits.out, AllOf(HasSubstr("dtype differs"), HasSubstr("int8 [1] | uint8 [1]")));
  const auto values = run_program({"diff", "--values", left, right});
  EXPECT_EQ(values.exit_code, 0) << values.all();
  EXPECT_THAT(values.out, AllOf(HasSubstr("same values, different dtype        1\n"),
                                HasSubstr("as int16: int8 [1] | uint8 [1]"),
                                HasSubstr("1 of them with different dtypes, by value")));
  const auto json = Json::parse(run_program({"diff", "--values", "--json", left, right}).out);
  EXPECT_EQ(json["tensors"][0]["verdict"], "same values");
  EXPECT_EQ(json["tensors"][0]["compared_as"], "int16");
}

TEST(DiffReadable, a_tolerance_is_refused_with_a_plain_answer) {
  const auto result = run_program({"diff", "--tolerance", "1e-6", "a", "b"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("compares bits"), HasSubstr("max_delta")));
}

TEST(DiffReadable, a_damaged_item_does_not_hide_the_others) {
  const Victim victim("torch_2.15.0/same_content_a");
  victim.remove("__1_0.distcp");
  const auto result = run_program({"diff", data("torch_2.15.0/different_content"), victim.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  const auto errors = lines_of(result.err);
  EXPECT_EQ(errors.size(), 1U) << result.err;
  EXPECT_THAT(result.err, HasSubstr("__1_0.distcp"));
  EXPECT_THAT(result.out, HasSubstr("not known"));
  EXPECT_THAT(lines_of(result.out).back(), StartsWith("damaged, so nothing above is certain: "));
}

TEST(DiffReadable, damage_is_a_failure_in_every_file_of_the_report) {
  const Victim victim("torch_2.15.0/same_content_a");
  victim.remove("__1_0.distcp");
  const contracts::TemporaryDirectory out;
  for (const char* verb : {"diff", "verify"}) {
    std::vector<std::string> words = {verb, "--report", out.path(), victim.path()};
    if (words[0] == "diff") words.push_back(data("torch_2.15.0/same_content_a"));
    EXPECT_NE(run_program(words).exit_code, 0);
    const auto report = Json::parse(text_of(out.path() + "/report.json"));
    EXPECT_EQ(report["verdict"], "fail") << verb;
    EXPECT_THAT(report["scenarios"][0]["reason"].get<std::string>(), HasSubstr("__1_0.distcp"));
    EXPECT_THAT(text_of(out.path() + "/junit.xml"), HasSubstr("failures=\"1\"")) << verb;
  }
  EXPECT_THAT(text_of(out.path() + "/diff.html"), HasSubstr("fail: damaged"));
}

TEST(DiffReadable, the_replay_line_runs_in_a_shell_whatever_the_path_holds) {
  const contracts::TemporaryDirectory out;
  const std::string copy = out.path() + "/it's a copy";
  std::filesystem::copy(data("torch_2.15.0/same_content_a"), copy);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"diff", "--keys", "la.*", copy, copy}, {"verify", copy}}) {
    auto command = words;
    command.insert(command.end(), {"--report", out.path() + "/report"});
    ASSERT_EQ(run_program(command).exit_code, 0);
    const auto report = Json::parse(text_of(out.path() + "/report/report.json"));
    const auto replay = report["scenarios"][0]["replay"].get<std::string>();
    const std::string line = "'" REPRISE_EXE "'" + replay.substr(7) + " >/dev/null 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << replay;  // NOLINT: the words are this test's own
  }
}

TEST(DiffReadable, a_file_that_may_not_be_read_is_one_line_with_its_cause) {
  if (!kAddressSpaceLimited) GTEST_SKIP() << "the leak check needs the user who started it";
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  for (int t = 0; t < 200; ++t) {
    for (auto* side : {&a, &b}) side->bytes("t" + std::to_string(t), 4, 1);
  }
  for (auto* side : {&a, &b}) side->write("ckpt/notes.txt", as_bytes("n"));
  const std::string left = stored(a);
  const std::string right = stored(b);
  namespace fs = std::filesystem;
  for (const auto& path : {a.path(), left, b.path(), right}) {
    fs::permissions(path, fs::perms::all);
  }
  fs::permissions(right + "/__0_0.distcp", fs::perms::none);
  const contracts::NotRoot not_root;
  if (::faccessat(AT_FDCWD, REPRISE_EXE, X_OK, AT_EACCESS) != 0) {
    GTEST_SKIP() << "this user can't run the program";
  }
  const auto result = run_program({"diff", left, right});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, AllOf(ContainsRegex("not known +200"), HasSubstr("Permission denied"),
                                HasSubstr("199 more items of this file"), Not(HasSubstr("t177"))));
  EXPECT_LT(lines_of(result.out).size(), 8U) << result.out;
  const auto verified = run_program({"verify", right});
  EXPECT_EQ(verified.exit_code, 2) << verified.all();
  EXPECT_LT(lines_of(verified.all()).size(), 4U) << verified.all();
}

}  // namespace
}  // namespace reprise::test::diff_readable_test
