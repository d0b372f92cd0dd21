// Tests the verb `scan`: checkpoints that real packages wrote are clean, and hostile files are not.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/contracts/not_root.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::scan_verb_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ScanVerb, checkpoints_of_real_packages_are_clean) {
  for (const char* fixture :
       {"mcore_0.16.1_gpt_tp2_pp2", "mcore_0.16.1_buckets", "mcore_0.16.1_mimo_prefixed",
        "mcore_0.16.1_llama", "torch_2.4.1/same_content_a", "torch_2.15.0/plain",
        "torch_2.15.0/fsdp2_tp_strided", "torch_2.15.0/nocollectives", "rank_files_2.15.0/fsdp2",
        "torch_checkpointing_0.1.1", "torch_save_2.15.0/views.pt",
        "torch_save_2.15.0/before_1_6.pt"}) {
    const auto result = run_program({"scan", data(fixture)});
    EXPECT_EQ(result.exit_code, 0) << fixture << result.all();
    EXPECT_THAT(result.out, HasSubstr(": clean: ")) << fixture;
  }
}

TEST(ScanVerb, a_name_that_runs_code_fails_with_its_place) {
  const auto result = run_program({"scan", data("scan_3.11.7/runs.pt")});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("runs.pt: data.pkl, offset "));
  EXPECT_THAT(result.out, HasSubstr("posix.system: refused: it runs code"));
  EXPECT_THAT(result.out, HasSubstr("not clean: 1 file looked at, 1 pickle, 4 names"));
  EXPECT_THAT(result.out, Not(HasSubstr("OrderedDict")));
  const auto all = run_program({"scan", "--names", data("scan_3.11.7/runs.pt")});
  EXPECT_THAT(all.out, HasSubstr("collections.OrderedDict: known"));
}

TEST(ScanVerb, an_unknown_name_fails_unless_it_is_allowed) {
  const std::string own = data("scan_3.11.7/own.pkl");
  EXPECT_EQ(run_program({"scan", own}).exit_code, 1);
  EXPECT_EQ(run_program({"scan", "--allow", "__main__.Own", own}).exit_code, 0);
  EXPECT_EQ(run_program({"scan", "--allow", "__main__.Other", own}).exit_code, 1);
  const auto never = run_program({"scan", "--allow", "os.system", own});
  EXPECT_EQ(never.exit_code, 2) << never.all();
  EXPECT_THAT(never.err, HasSubstr("never allowed"));
  EXPECT_EQ(run_program({"scan", "--allow", "system", own}).exit_code, 2);
}

TEST(ScanVerb, what_was_not_looked_at_is_not_clean) {
  for (const char* file : {"no_pickle.pkl", "empty.pkl", "cut.pkl", "trailing.pkl",
                           "garbled_pickle.pt", "rest_before.distcp"}) {
    const auto result = run_program({"scan", data("scan_3.11.7/") + file});
    EXPECT_EQ(result.exit_code, 3) << file << result.all();
    EXPECT_THAT(result.out, HasSubstr("not known to be clean")) << file;
  }
  EXPECT_EQ(run_program({"scan", data("torch_save_2.15.0/script.ts")}).exit_code, 3);
  EXPECT_EQ(run_program({"scan", data("nothing_here")}).exit_code, 2);
  const contracts::TemporaryDirectory directory;
  EXPECT_EQ(run_program({"scan", directory.path()}).exit_code, 3);
  std::ofstream(directory.path() + "/notes.txt") << "no pickle\n";
  const auto notes = run_program({"scan", directory.path()});
  EXPECT_EQ(notes.exit_code, 3);
  EXPECT_THAT(notes.out, HasSubstr("no pickle in 1 file: "));
}

TEST(ScanVerb, a_hidden_file_in_a_checkpoint_is_found) {
  const Victim victim("torch_2.15.0/same_content_a");
  std::filesystem::create_directories(victim.file("assets/deep"));
  std::filesystem::copy_file(data("scan_3.11.7/no_protocol.pkl"),
                             victim.file("assets/deep/tokenizer.json"));
  const auto result = run_program({"scan", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("assets/deep/tokenizer.json: offset 0: os.system: refused"));
  std::filesystem::create_directory_symlink(victim.file("assets"), victim.file("elsewhere"));
  EXPECT_THAT(run_program({"scan", victim.path()}).out, HasSubstr("elsewhere: not looked at"));
}

TEST(ScanVerb, safetensors_alone_are_clean) {
  const auto result = run_program({"scan", data("safetensors_0.8.0/pieces")});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("clean: "));
}

TEST(ScanVerb, no_pickle_at_all_is_inconclusive) {
  const contracts::TemporaryDirectory text;
  std::ofstream(text.path() + "/notes.txt") << "nothing that a pickle begins with\n";
  const auto result = run_program({"scan", text.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, HasSubstr(": no pickle to look at: "));
  const contracts::TemporaryDirectory directory;
  std::ofstream(directory.path() + "/x.pt") << "";
  const auto empty = run_program({"scan", "--json", directory.path()});
  EXPECT_EQ(empty.exit_code, 3);
  EXPECT_THAT(Json::parse(empty.out)["files"][0]["not_looked_at"][0]["why"].get<std::string>(),
              HasSubstr("by its name"));
}

TEST(ScanVerb, what_can_not_be_read_hides_no_name) {
  const contracts::TemporaryDirectory directory;
  std::filesystem::copy_file(data("scan_3.11.7/runs_p0.pkl"), directory.path() + "/runs.pkl");
  std::filesystem::create_symlink("nowhere", directory.path() + "/broken.pkl");
  const auto mixed = run_program({"scan", directory.path()});
  EXPECT_EQ(mixed.exit_code, 1) << mixed.all();
  EXPECT_THAT(mixed.out, HasSubstr("not clean: 1 file looked at, "));
  EXPECT_THAT(mixed.out, HasSubstr("; 1 could not be read"));
  const auto two = run_program({"scan", data("nothing_here"), directory.path()});
  EXPECT_EQ(two.exit_code, 1) << two.all();
  std::filesystem::remove(directory.path() + "/runs.pkl");
  EXPECT_EQ(run_program({"scan", directory.path()}).exit_code, 2);
}

TEST(ScanVerb, a_directory_that_can_not_be_read_ends_nothing) {
  if (!kAddressSpaceLimited) GTEST_SKIP() << "the leak check needs the user who started it";
  const contracts::TemporaryDirectory directory;
  std::filesystem::copy_file(data("scan_3.11.7/runs_p0.pkl"), directory.path() + "/runs.pkl");
  const std::string closed = directory.path() + "/closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  ProgramResult result;
  {
    const contracts::NotRoot not_root;
    if (::faccessat(AT_FDCWD, REPRISE_EXE, X_OK, AT_EACCESS) != 0) {
      GTEST_SKIP() << "this user can't run the program";
    }
    result = run_program({"scan", directory.path()});
  }
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_THAT(result.out, HasSubstr("; 1 could not be read"));
}

TEST(ScanVerb, json_lists_each_name) {
  const auto result = run_program({"scan", "--json", data("scan_3.11.7/hidden_record.pt")});
  EXPECT_EQ(result.exit_code, 1);
  const Json document = Json::parse(result.out);
  EXPECT_FALSE(document["clean"].get<bool>());
  const Json& names = document["files"][0]["names"];
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[3]["name"], "posix.system");
  EXPECT_EQ(names[3]["record"], "notes.txt");
  EXPECT_EQ(names[3]["standing"], "refused");
  EXPECT_GT(names[3]["offset"].get<int>(), 100);
}

}  // namespace
}  // namespace reprise::test::scan_verb_test
