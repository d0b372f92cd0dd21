// Runs the program and checks its output and exit codes.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/contracts/not_root.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

const std::string kA = "torch_2.15.0/same_content_a";
const std::string kB = "torch_2.15.0/same_content_b";
const std::string kC = "torch_2.15.0/different_content";
const std::string kGpt = "mcore_0.16.1_gpt_tp2_pp2";

TEST(CommandLine, EveryVerbHasHelpWithExamples) {
  // Pairs of a verb and one of its options: the option for JSON output or, if the verb writes
  // files, the option that names the file.
  const std::pair<const char*, const char*> rows[] = {
      {"run", "--report"},   {"replay", "--record"}, {"mutants", "--json"}, {"shrink", "--out"},
      {"gate", "--json"},    {"inspect", "--json"},  {"verify", "--json"},  {"diff", "--json"},
      {"reshard", "--json"}, {"plan", "--json"},     {"report", "--out"}};
  const auto program = run_program({"--help"});
  EXPECT_EQ(program.exit_code, 0);
  EXPECT_THAT(program.out, HasSubstr("Exit codes"));
  for (const auto& [verb, output] : rows) {
    const auto help = run_program({verb, "--help"});
    EXPECT_EQ(help.exit_code, 0) << verb;
    EXPECT_THAT(help.out, AllOf(HasSubstr("Examples:"), HasSubstr(output),
                                HasSubstr("reprise " + std::string(verb) + " ")))
        << verb;
    EXPECT_THAT(program.out, HasSubstr("\n  " + std::string(verb) + " ")) << verb;
  }
  EXPECT_EQ(run_program({"--version"}).exit_code, 0);
}

TEST(CommandLine, WrongUsageIsExplainedWithASuggestion) {
  struct Row {
    std::vector<std::string> words;
    const char* says;
  };
  const std::vector<Row> rows = {
      {{"diff", "--jsn", "a", "b"}, "did you mean '--json'"},
      {{"verfy", "a"}, "did you mean 'verify'"},
      {{"diff", "a"}, "B is required"},
      {{}, "reprise --help"},
      {{"reshard", "--ranks", "0", "a", "b"}, "--ranks"},
      {{"reshard", "--ranks", "x", "a", "b"}, "--ranks"},
      {{"reshard", "--split", "w=1", data(kA), "never-written"}, "REGEX=DIM:N"},
      {{"reshard", "--split", ".=0:9223372036854775807", data(kA), "never-written"},
       "more than 65536 parts"},
      {{"reshard", "--ranks", "9223372036854775807", "--writers", "1", data(kA), "never-written"},
       "more than 65536"},
      {{"diff", "--keys", "(", data(kA), data(kB)}, "is not a valid regular expression"},
      {{"diff", "--ignore", "a(?!b)", data(kA), data(kB)}, "at character 2"},
      {{"inspect", "--keys", "(a)\\1", data(kA)}, "at character 4"},
      {{"reshard", "--split", "(?<=x)y=0:2", data(kA), "never-written"}, "at character 1"},
      {{"diff", "--rename", "s/(l)/$2/", data(kA), data(kB)}, "names group 2"},
      {{"plan"}, "--model"},
      {{"plan", "--model", "gpt-tyni", "--layout", "tp=2"}, "gpt-tiny"},
      {{"plan", "--model", "gpt-tiny", "--layout", "tp=2", "--ranks", "4"}, "--ranks belongs"},
      {{"plan", "--ckpt", data(kA), "--ranks", "2", "--to", "tp=2"}, "belongs to --model"},
      {{"plan", "--ckpt", data(kA), "--ranks", "2", "--layout", "tp=2"}, "not both"},
      {{"plan", "--model", "gpt-tiny", "--layout", "dp=1000000000000"}, "'dp' is too large"},
      {{"plan", "--model", "gpt-tiny", "--layout", "tp=4294967296"}, "'tp' is too large"},
      {{"plan", "--model", "gpt-tiny", "--layout", "tp=-1"}, "'tp' can't be negative"},
      {{"plan", "--model", "gpt-tiny", "--layout", "tp="}, "a number is missing after 'tp'"},
      {{"reshard", "--split", "typo_key=0:4", data(kA), "never-written"},
       "'typo_key=0:4': no tensor has such a key"},
      {{"reshard", "--split", "layers.0.weight=9:4", data(kA), "never-written"},
       "'layers.0.weight=9:4': no tensor of such a key has a dimension 9"},
  };
  for (const auto& row : rows) {
    const auto result = run_program(row.words);
    EXPECT_EQ(result.exit_code, 2) << row.says << result.all();
    EXPECT_THAT(result.err, HasSubstr(row.says));
    EXPECT_THAT(result.out, IsEmpty());
  }
}

TEST(CommandLine, NoNumberOfAnyVerbIsTakenForAnother) {
  std::size_t options = 0;
  static const std::regex kVerb("\n  ([a-z][a-z-]+) ");
  static const std::regex kNumber(R"(\n  [^\n]*?(--[a-z-]+)[^\n ]* N:INT)");
  const auto matches = [](const std::string& text, const std::regex& pattern) {
    std::set<std::string> found;
    for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern);
         at != std::sregex_iterator(); ++at) {
      found.insert((*at)[1]);
    }
    return found;
  };
  std::vector<std::vector<std::string>> verbs;
  for (const std::string& verb : matches(run_program({"--help"}).out, kVerb)) {
    if (verb != "search") verbs.push_back({verb});
  }
  for (const std::string& subject : matches(run_program({"search", "--help"}).out, kVerb)) {
    verbs.push_back({"search", subject});
  }
  for (const auto& verb : verbs) {
    const auto run_verb = [&verb](std::vector<std::string> words) {
      words.insert(words.begin(), verb.begin(), verb.end());
      return run_program(words);
    };
    for (const std::string& option : matches(run_verb({"--help"}).out, kNumber)) {
      ++options;
      for (const char* word : {"99999999999999999999", "9223372036854775808", "0x10", "1e3", "-1",
                               "-99999999999999999999", "1 ", ""}) {
        const auto result = run_verb({option, word});
        EXPECT_EQ(result.exit_code, 2) << verb.back() << ' ' << option << " '" << word << "'";
        EXPECT_THAT(result.err, HasSubstr(option)) << word;
      }
    }
  }
  EXPECT_GT(options, 20U);
}

TEST(CommandLine, a_search_has_subjects_which_as_verbs_name_it) {
  const auto help = run_program({"search", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("\n  properties "), HasSubstr("\n  explore "),
                              HasSubstr("\n  exhaust ")));
  EXPECT_THAT(run_program({"--help"}).out,
              AllOf(HasSubstr("\n  search "), Not(HasSubstr("\n  explore "))));
  const auto none = run_program({"search"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("Try 'reprise search --help'"));
  const auto unknown = run_program({"search", "explor"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("unknown subject 'explor'; did you mean 'explore'?"));
  EXPECT_THAT(run_program({"search", "explore", "--run", "1"}).err,
              HasSubstr("reprise search explore: unknown option '--run'; did you mean '--runs'?"));
  const auto subject = run_program({"search", "properties", "--list"});
  const auto alias = run_program({"properties", "--list"});
  EXPECT_EQ(alias.exit_code, 0);
  EXPECT_EQ(alias.out, subject.out);
  EXPECT_EQ(alias.err, "reprise properties: this is now 'reprise search properties'\n");
  EXPECT_THAT(subject.err, IsEmpty());
}

TEST(Inspect, ListsTensorsObjectsAndFiles) {
  const auto result = run_program({"inspect", data(kA)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("plain DCP"), HasSubstr("layers.0.weight"), HasSubstr("[6, 4]"),
                    HasSubstr("args.betas"), HasSubstr("__3_0.distcp")));
}

TEST(Inspect, FollowsTheTrackerAndShowsTheCommonState) {
  const auto result = run_program({"inspect", "--common", data(kGpt)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("iter_0000010"), HasSubstr("Megatron torch_dist"),
                                HasSubstr("common.pt"), HasSubstr("iteration: ")));
}

TEST(Inspect, KeysAndChunksNarrowAndWiden) {
  const auto result = run_program({"inspect", "--chunks", "--keys", "^embedding", data(kA)});
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("embedding"), HasSubstr("[0:3, 0:4]"), Not(HasSubstr("layers.0"))));
}

TEST(Inspect, ListsKeysAndFilesInNaturalOrder) {
  const contracts::TemporaryDirectory kept;
  const std::string file = REPRISE_SOURCE_DIR "/scenarios/placements/beyond-nine-parts.yaml";
  run_program({"run", file, "--rows", "1", "--keep", kept.path()});
  std::string checkpoint;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kept.path())) {
    if (entry.path().filename() == ".metadata") checkpoint = entry.path().parent_path().string();
  }
  const std::string out = run_program({"inspect", checkpoint}).out;
  for (const char* pair :
       {"linear_fc1.weight2 linear_fc1.weight10 ", "__2_0.distcp __11_0.distcp"}) {
    const std::string both = pair;
    const auto gap = both.find(' ');
    const auto two = out.find(both.substr(0, gap));
    ASSERT_NE(two, std::string::npos) << out;
    EXPECT_LT(two, out.find(both.substr(gap + 1))) << out;
  }
}

TEST(Inspect, AFilterThatLeavesNothingSaysSo) {
  for (const char* form : {"--chunks", "--json", "--digest", "--sha256"}) {
    const auto result = run_program({"inspect", form, "--keys", "no such key", data(kA)});
    EXPECT_EQ(result.exit_code, 3) << form;
    EXPECT_THAT(result.err, HasSubstr("no key matches")) << form;
  }
}

TEST(Inspect, JsonHoldsEveryChunk) {
  const auto json = Json::parse(run_program({"inspect", "--json", data(kGpt)}).out);
  EXPECT_EQ(json["step"], 10);
  EXPECT_GT(json["tensors"].size(), 10U);
  for (const auto& tensor : json["tensors"]) EXPECT_FALSE(tensor["chunks"].empty());
}

TEST(Verify, WholeCheckpointsEndInALineOfCounts) {
  const auto result = run_program({"verify", data(kA), data(kGpt)});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, AllOf(HasSubstr("same_content_a: whole: 6 tensors, "),
                                HasSubstr("0 errors, 0 warnings")));
}

TEST(Verify, TheWorstCheckpointDecides) {
  const Victim victim(kA);
  victim.truncate("__1_0.distcp", 100);
  EXPECT_EQ(run_program({"verify", victim.path(), data(kA)}).exit_code, 1);
  EXPECT_EQ(run_program({"verify", data(kA), victim.path() + "x", victim.path()}).exit_code, 2);
  const auto json =
      Json::parse(run_program({"verify", "--json", victim.path(), data(kA)}).out)["checkpoints"];
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0]["whole"], false);
  EXPECT_GT(json[0]["errors"], 0);
  EXPECT_EQ(json[1]["whole"], true);
}

TEST(Verify, WholeSaysThatWithoutAManifestFilesOfAnotherSaveAreNotTold) {
  EXPECT_THAT(run_program({"verify", data(kA)}).out,
              HasSubstr("; there is no integrity.json, so files from"));
  EXPECT_THAT(run_program({"verify", "--no-payload", data(kA)}).out,
              HasSubstr("; the payload was not read"));
}

TEST(Verify, StrictTakesWarningsForErrors) {
  const Victim victim(kA);
  const auto payload = victim.file("__0_0.distcp");
  std::filesystem::last_write_time(
      payload, std::filesystem::last_write_time(payload) + std::chrono::hours(1));
  EXPECT_EQ(run_program({"verify", victim.path()}).exit_code, 0);
  const auto mixed = run_program({"verify", "--strict", victim.path()});
  EXPECT_EQ(mixed.exit_code, 1) << mixed.all();
  EXPECT_THAT(mixed.out, AllOf(HasSubstr("warning STALE_METADATA: 1 of "),
                               HasSubstr("__0_0.distcp"), HasSubstr("1 warning;")));
  victim.write("__9_0.distcp", "left over");
  EXPECT_EQ(run_program({"verify", victim.path()}).exit_code, 0);
  const auto strict = run_program({"verify", "--strict", victim.path()});
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(strict.out, HasSubstr("refused by --strict: 2 warnings"));
}

TEST(Verify, AFormatThatIsNotReadIsUnusableInput) {
  const Victim victim(kA);
  std::fstream file(victim.file("__0_0.distcp"), std::ios::in | std::ios::out | std::ios::binary);
  file << std::string("\x28\xb5\x2f\xfd", 4);
  file.close();
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.out,
              AllOf(HasSubstr(": not supported: "), HasSubstr("zstd"), Not(HasSubstr("damaged"))));
  victim.truncate("__1_0.distcp", 100);
  EXPECT_EQ(run_program({"verify", victim.path()}).exit_code, 1) << "it must not hide damage";
}

TEST(Verify, ManyFindingsOfOneKindAreCountedAndJsonHasThemAll) {
  const Victim iteration(std::string(kGpt) + "/iter_0000010");
  iteration.edit_metadata([](Metadata& metadata) {
    for (auto& tensor : metadata.catalog.tensors) tensor.dtype = DType::kInt8;
  });
  const auto text = run_program({"verify", iteration.path()});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr(" more; --json lists them"));
  std::size_t shown = 0;
  for (auto at = text.out.find("error DTYPE_DRIFT: the"); at != std::string::npos;
       at = text.out.find("error DTYPE_DRIFT: the", at + 1)) {
    ++shown;
  }
  EXPECT_EQ(shown, 20U);
  const auto json = Json::parse(run_program({"verify", "--json", iteration.path()}).out);
  EXPECT_EQ(json["checkpoints"][0]["findings"].size(), json["checkpoints"][0]["errors"]);
  EXPECT_EQ(json["checkpoints"][0]["verdict"], "damaged");
  EXPECT_GT(json["checkpoints"][0]["errors"], 20);
}

TEST(Verify, AFileThatMayNotBeOpenedIsUnreadableNotDamaged) {
  if (!kAddressSpaceLimited) GTEST_SKIP() << "the leak check needs the user who started it";
  const contracts::NotRoot not_root;
  if (::faccessat(AT_FDCWD, REPRISE_EXE, X_OK, AT_EACCESS) != 0)
    GTEST_SKIP() << "this user can't run the program";
  for (const char* name : {"__1_0.distcp", ".metadata"}) {
    const Victim victim(kA);
    std::filesystem::permissions(victim.file(name), std::filesystem::perms::none);
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, 2) << name << result.all();
    EXPECT_THAT(result.all(), AllOf(HasSubstr("IO"), HasSubstr(name)));
  }
}

TEST(Changelog, its_newest_heading_is_the_version_of_the_program) {
  const std::string version = run_program({"--version"}).out;
  std::smatch said;
  ASSERT_TRUE(std::regex_search(
      version, said, std::regex(R"(^reprise (\d+\.\d+\.\d+) \(([0-9a-f]{12}\+?|unknown)[,)])")))
      << version;
  std::ifstream changelog(REPRISE_SOURCE_DIR "/CHANGELOG.md");
  ASSERT_TRUE(changelog) << "there is no CHANGELOG.md";
  std::string line;
  while (std::getline(changelog, line) && !line.starts_with("## ")) continue;
  EXPECT_EQ(line, "## " + said[1].str());
}

TEST(Diff, SameDifferentAndNothingCompared) {
  const auto same = run_program({"diff", data(kA), data(kB)});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  EXPECT_THAT(same.out, StartsWith("same: "));
  const auto different = run_program({"diff", data(kA), data(kC)});
  EXPECT_EQ(different.exit_code, 1) << different.all();
  EXPECT_THAT(different.out, AllOf(HasSubstr("first at ["), HasSubstr("1 of "), HasSubstr("(0x")));
  const auto nothing = run_program({"diff", "--keys", "no such key", data(kA), data(kB)});
  EXPECT_EQ(nothing.exit_code, 3) << nothing.all();
  EXPECT_THAT(nothing.out, HasSubstr("nothing was compared"));
}

TEST(Diff, IgnoredKeysDoNotCount) {
  const auto json = Json::parse(run_program({"diff", "--json", data(kA), data(kC)}).out);
  std::string key;
  for (const auto& tensor : json["tensors"]) {
    if (tensor["verdict"] == "different") key = tensor["key"];
  }
  ASSERT_FALSE(key.empty());
  EXPECT_EQ(run_program({"diff", "--ignore", key, data(kA), data(kC)}).exit_code, 0);
}

TEST(Reshard, WritesTheSameContentAndLeavesWhatIsThere) {
  const Victim victim(kGpt);
  const std::string out = victim.path() + "-out";
  const auto first = run_program({"reshard", "--ranks", "3", victim.path(), out});
  EXPECT_EQ(first.exit_code, 0) << first.all();
  EXPECT_EQ(run_program({"verify", out}).exit_code, 0);
  const auto same = run_program({"diff", victim.path(), out});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  const auto again = run_program({"reshard", "--ranks", "3", victim.path(), out});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("--force"));
  EXPECT_EQ(run_program({"reshard", "--split", "weight=1:2", "--writers", "2", "--force",
                         victim.path(), out})
                .exit_code,
            0);
  EXPECT_EQ(run_program({"diff", victim.path(), out}).exit_code, 0);
}

TEST(Reshard, PathsThatCantBeFollowedAreUnusableInput) {
  namespace fs = std::filesystem;
  const Victim victim(kA);
  const std::string loop = victim.path() + "-loop";
  fs::create_symlink(loop, loop);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {loop, victim.path() + "-out"},
      {victim.path(), loop + "/out"},
      {loop + "/.", victim.path() + "-o"}};
  for (const auto& [in, out] : rows) {
    const auto result = run_program({"reshard", "--ranks", "2", in, out});
    EXPECT_EQ(result.exit_code, 2) << in << ' ' << out << result.all();
    EXPECT_THAT(result.err, AllOf(HasSubstr("IO"), HasSubstr(loop))) << in << ' ' << out;
  }
}

TEST(Reshard, ALostCommonStateIsNotHandedOn) {
  namespace fs = std::filesystem;
  const Victim victim(kGpt + "/iter_0000010");
  victim.remove("common.pt");
  const std::string out = victim.path() + "-out";
  const auto result = run_program({"reshard", "--ranks", "2", victim.path(), out});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, AllOf(HasSubstr("NOT_STORED"), HasSubstr("common.pt")));
  EXPECT_FALSE(fs::exists(out));
  EXPECT_THAT(run_program({"inspect", victim.path()}).out, HasSubstr("common    missing: "));
  EXPECT_EQ(Json::parse(run_program({"inspect", "--json", victim.path()}).out)["common_state_lost"],
            true);
  EXPECT_EQ(Json::parse(run_program({"inspect", "--json", data(kGpt)}).out)["common_state_lost"],
            false);
}

TEST(Reshard, HelpSaysWhatItMeansNotToCheckFirst) {
  const auto help = run_program({"reshard", "--help"});
  EXPECT_THAT(help.out, HasSubstr("correct checksums"));
}

TEST(Reshard, NeverTakesItsSourceAwayNorWhatIsNoCheckpoint) {
  namespace fs = std::filesystem;
  const Victim victim(kGpt);
  const std::string root = victim.path();
  const std::string ten = root + "/iter_0000010";
  fs::create_directory_symlink(root, root + "-link");
  fs::create_directory(root + "-notes");
  fs::copy(ten, root + "-old.saving-0123456789abcdef", fs::copy_options::recursive);
  struct Row {
    std::string in;
    std::string out;
    const char* says;
  };
  const std::vector<Row> rows = {
      {ten, root, "contains the other"},
      {ten, ten, "contains the other"},
      {ten + "/", root + "-link/iter_0000010", "contains the other"},
      {root, ten, "contains the other"},
      {root, root + "/new", "contains the other"},
      {ten, root + "-link", "contains the other"},
      {root + "-old.saving-0123456789abcdef", root + "-old", "would move or remove it"},
      {ten, root + "-notes", "has no .metadata"}};
  for (const auto& row : rows) {
    const auto result = run_program({"reshard", "--force", "--ranks", "2", row.in, row.out});
    EXPECT_EQ(result.exit_code, 2) << row.in << " " << row.out << result.all();
    EXPECT_THAT(result.err, HasSubstr(row.says)) << row.in << " " << row.out;
  }
  EXPECT_EQ(run_program({"diff", root, data(kGpt)}).exit_code, 0);
  EXPECT_TRUE(fs::exists(root + "-old.saving-0123456789abcdef/.metadata"));
  EXPECT_TRUE(fs::exists(root + "-notes"));
  EXPECT_FALSE(fs::exists(root + "/new"));
}

TEST(Plan, RanksThatALayoutLeavesIdleAreNoted) {
  struct Row {
    const char* model;
    const char* layout;
    std::vector<std::string> notes;
  };
  const std::vector<Row> rows = {
      {"gpt-tiny", "tp=2,dp=2,pp=2", {}},
      {"gpt-tiny", "tp=2,pp=3", {"save: 2 ranks hold no decoder layer: 2 layers over pp 3"}},
      {"moe-tiny", "ep=3,dp=3", {}},
      {"moe-tiny", "ep=6,dp=6", {}},
      {"moe-tiny", "ep=7,dp=7", {"save: 1 rank holds no expert: 6 experts over ep 7"}},
      // 6 experts in 4 chunks: the chunk length is rounded up to 2, so the ranks get 2, 2, 2 and 0.
      {"moe-tiny", "ep=4,dp=8", {"save: 2 ranks hold no expert: 6 experts over ep 4"}}};
  for (const auto& row : rows) {
    const std::vector<std::string> words = {"plan", "--model", row.model, "--layout", row.layout};
    const auto table = run_program(words);
    EXPECT_EQ(table.exit_code, 0) << row.layout << table.all();
    EXPECT_EQ(table.out.find("note: ") != std::string::npos, !row.notes.empty()) << row.layout;
    auto json_words = words;
    json_words.emplace_back("--json");
    const auto json = Json::parse(run_program(json_words).out);
    EXPECT_EQ(json.value("notes", Json()), Json(row.notes)) << row.layout;
    for (const auto& note : row.notes) EXPECT_THAT(table.out, HasSubstr("note: " + note));
  }
}

TEST(Plan, SaveAndLoadOfAModelAndLoadOfACheckpoint) {
  const auto model = run_program(
      {"plan", "--json", "--model", "gpt-tiny", "--layout", "tp=2,dp=2", "--to", "tp=4"});
  EXPECT_EQ(model.exit_code, 0) << model.all();
  const auto json = Json::parse(model.out);
  EXPECT_EQ(json["save"]["bytes"].size(), 4U);
  EXPECT_GT(json["load"]["items"], 0);
  const auto stored = run_program({"plan", "--per-rank", "--ckpt", data(kGpt), "--ranks", "3"});
  EXPECT_EQ(stored.exit_code, 0) << stored.all();
  EXPECT_THAT(stored.out, HasSubstr("balance"));
}

TEST(Explain, says_of_a_code_what_it_means_what_causes_it_and_what_to_do) {
  const auto one = run_program({"explain", "STALE_PLAN"});
  EXPECT_EQ(one.exit_code, 0) << one.all();
  for (const char* words :
       {"STALE_PLAN\n  A plan that is kept", "likely causes: ", "what to do: "}) {
    EXPECT_THAT(one.out, HasSubstr(words));
  }
  const auto all = run_program({"explain"});
  EXPECT_EQ(all.exit_code, 0) << all.all();
  EXPECT_THAT(all.out, HasSubstr("COVERAGE_GAP"));
  EXPECT_THAT(all.out, HasSubstr("TORN_SNAPSHOT"));
  const auto unknown = run_program({"explain", "STALE_PLANS"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'STALE_PLAN'?"));
}

struct SavedRun {
  contracts::TemporaryDirectory directory;
  std::filesystem::path root = std::filesystem::path(directory.path()) / "run";

  SavedRun() {
    for (const char* step : {"step-5", "step-20"}) {
      std::filesystem::create_directories(root);
      std::filesystem::copy(data("torch_2.15.0/plain"), root / step,
                            std::filesystem::copy_options::recursive);
    }
    std::filesystem::create_directories(root / "step-30");
  }
};

TEST(Which, a_script_gets_the_path_alone) {
  const SavedRun run;
  const auto result = run_program({"which", run.root.string(), "--for", "torchtitan"});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_EQ(result.out, (run.root / "step-20").string() + '\n');
  EXPECT_EQ(result.err, "");
}

TEST(Which, people_get_each_program_and_the_reasons) {
  const SavedRun run;
  const auto result = run_program({"which", run.root.string()});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("torchtitan  step-20"));
  EXPECT_THAT(result.out, HasSubstr("step-30      Reprise     has no .metadata"));
  const Json json = Json::parse(run_program({"which", "--json", run.root.string()}).out);
  EXPECT_EQ(json["points"][0]["program"], "torchtitan");
  EXPECT_EQ(json["points"][0]["passed"].size(), 2U);
}

TEST(Which, a_damaged_choice_fails) {
  const SavedRun run;
  std::filesystem::remove(run.root / "step-20" / "__0_0.distcp");
  const auto result = run_program({"which", run.root.string(), "--for", "torchtitan"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("torchtitan: step-20: damaged: the file is missing"));
}

TEST(Which, modules_in_directories_of_their_own_are_checked) {
  const SavedRun run;
  const auto step = run.root / "global_step_4";
  std::filesystem::create_directories(step);
  std::filesystem::copy(data("torch_2.15.0/plain"), step / "actor",
                        std::filesystem::copy_options::recursive);
  std::ofstream(run.root / "latest_checkpointed_iteration.txt") << 4;
  const std::vector<std::string> words{"which", run.root.string(), "--for", "verl"};
  EXPECT_EQ(run_program(words).exit_code, 0);
  std::filesystem::remove(step / "actor" / "__0_0.distcp");
  EXPECT_EQ(run_program(words).exit_code, 1);
}

TEST(Which, nothing_to_resume_from_is_said) {
  const SavedRun run;
  std::filesystem::create_directories(run.root / "global_step_4");
  auto result = run_program({"which", run.root.string(), "--for", "verl"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("verl: there is no latest_checkpointed_iteration.txt"));
  const std::ofstream made(run.root / "last.ckpt");
  result = run_program({"which", run.root.string(), "--for", "Lightning"});
  EXPECT_EQ(result.exit_code, 3) << "an empty file can't be checked";
  EXPECT_THAT(result.err, HasSubstr("last.ckpt: not checked: "));
  result = run_program({"which", run.root.string(), "--for", "NeMo"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no checkpoint has a name that NeMo gives"));
  result = run_program({"which", run.root.string(), "--for", "nobody"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--for nobody: not one of Megatron-LM, "));
}

}  // namespace
}  // namespace reprise::test
