#include "core/ports/call_deadline.hpp"

#include <algorithm>
#include <limits>
#include <sstream>
#include <thread>

#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr int kTestsBeforeYield = 100;
// If there are more ranks than cores, a waiting rank must sleep to let the others run.
constexpr int kTestsBeforeSleep = 2000;
constexpr auto kSleep = std::chrono::microseconds(100);
constexpr std::uint64_t kLookNs = 20'000'000;
/// How long a job that was told to stop waits on for ranks that come.
constexpr std::uint64_t kPatienceNs = 2'000'000'000;
/// How long to wait for messages that a member sent before it ended.
constexpr std::uint64_t kGraceNs = 200'000'000;

/// Returns the time at which the deadline is reached. If the sum overflows, returns the largest
/// possible time.
std::uint64_t sum_or_end(std::uint64_t now_ns, std::uint64_t deadline_ns) {
  const std::uint64_t sum = now_ns + deadline_ns;
  return sum < now_ns ? std::numeric_limits<std::uint64_t>::max() : sum;
}

}  // namespace

void require_deadline(std::uint64_t deadline_ns) {
  if (deadline_ns != 0) return;
  throw Error(Code::kUsage, "deadline: it must be longer than 0");
}

std::uint64_t required_deadline(std::chrono::nanoseconds deadline) {
  const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(deadline.count(), 0));
  require_deadline(ns);
  return ns;
}

CallDeadline::CallDeadline(Clock& clock, Limits limits, const Group& group, GlobalRank self,
                           std::function<std::string()> describe)
    : clock_(clock),
      limits_(limits),
      group_(&group),
      self_(self),
      describe_(std::move(describe)),
      ends_at_ns_(sum_or_end(clock.now_ns(), limits.deadline_ns)),
      next_look_ns_(clock.now_ns() + kLookNs) {}

CallDeadline::CallDeadline(Clock& clock, std::uint64_t deadline_ns,
                           std::function<std::string()> describe)
    : clock_(clock),
      limits_{.deadline_ns = deadline_ns},
      group_(nullptr),
      describe_(std::move(describe)),
      ends_at_ns_(sum_or_end(clock.now_ns(), deadline_ns)),
      next_look_ns_(ends_at_ns_) {}

void CallDeadline::until(const std::function<bool()>& done) {
  for (int tests = 1; !done(); ++tests) {
    const bool long_wait = tests > kTestsBeforeSleep;
    if (!long_wait && tests % kTestsBeforeYield != 0) continue;
    look();
    if (long_wait) {
      std::this_thread::sleep_for(kSleep);
    } else {
      std::this_thread::yield();
    }
  }
}

void CallDeadline::look() {
  const std::uint64_t now = clock_.now_ns();
  if (now > ends_at_ns_) {
    throw Error(Code::kDeadline,
                describe_() + ": no answer in time; a member has died, is hanging or is slow",
                {.rank = self_});
  }
  if (limits_.watch == nullptr || now < next_look_ns_) return;
  next_look_ns_ = now + kLookNs;
  if (!told_ns_ && limits_.watch->interrupted()) told_ns_ = now;
  // Ranks that come soon hear of it in the next agreement, and all throw the same.
  if (told_ns_ && now > *told_ns_ + kPatienceNs) {
    throw Error(Code::kInterrupted, describe_() + ": the job was told to stop while it waited",
                {.rank = self_});
  }
  if (ended_ && now > ended_->second + kGraceNs) {
    std::ostringstream text;
    text << describe_() << ": rank " << ended_->first << " has ended";
    throw Error(Code::kPeerFailed, text.str(), {.rank = self_});
  }
  if (ended_) return;
  if (const auto member = ended_member()) ended_ = {*member, now};
}

std::optional<GlobalRank> CallDeadline::ended_member() const {
  for (const auto member : group_->members()) {
    if (member != *self_ && limits_.watch->has_ended(member)) return member;
  }
  return std::nullopt;
}

}  // namespace reprise
