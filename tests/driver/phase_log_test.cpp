// Tests the log lines that show a person what a rank is doing.
#include "driver/record/phase_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/ports/clock.hpp"
#include "driver/yaml/text_file.hpp"
#include "reprise/error.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using testing::HasSubstr;
using testing::Not;

struct CountingTrace final : Trace {
  void event(const TraceEvent&) override { ++events; }
  int events = 0;
};

struct SecondsClock final : Clock {
  std::uint64_t now_ns() override { return now += 1'500'000'000; }
  std::uint64_t now = 0;
};

/// Runs a commit that consists of one protocol step, as rank 3 at step 7. Returns the log lines.
std::string logged(const std::string& level, CountingTrace& trace) {
  const contracts::TemporaryDirectory directory;
  const LogOptions options{level, directory.path()};
  const PhaseLog::Rank own{.scenario = "placements/ep2", .life = 1, .rank = {3}};
  SecondsClock clock;
  PhaseLog log(options, own, clock, trace);
  log.at(Step{7});
  log.event({.phase = "commit", .detail = {}, .moment = Moment::kBegin});
  log.event({.phase = "commit", .detail = "tracker", .moment = Moment::kBegin});
  log.event({.phase = "commit", .detail = "tracker", .moment = Moment::kEnd});
  log.event({.phase = "commit", .detail = {}, .bytes = 4096, .items = 2, .moment = Moment::kEnd});
  return text_of(directory.path() + "/placements/ep2/life1-rank3.log");
}

TEST(PhaseLog, has_a_line_a_phase_with_rank_step_bytes_and_seconds) {
  CountingTrace trace;
  const std::string text = logged("info", trace);
  EXPECT_THAT(text, HasSubstr("placements/ep2 life 1 rank 3 step 7 commit: 4096 bytes, 2 items, "
                              "4.500000 s\n"));
  EXPECT_THAT(text, Not(HasSubstr("tracker")));
  EXPECT_EQ(trace.events, 4) << "every event must be passed on";
}

TEST(PhaseLog, has_the_steps_of_protocols_where_that_is_wanted) {
  CountingTrace trace;
  EXPECT_THAT(logged("debug", trace), HasSubstr("step 7 commit/tracker: 0 bytes, 0 items, 1.5"));
}

TEST(PhaseLog, lines_of_a_save_have_its_step_and_time_with_many_in_flight) {
  const contracts::TemporaryDirectory directory;
  SecondsClock clock;
  CountingTrace trace;
  PhaseLog log({"info", directory.path()}, {.scenario = "async/two"}, clock, trace);
  const auto write = [&log](Moment moment, std::int64_t save) {
    log.within(Step{save});
    log.event({.phase = "write", .detail = {}, .moment = moment});
    log.within({});
  };
  log.at(Step{3});
  write(Moment::kBegin, 3);
  log.at(Step{4});
  write(Moment::kBegin, 4);
  log.at(Step{5});
  write(Moment::kEnd, 3);
  write(Moment::kEnd, 4);
  const std::string text = text_of(directory.path() + "/async/two/life0-rank0.log");
  EXPECT_THAT(text, HasSubstr("step 3 write: 0 bytes, 0 items, 3.000000 s\n"));
  EXPECT_THAT(text, HasSubstr("step 4 write: 0 bytes, 0 items, 3.000000 s\n"));
}

TEST(PhaseLog, knows_its_levels) {
  EXPECT_NO_THROW(require_log_level("off"));
  EXPECT_THROW(require_log_level("loud"), Error);
  EXPECT_FALSE(LogOptions{}.on()) << "quiet unless told";
}

}  // namespace
}  // namespace reprise::driver
