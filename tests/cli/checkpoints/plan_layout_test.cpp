// Tests `plan --ckpt --layout`, which says what each rank of a layout holds and reads, and the
// options of `reshard` that follow from it: --for-layout and --optimizer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::plan_layout_test {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kSaved = "mcore_0.16.1_gpt_tp2_pp2";

Json plan(const std::string& checkpoint, const std::string& layout,
          const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"plan", "--json", "--ckpt", checkpoint, "--layout", layout};
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run_program(words);
  EXPECT_EQ(result.exit_code, 0) << layout << result.all();
  return Json::parse(result.out, nullptr, false);
}

TEST(PlanLayout, ranks_of_the_layout_that_saved_read_their_own_chunks) {
  const Json json = plan(data(kSaved), "tp=2,pp=2", {"--memory", "--files"});
  EXPECT_EQ(json["amplification"], 1.0);
  EXPECT_EQ(json["notes"], Json::array());
  ASSERT_EQ(json["ranks"].size(), 4U);
  std::uint64_t held = 0;
  for (const Json& rank : json["ranks"]) {
    EXPECT_EQ(rank["read"], rank["held"]);
    EXPECT_EQ(rank["peak"],
              rank["held"].get<std::uint64_t>() + rank["two_largest_reads"].get<std::uint64_t>());
    held += rank["held"].get<std::uint64_t>();
  }
  // 1,456 weights of 2 bytes, with two moments of 4. Both ranks of tensor parallelism hold the
  // norms, of which a layer has 32 numbers, and the last stage 16 more.
  EXPECT_EQ(held, (1456U + 2 * 32 + 16) * 10U) << json;
}

TEST(PlanLayout, fewer_ranks_hold_more_and_more_ranks_read_too_much) {
  const Json one = plan(data(kSaved), "tp=1", {"--files"});
  EXPECT_EQ(one["ranks"].size(), 1U);
  EXPECT_EQ(one["amplification"], 1.0);
  const Json four = plan(data(kSaved), "tp=4", {"--files"});
  EXPECT_GT(four["amplification"].get<double>(), 1.5);
  EXPECT_LT(four["ranks"][0]["held"].get<int>(), one["ranks"][0]["held"].get<int>());
}

TEST(PlanLayout, the_files_of_one_rank) {
  const auto table = run_program(
      {"plan", "--ckpt", data(kSaved), "--layout", "tp=2,pp=2", "--files", "--rank", "3"});
  EXPECT_EQ(table.exit_code, 0) << table.all();
  EXPECT_THAT(table.out, HasSubstr("__3_0.distcp"));
  EXPECT_THAT(table.out, Not(HasSubstr("__0_0.distcp")));
  const auto none = run_program(
      {"plan", "--ckpt", data(kSaved), "--layout", "tp=2,pp=2", "--files", "--rank", "4"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no rank 4"));
}

TEST(PlanLayout, replicas_are_one_row_and_readers_are_counted) {
  const auto table = run_program({"plan", "--ckpt", data(kSaved), "--layout", "tp=2,dp=2",
                                  "--memory", "--host-memory", "1MB"});
  EXPECT_EQ(table.exit_code, 0) << table.all();
  EXPECT_THAT(table.out, HasSubstr("0, 2"));
  EXPECT_THAT(table.out, HasSubstr("time to plan"));
  EXPECT_THAT(table.out, testing::ContainsRegex("[0-9]+ readers fit into 976.56 KiB"));
  const Json json = plan(data(kSaved), "tp=2,dp=2", {"--memory", "--host-memory", "1MB"});
  EXPECT_EQ(json["ranks"][0]["ranks"], Json::parse("[0, 2]"));
  EXPECT_EQ(json["readers"].get<std::uint64_t>(),
            1000000U / json["ranks"][0]["peak"].get<std::uint64_t>());
}

TEST(PlanLayout, rows_of_fsdp_are_cut_over_all_ranks) {
  const Json json = plan(data("torch_2.15.0/fsdp2_model"), "dp=4", {"--memory"});
  EXPECT_EQ(json["amplification"], 1.0) << "it was saved so";
  EXPECT_EQ(json["ranks"].size(), 4U);
}

TEST(PlanLayout, buckets_under_another_layout_are_inconclusive) {
  const auto result =
      run_program({"plan", "--ckpt", data("mcore_0.16.1_buckets"), "--layout", "tp=2", "--memory"});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_THAT(result.out, HasSubstr("can be loaded only with the tp and pp of the job that saved"));
}

TEST(PlanLayout, buckets_do_not_fit_as_many_ranks_of_another_kind) {
  contracts::TemporaryDirectory directory;
  const std::string saved = data("optimizer_forms_0.16.1/dp_reshardable");
  const auto result = run_program({"plan", "--ckpt", saved, "--layout", "tp=1,pp=2"});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  const auto written =
      run_program({"reshard", saved, directory.path() + "/out", "--for-layout", "tp=1,pp=2"});
  EXPECT_EQ(written.exit_code, 3) << written.all();
  EXPECT_THAT(written.out, HasSubstr("can be loaded only with the tp and pp"));
  EXPECT_EQ(run_program({"plan", "--ckpt", saved, "--layout", "tp=2,dp=4"}).exit_code, 0);
}

TEST(PlanLayout, damage_is_noted) {
  contracts::TemporaryDirectory directory;
  const std::string ckpt = directory.path() + "/ckpt";
  std::filesystem::copy(data(kSaved), ckpt, std::filesystem::copy_options::recursive);
  EXPECT_EQ(plan(ckpt, "tp=2")["notes"], Json::array());
  std::filesystem::remove(ckpt + "/iter_0000010/__1_0.distcp");
  const auto result = run_program({"plan", "--ckpt", ckpt, "--layout", "tp=2"});
  EXPECT_THAT(result.out, HasSubstr("note: the checkpoint is not whole"));
  EXPECT_THAT(result.out, HasSubstr("__1_0.distcp"));
}

TEST(PlanLayout, one_rank_and_sizes_as_people_write_them) {
  const auto one =
      run_program({"plan", "--ckpt", data(kSaved), "--ranks", "3", "--per-rank", "--rank", "2"});
  EXPECT_EQ(one.exit_code, 0) << one.all();
  EXPECT_THAT(one.out, testing::ContainsRegex("\n2 "));
  EXPECT_THAT(one.out, Not(testing::ContainsRegex("\n1 ")));
  EXPECT_EQ(
      run_program({"plan", "--ckpt", data(kSaved), "--ranks", "3", "--per-rank", "--rank", "3"})
          .exit_code,
      2);
  const auto memory = [](const std::string& size) {
    return plan(data(kSaved), "tp=2", {"--memory", "--host-memory", size})["host_memory"];
  };
  EXPECT_EQ(memory("1.5TB"), 1500000000000U);
  EXPECT_EQ(memory("512G"), 512000000000U);
  EXPECT_EQ(memory("0.5GiB"), 536870912U);
}

TEST(PlanLayout, mistakes_are_refused_with_what_to_do) {
  struct Row {
    std::vector<std::string> words;
    const char* says;
  };
  const std::string ckpt = data(kSaved);
  for (const auto& row : std::vector<Row>{
           {{"--ckpt", ckpt, "--layout", "tp=2", "--ranks", "2"}, "--layout or --ranks, not both"},
           {{"--ckpt", ckpt}, "either --layout, or --ranks"},
           {{"--ckpt", ckpt, "--layout", "tp=2", "--to", "tp=4"}, "--to belongs to --model"},
           {{"--ckpt", ckpt, "--ranks", "2", "--memory"}, "need --ckpt and --layout"},
           {{"--ckpt", ckpt, "--layout", "tp=2", "--rank", "0"}, "belongs to --memory"},
           {{"--ckpt", ckpt, "--layout", "tp=2", "--host-memory", "1GB"}, "belongs to --memory"},
           {{"--ckpt", ckpt, "--layout", "tp=2", "--memory", "--host-memory", "much"},
            "is not a size"},
           {{"--ckpt", ckpt, "--layout", "tp=5"}, "over 5 ranks"},
           {{"--ckpt", ckpt, "--layout", "tpp=2"}, "tp"},
           {{"--ckpt", data("mcore_0.16.1_mimo_prefixed"), "--layout", "tp=2"}, "several modules"},
       }) {
    std::vector<std::string> words = {"plan"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 2) << row.says << result.all();
    EXPECT_THAT(result.err, HasSubstr(row.says));
  }
}

TEST(ReshardForLayout, each_rank_then_reads_what_it_asks_for) {
  contracts::TemporaryDirectory directory;
  const std::string out = directory.path() + "/out";
  const auto result = run_program({"reshard", "--json", data(kSaved), out, "--for-layout", "tp=4"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  const Json fit = Json::parse(result.out)["for_layout"];
  const Json before = plan(data(kSaved), "tp=4");
  EXPECT_EQ(fit["layout"], "tp4");
  EXPECT_EQ(fit["amplification_before"], before["amplification"]);
  EXPECT_GT(fit["amplification_before"].get<double>(), 1.5);
  EXPECT_EQ(fit["amplification_after"], 1.0);
  EXPECT_EQ(plan(out, "tp=4")["amplification"], 1.0);
  EXPECT_EQ(run_program({"verify", "-q", out}).exit_code, 0);
  EXPECT_EQ(run_program({"diff", "-q", data(kSaved), out}).exit_code, 0);
  // Rank 3 reads its own file, and the norms from that of rank 0.
  const Json files = plan(out, "tp=4", {"--files", "--rank", "3"})["ranks"][0]["files"];
  EXPECT_EQ(files.size(), 2U) << files;
  EXPECT_TRUE(files.contains("__3_0.distcp") && files.contains("__0_0.distcp")) << files;
}

TEST(ReshardOptimizer, buckets_become_what_megatron_saves) {
  contracts::TemporaryDirectory directory;
  const std::string forms = data("optimizer_forms_0.16.1");
  const std::string out = directory.path() + "/out";
  const auto result = run_program(
      {"reshard", "--json", forms + "/dp_reshardable", out, "--optimizer", "fully_reshardable"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  const Json change = Json::parse(result.out)["optimizer"];
  EXPECT_EQ(change["from"], "dp_reshardable");
  EXPECT_EQ(change["tensors"], 36);
  EXPECT_EQ(change["without_state"], Json::array());
  EXPECT_EQ(run_program({"verify", "-q", out}).exit_code, 0);
  const auto same = run_program({"diff", forms + "/fully_reshardable", out});
  EXPECT_EQ(same.exit_code, 0) << same.all();
  // Chunks are those of the weights, so the layout that saved reads nothing else.
  EXPECT_EQ(plan(out, "tp=2,dp=2")["amplification"], 1.0);
}

TEST(ReshardOptimizer, goes_with_another_layout) {
  contracts::TemporaryDirectory directory;
  const std::string forms = data("optimizer_forms_0.16.1");
  const std::string out = directory.path() + "/out";
  const auto result = run_program({"reshard", forms + "/fully_sharded_model_space", out,
                                   "--optimizer", "fully_reshardable", "--for-layout", "tp=4"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("was fully_sharded_model_space and is fully_reshardable"));
  EXPECT_THAT(result.out, Not(HasSubstr("it was 1.00 times"))) << "of another form";
  EXPECT_EQ(plan(out, "tp=4")["amplification"], 1.0);
  const auto tensors =
      run_program({"diff", forms + "/fully_reshardable", out, "--keys", "layers|embedding"});
  EXPECT_EQ(tensors.exit_code, 0) << tensors.all();
}

TEST(ReshardOptimizer, what_cannot_be_is_refused_and_nothing_is_written) {
  struct Row {
    std::vector<std::string> words;
    const char* says;
  };
  contracts::TemporaryDirectory directory;
  const std::string out = directory.path() + "/out";
  const std::string forms = data("optimizer_forms_0.16.1");
  for (const auto& row : std::vector<Row>{
           {{forms + "/fully_reshardable", "dp_reshardable"}, "dp_reshardable can't be written"},
           {{forms + "/fully_reshardable", "fsdp_dtensor"}, "checkpoint_inspector.py"},
           {{forms + "/fully_reshardable", "full"}, "there is no form 'full'"},
           {{data("mcore_0.16.1_buckets"), "fully_reshardable"}, "no weight of this rank"},
           {{data(kSaved), "fully_reshardable"}, "no state of Megatron-Core's distributed"},
           {{data("torch_2.15.0/plain"), "fully_reshardable"}, "no common state"}}) {
    const auto result = run_program({"reshard", row.words[0], out, "--optimizer", row.words[1]});
    EXPECT_EQ(result.exit_code, 2) << row.says << result.all();
    EXPECT_THAT(result.err, HasSubstr(row.says));
    EXPECT_FALSE(std::filesystem::exists(out)) << row.says;
  }
}

TEST(ReshardForLayout, writers_can_be_fewer_than_ranks) {
  contracts::TemporaryDirectory directory;
  const std::string out = directory.path() + "/out";
  const auto result = run_program(
      {"reshard", data("torch_2.15.0/fsdp2_model"), out, "--for-layout", "dp=3", "--writers", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.all();
  EXPECT_THAT(result.out, HasSubstr("under dp3, torch reads 1.00 times"));
  EXPECT_EQ(run_program({"diff", "-q", data("torch_2.15.0/fsdp2_model"), out}).exit_code, 0);
  const auto both = run_program(
      {"reshard", data(kSaved), directory.path() + "/x", "--for-layout", "tp=2", "--ranks", "2"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("can't be given with --ranks"));
}

}  // namespace
}  // namespace reprise::test::plan_layout_test
