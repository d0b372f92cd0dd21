// Tests what becomes of another rank's contribution: its bytes, its error, or a message that is
// neither.

#include "core/agree/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/bytes.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/told_communicator.hpp"

namespace reprise {
namespace {

using contracts::code_of;
using contracts::error_of;
using test::ToldCommunicator;
using ::testing::HasSubstr;

/// Returns the message that a rank sends for this contribution.
Bytes message_of(const Contribution& contribution) {
  Bytes sent;
  ToldCommunicator group([&](const Bytes& mine) { return sent = mine; });
  gather_contributions(group, contribution);
  return sent;
}

std::string refusal_of(const Bytes& message) {
  ToldCommunicator group([&](const Bytes&) { return message; });
  const auto error = error_of([&] { gather_contributions(group, {to_bytes("mine"), {}}); });
  return error ? error->what() : "gathered";
}

TEST(Agreement, bytes_and_errors_arrive_as_they_were) {
  const Error failed(Code::kNoSpace, "the disk is full",
                     {.rank = GlobalRank{9}, .key = "w", .file = "f", .offset = 12});
  const Bytes message = message_of({{}, failed});
  ToldCommunicator group([&](const Bytes&) { return Bytes(message); });
  const auto gathered = gather_contributions(group, {to_bytes("mine"), {}});
  ASSERT_EQ(gathered.size(), 2U);
  EXPECT_FALSE(gathered[0].error);
  EXPECT_EQ(gathered[0].bytes, to_bytes("mine"));
  ASSERT_TRUE(gathered[1].error);
  EXPECT_EQ(gathered[1].error->code(), Code::kNoSpace);
  EXPECT_EQ(gathered[1].error->message(), "the disk is full");
  EXPECT_EQ(gathered[1].error->place().key, "w");
  EXPECT_EQ(gathered[1].error->place().file, "f");
  EXPECT_EQ(gathered[1].error->place().offset, 12U);
  EXPECT_EQ(gathered[1].error->place().rank, GlobalRank{9});
}

TEST(Agreement, an_error_about_a_peer_counts_only_if_no_rank_knows_the_cause) {
  const Error cause(Code::kInternal, "the device is lost");
  for (const Code code : {Code::kDeadline, Code::kPeerFailed}) {
    const Error missing(code, "no answer");
    ToldCommunicator knows([&](const Bytes&) { return message_of({{}, cause}); });
    EXPECT_EQ(code_of([&] { agree(knows, {{}, missing}); }), Code::kInternal);
    ToldCommunicator asks([&](const Bytes&) { return message_of({{}, missing}); });
    EXPECT_EQ(code_of([&] { agree(asks, {{}, cause}); }), Code::kInternal);
    EXPECT_EQ(code_of([&] { agree(asks, {{}, missing}); }), code);
  }
}

TEST(Agreement, an_error_without_rank_is_that_of_its_sender) {
  const Bytes message = message_of({{}, Error(Code::kNoSpace, "full")});
  ToldCommunicator group([&](const Bytes&) { return Bytes(message); });
  const auto error = error_of([&] { agree(group, {to_bytes("mine"), {}}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->place().rank, GlobalRank{7});
  EXPECT_FALSE(error->place().offset);
}

TEST(Agreement, a_message_that_is_no_contribution_is_refused) {
  EXPECT_THAT(refusal_of({}), HasSubstr("is empty"));
  for (const char tag : {'\2', '\xff'}) {
    EXPECT_THAT(refusal_of(to_bytes(std::string("bytes") + tag)), HasSubstr("of an unknown kind"));
  }
  const Bytes message = message_of({{}, Error(Code::kNoSpace, "full")});
  Bytes longer = message;
  longer.insert(longer.end() - 1, std::byte{0});
  EXPECT_THAT(refusal_of(longer), HasSubstr("1 bytes too many"));
  Bytes unknown = message;
  unknown[3] = std::byte{0x7f};
  EXPECT_THAT(refusal_of(unknown), HasSubstr("unknown error code"));
}

}  // namespace
}  // namespace reprise
