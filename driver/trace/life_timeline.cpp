#include "driver/trace/life_timeline.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/judges/failure.hpp"
#include "driver/record/history.hpp"

namespace reprise::driver {
namespace {

using reports::TimelineEvent;
using reports::TimelineKind;
using Members = std::vector<std::int32_t>;

/// The step of a commit after which a load finds the checkpoint.
constexpr std::string_view kCommitStep = "tracker";

/// Reads the text of a group: "{0 2 4}".
Members members_in(std::string_view text) {
  Members members;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::int32_t rank = 0;
    const auto read = std::from_chars(at, end, rank);
    if (read.ec == std::errc()) members.push_back(rank);
    at = read.ec == std::errc() ? read.ptr : at + 1;
  }
  return members;
}

TimelineEvent event_of(const sim::Slice& slice, TimelineKind kind) {
  return {.kind = kind,
          .name = slice.name,
          .detail = slice.detail,
          .ranks = {{slice.rank.value, slice.begin_ns}},
          .end_ns = slice.end_ns,
          .cut = slice.cut};
}

TimelineKind kind_of(sim::InstantKind kind) {
  switch (kind) {
    case sim::InstantKind::kFault:
      return TimelineKind::kFault;
    case sim::InstantKind::kBroken:
      return TimelineKind::kBroken;
    case sim::InstantKind::kEnd:
    case sim::InstantKind::kLost:
      break;
  }
  return TimelineKind::kEnd;
}

class LifeTimeline {
 public:
  explicit LifeTimeline(const sim::Recording& recording) : recording_(recording) {
    for (const auto& slice : recording.slices) add(slice);
    for (auto& [meeting, call] : calls_) finish(call);
    for (auto& [fiber, call] : last_store_) events_.push_back(std::move(call));
    for (const auto& instant : recording.instants) {
      events_.push_back({.kind = kind_of(instant.kind),
                         .name = instant.name,
                         .detail = instant.detail,
                         .ranks = {{instant.rank.value, instant.at_ns}},
                         .end_ns = instant.at_ns});
    }
  }

  /// Returns the ranks to show, in order.
  Members ranks_of_world(std::int32_t world) const {
    std::set<std::int32_t> shown;
    const auto show = [&shown](std::int32_t rank) {
      if (shown.size() < kTimelineRanksMax) shown.insert(rank);
    };
    for (const auto& event : events_) {
      const bool struck = event.kind == TimelineKind::kFault || event.kind == TimelineKind::kBroken;
      if (struck) show(event.ranks.front().rank);
      for (const auto rank : event.missing) show(rank);
    }
    for (const auto& event : events_) {
      if (event.kind == TimelineKind::kEnd) show(event.ranks.front().rank);
    }
    for (std::int32_t rank = 0; rank < world; ++rank) show(rank);
    return {shown.begin(), shown.end()};
  }

  /// Returns the last events that concern one of the ranks, by their ends, and sets the number of
  /// the others.
  std::vector<TimelineEvent> last_events(const Members& shown, std::uint64_t& left_out) {
    const auto is_hidden = [&shown](std::int32_t rank) {
      return !std::binary_search(shown.begin(), shown.end(), rank);
    };
    for (auto& event : events_) {
      std::erase_if(event.ranks, [&](const auto& one) { return is_hidden(one.rank); });
      std::erase_if(event.missing, is_hidden);
    }
    std::erase_if(events_, [](const TimelineEvent& event) { return event.ranks.empty(); });
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.end_ns < b.end_ns; });
    const std::size_t cut =
        events_.size() > kTimelineEventsMax ? events_.size() - kTimelineEventsMax : 0;
    left_out = cut + recording_.left_out;
    events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(cut));
    return std::move(events_);
  }

 private:
  struct Call {
    TimelineEvent event;
    Members members;
  };

  void add(const sim::Slice& slice) {
    switch (slice.kind) {
      case sim::SliceKind::kPhase:
        events_.push_back(event_of(slice, TimelineKind::kPhase));
        break;
      case sim::SliceKind::kStep:
        events_.push_back(event_of(slice, TimelineKind::kStep));
        if (slice.name == kCommitStep && !slice.cut && slice.save) {
          events_.push_back({.kind = TimelineKind::kCommit,
                             .name = "commit of step " + std::to_string(slice.save->value),
                             .detail = {},
                             .ranks = {{slice.rank.value, slice.end_ns}},
                             .end_ns = slice.end_ns});
        }
        break;
      case sim::SliceKind::kCollective:
        add_call(slice);
        break;
      case sim::SliceKind::kStore:
        add_store(slice);
        break;
      case sim::SliceKind::kCopy:
        break;  // the wait for it is part of a phase
    }
  }

  void add_call(const sim::Slice& slice) {
    Members members = members_in(slice.detail);
    if (members.size() < 2) return;
    if (!slice.meeting) {
      events_.push_back(event_of(slice, TimelineKind::kCollective));
      return;
    }
    const auto [place, first] = calls_.try_emplace(*slice.meeting);
    Call& call = place->second;
    if (first) {
      call = {event_of(slice, TimelineKind::kCollective), std::move(members)};
      return;
    }
    call.event.ranks.push_back({slice.rank.value, slice.begin_ns});
    call.event.cut = call.event.cut || slice.cut;
    call.event.end_ns = std::min(call.event.end_ns, slice.end_ns);
  }

  void finish(Call& call) {
    TimelineEvent& event = call.event;
    for (const auto rank : call.members) {
      const auto came = [rank](const auto& one) { return one.rank == rank; };
      if (std::ranges::none_of(event.ranks, came)) event.missing.push_back(rank);
    }
    // Slices that were left out are not those of ranks that never came.
    if (!event.cut) event.missing.clear();
    events_.push_back(std::move(event));
  }

  void add_store(const sim::Slice& slice) {
    const auto fiber = std::pair(slice.rank, slice.fiber);
    const auto last = last_store_.find(fiber);
    if (last != last_store_.end() && last->second.detail == slice.detail) {
      TimelineEvent& event = last->second;
      if (!event.name.ends_with(slice.name)) event.name += ", " + slice.name;
      event.end_ns = slice.end_ns;
      return;
    }
    if (last != last_store_.end()) {
      events_.push_back(std::move(last->second));
      last_store_.erase(last);
    }
    last_store_.emplace(fiber, event_of(slice, TimelineKind::kStore));
  }

  const sim::Recording& recording_;
  std::vector<TimelineEvent> events_;
  std::map<sim::Meeting, Call> calls_;
  std::map<std::pair<GlobalRank, std::size_t>, TimelineEvent> last_store_;
};

}  // namespace

reports::Timeline timeline_of(const Scenario& scenario, std::size_t life,
                              const sim::Recording& recording) {
  LifeTimeline shape(recording);
  const std::int32_t world = scenario.lives[life].world_size();
  const Members shown = shape.ranks_of_world(world);
  const auto modules = modules_of(scenario, life);
  reports::Timeline timeline{.life = life,
                             .ranks = {},
                             .ranks_left_out = static_cast<std::uint64_t>(world) - shown.size(),
                             .events = {}};
  for (const auto rank : shown) timeline.ranks.push_back({rank, coordinates_of(modules, rank)});
  timeline.events = shape.last_events(shown, timeline.events_left_out);
  return timeline;
}

}  // namespace reprise::driver
