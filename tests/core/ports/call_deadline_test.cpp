// Tests how calls wait for peers. The clock in these tests advances whenever it is read.
#include "core/ports/call_deadline.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/contracts/error_of.hpp"

namespace reprise {
namespace {

using contracts::error_of;

constexpr std::uint64_t kMs = 1'000'000;

struct CountingClock final : Clock {
  std::uint64_t now_ns() override { return now += kMs; }
  std::uint64_t now = 5 * kMs;
};

/// Reports that the rank `which` has ended as soon as the clock shows `when`.
struct EndsAt final : PeerWatch {
  EndsAt(const CountingClock& of, GlobalRank which, std::uint64_t when)
      : clock(of), rank(which), at_ns(when) {}
  bool has_ended(GlobalRank asked) override { return asked == rank && clock.now >= at_ns; }
  const CountingClock& clock;
  GlobalRank rank;
  std::uint64_t at_ns;
};

const Group kGroup({GlobalRank{4}, GlobalRank{1}, GlobalRank{2}});

CallDeadline deadline_of(Clock& clock, std::uint64_t deadline_ns, PeerWatch* watch = nullptr) {
  return {clock, {.deadline_ns = deadline_ns, .watch = watch}, kGroup, GlobalRank{1}, [] {
            return std::string("barrier #7 of group {4 1 2}");
          }};
}

TEST(CallDeadline, what_is_done_at_once_is_asked_once) {
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, 0);
  int asked = 0;
  deadline.until([&] { return ++asked > 0; });
  EXPECT_EQ(asked, 1);
}

TEST(CallDeadline, zero_is_refused_and_one_beyond_the_clock_is_never_reached) {
  EXPECT_EQ(contracts::code_of([] { require_deadline(0); }), Code::kUsage);
  EXPECT_NO_THROW(require_deadline(1));
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, UINT64_MAX);
  int asked = 0;
  deadline.until([&] { return ++asked == 2100; });
  EXPECT_EQ(asked, 2100);
}

TEST(CallDeadline, deadline_of_nothing_is_over_at_the_first_look) {
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, 0);
  int asked = 0;
  EXPECT_EQ(contracts::code_of([&] { deadline.until([&] { return ++asked == 2100; }); }),
            Code::kDeadline);
}

TEST(CallDeadline, goes_on_until_done) {
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, 1000 * kMs);
  int asked = 0;
  deadline.until([&] { return ++asked == 2100; });
  EXPECT_EQ(asked, 2100);
}

TEST(CallDeadline, deadline_names_what_was_waited_for_and_who_waited) {
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, 50 * kMs);
  const auto error = error_of([&] { deadline.until([] { return false; }); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kDeadline);
  EXPECT_EQ(
      error->message(),
      "barrier #7 of group {4 1 2}: no answer in time; a member has died, is hanging or is slow");
  EXPECT_EQ(error->place().rank, GlobalRank{1});
  EXPECT_GT(clock.now, 55 * kMs);
  EXPECT_LT(clock.now, 70 * kMs);
}

TEST(CallDeadline, deadline_is_of_all_operations_together) {
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, 50 * kMs);
  EXPECT_EQ(contracts::code_of([&] {
              for (int operation = 0; operation < 100; ++operation) {
                deadline.until([asked = 0]() mutable { return ++asked == 300; });
              }
            }),
            Code::kDeadline);
}

TEST(CallDeadline, an_ended_member_is_named_after_time_for_its_last_messages) {
  CountingClock clock;
  EndsAt watch(clock, GlobalRank{2}, 100 * kMs);
  CallDeadline deadline = deadline_of(clock, 60'000 * kMs, &watch);
  const auto error = error_of([&] { deadline.until([] { return false; }); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::kPeerFailed);
  EXPECT_EQ(error->message(), "barrier #7 of group {4 1 2}: rank 2 has ended");
  EXPECT_EQ(error->place().rank, GlobalRank{1});
  EXPECT_GT(clock.now, 300 * kMs);
  EXPECT_LT(clock.now, 400 * kMs);
}

TEST(CallDeadline, last_words_of_a_member_that_has_ended_arrive) {
  CountingClock clock;
  EndsAt watch(clock, GlobalRank{2}, 0);
  CallDeadline deadline = deadline_of(clock, 60'000 * kMs, &watch);
  deadline.until([&] { return clock.now > 150 * kMs; });
}

TEST(CallDeadline, end_of_this_rank_or_of_one_outside_the_group_is_nothing) {
  for (const GlobalRank rank : {GlobalRank{1}, GlobalRank{3}}) {
    CountingClock clock;
    EndsAt watch(clock, rank, 0);
    CallDeadline deadline = deadline_of(clock, 60'000 * kMs, &watch);
    deadline.until([&] { return clock.now > 500 * kMs; });
  }
}

TEST(CallDeadline, members_are_looked_at_every_20_ms_however_often_it_asks) {
  struct Counting final : PeerWatch {
    bool has_ended(GlobalRank asked) override {
      looks += asked == GlobalRank{2} ? 1 : 0;
      return false;
    }
    int looks = 0;
  };
  CountingClock clock;
  Counting watch;
  CallDeadline deadline = deadline_of(clock, 60'000 * kMs, &watch);
  deadline.until([&] { return clock.now >= 210 * kMs; });
  EXPECT_EQ(watch.looks, 10);
}

TEST(CallDeadline, what_is_thrown_by_what_it_asks_passes) {
  CountingClock clock;
  CallDeadline deadline = deadline_of(clock, 50 * kMs);
  EXPECT_EQ(contracts::code_of(
                [&] { deadline.until([]() -> bool { throw Error(Code::kIo, "the bus"); }); }),
            Code::kIo);
}

}  // namespace
}  // namespace reprise
