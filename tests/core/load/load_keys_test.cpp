// Tests how requested and stored keys are compared across ranks.

#include "core/load/load_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/told_communicator.hpp"

namespace reprise {
namespace {

using contracts::error_of;
using test::ToldCommunicator;
using ::testing::HasSubstr;
using Keys = std::vector<std::string>;

/// Returns the message of a rank with these keys. A byte behind it says that it is no error.
Bytes message(const Keys& not_requested, const Keys& not_stored) {
  Bytes wire;
  put_texts(wire, not_requested);
  put_texts(wire, not_stored);
  wire.push_back(std::byte{0});
  return wire;
}

TEST(LoadKeys, not_requested_needs_all_ranks_and_not_stored_needs_one) {
  ToldCommunicator group([](const Bytes&) { return message({"b", "c", "d"}, {"y", "x"}); });
  LoadPlan plan;
  plan.not_requested = {"a", "b", "d"};
  const KeyMismatch keys = mismatch_over(group, plan, {"z", "x"});
  EXPECT_EQ(keys.not_requested, (Keys{"b", "d"}));
  EXPECT_EQ(keys.not_stored, (Keys{"x", "y", "z"}));
}

TEST(LoadKeys, a_list_with_bytes_behind_it_is_refused) {
  ToldCommunicator group([](const Bytes& mine) {
    Bytes longer = mine;
    longer.insert(longer.end() - 1, std::byte{0});
    return longer;
  });
  const auto error = error_of([&] { mismatch_over(group, {}, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kCollectiveMismatch);
  EXPECT_THAT(error->what(), HasSubstr("a list of keys"));
}

TEST(LoadKeys, an_excused_name_excuses_the_key_and_all_shards_of_the_object) {
  Keys keys = {"a", "ab", "o/shard_0_2", "o/shard_1_2", "p/shard_0_2"};
  EXPECT_EQ(take_excused(keys, {"a", "o"}), (Keys{"a", "o/shard_0_2", "o/shard_1_2"}));
  EXPECT_EQ(keys, (Keys{"ab", "p/shard_0_2"}));
}

TEST(LoadKeys, what_is_not_stored_is_refused_before_what_is_not_requested) {
  const auto both = error_of([] { refuse({.not_requested = {"b"}, .not_stored = {"x", "y"}}); });
  EXPECT_EQ(both->code(), Code::kNotStored);
  EXPECT_EQ(both->place().key, "x");
  EXPECT_THAT(both->what(), HasSubstr("2 requested keys"));
  const auto one = error_of([] { refuse({.not_requested = {"b"}, .not_stored = {}}); });
  EXPECT_EQ(one->code(), Code::kNotRequested);
  EXPECT_EQ(one->place().key, "b");
}

TEST(LoadKeys, a_refusal_names_eight_keys) {
  Keys keys;
  for (char name = 'a'; name <= 'h'; ++name) keys.push_back(std::string("key.") + name);
  EXPECT_THAT(error_of([&] { refuse({.not_requested = keys, .not_stored = {}}); })->what(),
              Not(HasSubstr("...")));
  keys.push_back("key.i");
  const auto error = error_of([&] { refuse({.not_requested = keys, .not_stored = {}}); });
  EXPECT_THAT(error->what(), HasSubstr("key.h, ..."));
  EXPECT_THAT(error->what(), Not(HasSubstr("key.i")));
}

}  // namespace
}  // namespace reprise
