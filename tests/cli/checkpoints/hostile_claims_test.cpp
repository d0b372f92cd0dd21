// Tests every verb on small files that claim huge sizes. The address space is too small for the
// claimed sizes. The verb must end soon, with a message. Other tests damage each kind of file and
// require that the damage is located.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::hostile_claims_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFixture = "torch_2.15.0/same_content_a";
constexpr const char* kMegatron = "mcore_0.16.1_gpt_dp2/iter_0000010";

std::string times(std::size_t count, const std::string& part) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += part;
  return all;
}

struct Claim {
  const char* name;
  std::string metadata;
  bool supported = true;  ///< false: the opcode is valid, but no writer of checkpoints uses it
};

std::vector<Claim> claims() {
  const std::string head = "\x80\x04";
  return {
      {"memo entry 2^32", head + "Nr\xff\xff\xff\xff."},
      {"a frame of 2^64", head + "\x95" + std::string(8, '\xff') + "."},
      {"an integer of 2^31 bytes", head + "\x8b\xff\xff\xff\x7f."},
      {"a million lists in lists",
       head + std::string(1000000, ']') + std::string(999999, 'a') + "."},
      {"a million marks", head + std::string(1000000, '(') + "."},
      {"a million tuples in tuples", head + "N" + std::string(1000000, '\x85') + "."},
      {"pairs doubled 100 times", head + "N\x94" + times(100, "2\x86\x94") + ".", false},
      {"a list of one list a million times",
       head + "](" + times(300000, std::string("h\0]", 3)) + "e."},
  };
}

TEST(HostileClaims, every_verb_refuses_them_in_words) {
  const std::string good = std::string(REPRISE_TEST_DATA) + "/" + kFixture;
  const RunLimits limits{.seconds = 20, .address_space_bytes = std::uint64_t{512} << 20U};
  for (const Claim& claim : claims()) {
    const Victim victim(kFixture);
    victim.write(".metadata", claim.metadata);
    const std::string out = victim.path() + "_out";
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"verify", victim.path()},
          {"inspect", victim.path()},
          {"diff", good, victim.path()},
          {"reshard", victim.path(), out, "--ranks", "2"}}) {
      const auto result = run_program(words, limits);
      EXPECT_EQ(result.exit_code, words[0] == "verify" && claim.supported ? 1 : 2)
          << words[0] << ", " << claim.name << '\n'
          << result.all();
      EXPECT_THAT(result.all(), HasSubstr(".metadata")) << words[0] << ", " << claim.name;
      EXPECT_LT(result.all().size(), 4000U) << words[0] << ", " << claim.name;
    }
    EXPECT_FALSE(std::filesystem::exists(out)) << claim.name;
  }
}

/// Flips one bit in each kind of file. The message of `verify` must name the file, and also the
/// offset or the key.
TEST(HostileClaims, verify_names_the_place_of_a_flipped_bit_in_each_kind_of_file) {
  struct Row {
    const char* fixture;
    const char* file;
    std::function<std::int64_t(const Victim&)> at;
    std::vector<const char*> says;
    int exit_code = 1;
  };
  const auto text = [](const char* file, const char* what, std::int64_t behind) {
    return [=](const Victim& v) { return v.offset_of(file, what) + behind; };
  };
  const std::vector<Row> rows = {
      {kFixture, ".metadata", [](const Victim&) { return 2; }, {".metadata", "offset 2"}},
      {kFixture, "__0_0.distcp", [](const Victim&) { return 0; }, {"__0_0.distcp", "offset 0"}},
      {kFixture, "__0_0.distcp", text("__0_0.distcp", "PK\1\2", 44), {"__0_0.distcp", "offset"}},
      {kFixture,
       "__0_0.distcp",
       text("__0_0.distcp", "_rebuild_tensor", 3),
       {"__0_0.distcp", "data.pkl", "offset"}},
      {kFixture,
       "__0_0.distcp",
       [](const Victim& v) { return v.elements_of("layers.0.weight").offset + 1; },
       {"__0_0.distcp", "layers.0.weight", "data/0", "offset"}},
      {kMegatron, "common.pt", text("common.pt", "iteration", 3), {"common.pt", "offset"}},
      {kMegatron, "metadata.json", text("metadata.json", "torch_dist", 0), {"metadata.json"}, 2},
  };
  for (const Row& row : rows) {
    const Victim victim(row.fixture);
    victim.flip(row.file, row.at(victim));
    const auto result = run_program({"verify", victim.path()});
    EXPECT_EQ(result.exit_code, row.exit_code) << row.file << '\n' << result.all();
    for (const char* says : row.says) EXPECT_THAT(result.all(), HasSubstr(says)) << row.file;
  }
}

}  // namespace
}  // namespace reprise::test::hostile_claims_test
