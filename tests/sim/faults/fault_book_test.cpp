// Tests the descriptions of faults, and the points at which faults take effect.
#include "sim/faults/fault_book.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/contracts/error_of.hpp"

namespace reprise::sim {
namespace {

using contracts::code_of;

constexpr GlobalRank kRank{1};
constexpr PortCall kWrite{CallKind::kWrite, "write", "run/iter_0000002.saving/common.pt"};
constexpr PortCall kGather{CallKind::kCollective, "all_gather", {}};

FaultSpec spec(FaultKind kind, FaultPlace place) {
  place.rank = kRank;
  return {.kind = kind, .place = std::move(place)};
}

TEST(Fault, every_name_leads_back_to_its_kind) {
  int kinds = 0;
  for (int i = 0; name_of(static_cast<FaultKind>(i)) != "unknown"; ++i, ++kinds) {
    const auto kind = static_cast<FaultKind>(i);
    EXPECT_EQ(fault_named(name_of(kind)), kind);
  }
  EXPECT_EQ(kinds, static_cast<int>(FaultKind::kBadResult) + 1);
  for (const auto moment : {FaultMoment::kBefore, FaultMoment::kDuring, FaultMoment::kAfter}) {
    EXPECT_EQ(moment_named(name_of(moment)), moment);
  }
  for (const auto kind :
       {ResultFault::kTransientError, ResultFault::kPersistentError, ResultFault::kCorrectResult}) {
    EXPECT_EQ(result_fault_named(name_of(kind)), kind);
  }
  EXPECT_FALSE(fault_named("crush"));
}

TEST(Fault, what_cannot_be_is_refused) {
  const FaultSpec impossible[] = {
      spec(FaultKind::kWriteError, {.phase = "commit", .moment = FaultMoment::kBefore}),
      spec(FaultKind::kCrash, {.moment = FaultMoment::kAfter}),
      spec(FaultKind::kCrash, {.step = "tracker"}),
      spec(FaultKind::kCrash, {.nth = -1}),
      spec(FaultKind::kCrash,
           {.phase = "write", .moment = FaultMoment::kBefore, .file = FileKind::kCommon}),
      spec(FaultKind::kBadResult, {.phase = "commit"}),
  };
  for (const auto& fault : impossible) {
    EXPECT_EQ(code_of([&] { FaultBook({fault}); }), Code::kUsage) << to_string(fault);
  }
}

TEST(FaultBook, counts_places_from_when_a_fault_was_armed) {
  FaultBook book({spec(FaultKind::kWriteError, {.nth = 1})});
  EXPECT_EQ(book.strikes(kRank, kWrite), nullptr);
  EXPECT_FALSE(book.states()[0].armed);
  book.arm(0, GlobalRank{0});  // no effect, because the fault is for another rank
  EXPECT_FALSE(book.states()[0].armed);
  book.arm(0, kRank);
  EXPECT_EQ(book.strikes(GlobalRank{0}, kWrite), nullptr);
  EXPECT_EQ(book.strikes(kRank, kGather), nullptr);
  EXPECT_FALSE(book.states()[0].reached) << "no write yet";
  EXPECT_EQ(book.strikes(kRank, kWrite), nullptr);
  EXPECT_TRUE(book.states()[0].reached);
  EXPECT_FALSE(book.states()[0].fired);
  EXPECT_NE(book.strikes(kRank, kWrite), nullptr);
  EXPECT_TRUE(book.states()[0].fired);
  EXPECT_EQ(book.strikes(kRank, kWrite), nullptr) << "once";
}

TEST(FaultBook, a_phase_is_entered_and_left_once_whatever_its_steps) {
  struct Row {
    FaultPlace place;
    std::string_view at;  ///< event at which the fault takes effect
  };
  const Row rows[] = {
      {{.phase = "commit", .moment = FaultMoment::kBefore}, "begin commit"},
      {{.phase = "commit", .step = "metadata", .moment = FaultMoment::kBefore}, "begin metadata"},
      {{.phase = "commit", .step = "metadata", .moment = FaultMoment::kDuring}, "call in metadata"},
      {{.phase = "commit", .step = "metadata", .moment = FaultMoment::kAfter}, "end metadata"},
      {{.phase = "commit", .moment = FaultMoment::kDuring}, "call before the steps"},
      {{.phase = "commit", .moment = FaultMoment::kDuring, .nth = 1}, "call in metadata"},
      {{.phase = "commit", .moment = FaultMoment::kDuring, .nth = 2}, "call in tracker"},
      {{.phase = "commit", .step = "tracker", .moment = FaultMoment::kAfter}, "end tracker"},
      {{.phase = "commit", .moment = FaultMoment::kAfter}, "end commit"},
      {{.phase = "vote", .moment = FaultMoment::kDuring}, "call in vote"},
      {{.phase = "write", .moment = FaultMoment::kDuring, .nth = 1}, "call in vote"},
      {{.phase = "write", .moment = FaultMoment::kAfter}, "end write"},
      {{.phase = "vote", .moment = FaultMoment::kAfter, .nth = 1}, "end second vote"},
  };
  for (const auto& row : rows) {
    FaultBook book({spec(FaultKind::kCrash, row.place)});
    book.arm(0, kRank);
    std::string struck;
    const auto note = [&](const FaultSpec* fault, const char* at) {
      if (fault != nullptr) struck += at;
    };
    note(book.begins(kRank, "write", ""), "begin write");
    note(book.strikes(kRank, kWrite), "call in write");
    note(book.begins(kRank, "vote", ""), "begin vote");
    note(book.strikes(kRank, kGather), "call in vote");
    note(book.ends(kRank, "vote", ""), "end vote");
    note(book.begins(kRank, "vote", ""), "begin second vote");
    note(book.ends(kRank, "write", ""), "end write");
    note(book.ends(kRank, "vote", ""), "end second vote");
    note(book.begins(kRank, "commit", ""), "begin commit");
    note(book.strikes(kRank, kGather), "call before the steps");
    note(book.begins(kRank, "commit", "metadata"), "begin metadata");
    note(book.strikes(kRank, kWrite), "call in metadata");
    note(book.ends(kRank, "commit", "metadata"), "end metadata");
    note(book.begins(kRank, "commit", "tracker"), "begin tracker");
    note(book.strikes(kRank, kWrite), "call in tracker");
    note(book.ends(kRank, "commit", "tracker"), "end tracker");
    note(book.ends(kRank, "commit", ""), "end commit");
    note(book.strikes(kRank, kWrite), "call after all");
    EXPECT_EQ(struck, row.at) << to_string(book.states()[0].spec);
  }
}

TEST(FaultBook, a_phase_left_by_an_error_ends_at_the_next_operation) {
  FaultBook book({spec(FaultKind::kCrash, {.phase = "commit", .nth = 1})});
  book.arm(0, kRank);
  book.begins(kRank, "commit", "");
  book.begins(kRank, "commit", "metadata");
  // ends() is not called, as if an exception had left the phase.
  EXPECT_EQ(book.strikes(kRank, kWrite), nullptr);
  book.begins(kRank, "plan", "");
  EXPECT_EQ(book.strikes(kRank, kGather), nullptr);
  book.begins(kRank, "commit", "");
  EXPECT_NE(book.strikes(kRank, kWrite), nullptr);
}

TEST(FaultBook, a_file_narrows_what_counts) {
  FaultBook book({spec(FaultKind::kFlipWrite, {.file = FileKind::kTracker})});
  book.arm(0, kRank);
  EXPECT_EQ(book.strikes(kRank, kWrite), nullptr);
  EXPECT_FALSE(book.states()[0].reached);
  const PortCall tracker{CallKind::kWrite, "write", "run/latest_checkpointed_iteration.txt.tmp"};
  EXPECT_NE(book.strikes(kRank, tracker), nullptr);
}

TEST(FaultBook, background_writes_belong_to_write_wherever_the_rank_is) {
  const std::string saving = "run/iter_0000002.saving-0123456789abcdef/__0_0.distcp";
  struct Row {
    PortCall call;
    bool of_writer;
  };
  for (const Row& row :
       {Row{{CallKind::kWrite, "write", saving}, true},
        Row{{CallKind::kSync, "sync", saving}, true},
        Row{{CallKind::kOther, "close", saving}, true},
        Row{{CallKind::kOther, "open", saving}, true}, Row{{CallKind::kRead, "read", saving}, true},
        Row{{CallKind::kOther, "create", saving}, false},
        Row{{CallKind::kOther, "stat", saving}, false},
        Row{{CallKind::kRead, "read", "run/iter_0000001/__0_0.distcp"}, false},
        Row{kGather, false}}) {
    for (const char* phase : {"stage", "vote", "write"}) {
      FaultBook book({spec(FaultKind::kCrash, {.phase = "write"}),
                      spec(FaultKind::kCrash, {.phase = "stage"})});
      book.arm(0, kRank);
      book.arm(1, kRank);
      book.begins(kRank, phase, "");
      book.strikes(kRank, row.call);
      SCOPED_TRACE(std::string(phase) + ": " + std::string(row.call.what));
      EXPECT_EQ(book.states()[0].fired, row.of_writer || std::string(phase) == "write");
      EXPECT_EQ(book.states()[1].fired, !row.of_writer && std::string(phase) == "stage");
    }
  }
}

TEST(FaultBook, the_number_of_a_write_is_independent_of_its_time) {
  const PortCall write{CallKind::kWrite, "write",
                       "run/iter_0000002.saving-0123456789abcdef/__0_0.distcp"};
  for (int early = 0; early <= 4; ++early) {
    FaultBook book({spec(FaultKind::kFlipWrite, {.phase = "write", .nth = 3})});
    book.arm(0, kRank);
    book.begins(kRank, "stage", "");
    int struck = -1;
    const auto write_one = [&](int number) {
      if (book.strikes(kRank, write) != nullptr) struck = number;
    };
    for (int i = 0; i < early; ++i) write_one(i);
    book.ends(kRank, "stage", "");
    book.begins(kRank, "write", "");
    for (int i = early; i < 8; ++i) write_one(i);
    EXPECT_EQ(struck, 3) << early << " writes while the rank is in stage";
  }
}

TEST(FaultBook, nothing_strikes_the_dead) {
  FaultBook book({spec(FaultKind::kCrash, {})});
  book.arm(0, kRank);
  book.bury(kRank);
  EXPECT_TRUE(book.ended(kRank));
  EXPECT_EQ(book.begins(kRank, "plan", ""), nullptr);
  EXPECT_EQ(book.strikes(kRank, kWrite), nullptr);
  EXPECT_FALSE(book.states()[0].fired);
}

TEST(FaultBook, a_bad_result_is_wrong_where_its_kind_says) {
  // The result is computed three times: on the original device, again on that device, and later on
  // another device. Each flag tells whether that computation gives a wrong result.
  struct Row {
    ResultFault kind;
    bool first, again, elsewhere;
  };
  const Row rows[] = {
      {ResultFault::kTransientError, true, false, false},
      {ResultFault::kPersistentError, true, true, false},
      {ResultFault::kCorrectResult, true, true, true},
  };
  for (const auto& row : rows) {
    for (const bool fatal : {true, false}) {
      FaultSpec fault = spec(FaultKind::kBadResult, {});
      fault.result = {.kind = row.kind, .fatal = fatal};
      FaultBook book({fault});
      const auto wrong = [&](std::int64_t iteration, int run, std::string_view device) {
        const double result = book.result_of(
            {.rank = kRank, .device = device, .iteration = iteration, .call = 0, .run = run}, 2.5);
        EXPECT_TRUE(result == 2.5 || std::isnan(result) == fatal);
        return result != 2.5;
      };
      EXPECT_FALSE(wrong(3, 0, "node0:1")) << "not armed";
      book.arm(0, kRank, 3, "node0:1");
      EXPECT_FALSE(wrong(2, 0, "node0:1")) << "another iteration";
      EXPECT_EQ(wrong(3, 0, "node0:1"), row.first);
      EXPECT_TRUE(book.states()[0].fired);
      EXPECT_EQ(wrong(3, 1, "node0:1"), row.again);
      // A faulty device or model remains faulty in the next life.
      FaultBook next({book.states()[0].spec});
      EXPECT_EQ(outlives(fault), row.kind != ResultFault::kTransientError);
      const double moved = next.result_of(
          {.rank = kRank, .device = "node1:1", .iteration = 3, .call = 0, .run = 1}, 2.5);
      EXPECT_EQ(moved != 2.5, row.elsewhere);
    }
  }
}

}  // namespace
}  // namespace reprise::sim
