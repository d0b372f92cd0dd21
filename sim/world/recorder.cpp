#include "sim/world/recorder.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "core/save/phases.hpp"

namespace reprise::sim {
namespace {

/// True if the slice is a phase or a step of this save, or of none.
bool is_of(const Slice& slice, std::optional<Step> save) {
  const bool of_trace = slice.kind == SliceKind::kPhase || slice.kind == SliceKind::kStep;
  return of_trace && slice.save == save;
}

/// True if the slice is that of the event's phase or step.
bool is_slice_of(const Slice& slice, const TraceEvent& event) {
  if (event.detail.empty()) return slice.kind == SliceKind::kPhase && slice.name == event.phase;
  return slice.kind == SliceKind::kStep && slice.name == event.detail &&
         slice.detail == event.phase;
}

/// True if a slice that has not ended when the event's phase or step begins has failed. The phases
/// of a save follow one another, except that others begin while its files are written. Steps follow
/// one another within their phase.
bool has_failed_before(const Slice& slice, const TraceEvent& event) {
  if (!event.detail.empty()) return slice.kind == SliceKind::kStep;
  return slice.name != phase::kWrite || event.phase == phase::kWrite;
}

auto order_of(const Slice& slice) {
  return std::tuple(slice.begin_ns, ~slice.end_ns, slice.rank, slice.kind);
}

}  // namespace

void put_in_order(std::vector<Slice>& slices) {
  std::stable_sort(slices.begin(), slices.end(),
                   [](const Slice& a, const Slice& b) { return order_of(a) < order_of(b); });
}

void Recorder::attach(Lane lane) {
  const std::lock_guard lock(mutex_);
  lane_ = std::move(lane);
}

std::uint64_t Recorder::now_ns() {
  const std::lock_guard lock(mutex_);
  return now();
}

void Recorder::phase(GlobalRank rank, const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  if (is_dead(rank)) return;
  if (event.phase == kBrokenProtocol) {
    keep(Instant{InstantKind::kBroken, rank, now(), std::string(event.phase), event.detail});
    return;
  }
  const auto save = save_of(rank);
  if (event.moment == Moment::kBegin) {
    close_stale(rank, event);
    const bool step = !event.detail.empty();
    begin({.kind = step ? SliceKind::kStep : SliceKind::kPhase,
           .rank = rank,
           .fiber = lane_.running(),
           .name = step ? event.detail : std::string(event.phase),
           .detail = step ? std::string(event.phase) : "",
           .begin_ns = now(),
           .save = save});
    return;
  }
  Open& own = open_[rank];
  const auto open = std::find_if(own.begin(), own.end(), [&](const auto& one) {
    return is_of(one.second, save) && is_slice_of(one.second, event);
  });
  if (open == own.end()) return;
  open->second.bytes = event.bytes;
  open->second.items = event.items;
  close(own, open, false, now());
}

void Recorder::close_stale(GlobalRank rank, const TraceEvent& event) {
  const auto save = save_of(rank);
  const std::uint64_t end_ns = now();  // the same for all, so that a step stays within its phase
  Open& own = open_[rank];
  for (auto open = own.begin(); open != own.end();) {
    const bool stale = is_of(open->second, save) && has_failed_before(open->second, event);
    open = stale ? close(own, open, true, end_ns) : std::next(open);
  }
}

void Recorder::within(GlobalRank rank, std::optional<Step> save) {
  const std::lock_guard lock(mutex_);
  within_[rank] = save;
}

void Recorder::save_ended(GlobalRank rank, Step save) {
  const std::lock_guard lock(mutex_);
  if (is_dead(rank)) return;
  const std::uint64_t end_ns = now();
  Open& own = open_[rank];
  for (auto open = own.begin(); open != own.end();) {
    open = is_of(open->second, save) ? close(own, open, true, end_ns) : std::next(open);
  }
}

std::optional<Step> Recorder::save_of(GlobalRank rank) const {
  const auto found = within_.find(rank);
  return found == within_.end() ? std::nullopt : found->second;
}

void Recorder::store(GlobalRank rank, const StoreCall& call) {
  const std::lock_guard lock(mutex_);
  if (is_dead(rank)) return;
  keep(0, {.kind = SliceKind::kStore,
           .rank = rank,
           .fiber = lane_.running(),
           .name = std::string(call.operation),
           .detail = std::string(call.path),
           .begin_ns = call.begin_ns,
           .end_ns = now(),
           .bytes = call.bytes,
           .cut = call.failed});
}

void Recorder::copies(GlobalRank rank, const Copies& copies) {
  const std::lock_guard lock(mutex_);
  const Transfer& passes = copies.passes;
  if (passes.begin_ns == passes.end_ns || is_dead(rank)) return;
  keep(0, {.kind = SliceKind::kCopy,
           .rank = rank,
           .fiber = lane_.running(),
           .name = std::string(copies.operation),
           .detail = std::string(copies.device),
           .begin_ns = passes.begin_ns,
           .end_ns = passes.end_ns,
           .bytes = copies.bytes});
}

std::uint64_t Recorder::come(GlobalRank rank, const Collective& call) {
  const std::lock_guard lock(mutex_);
  return begin({.kind = SliceKind::kCollective,
                .rank = rank,
                .fiber = lane_.running(),
                .name = std::string(call.operation),
                .detail = std::string(call.group),
                .begin_ns = call.begin_ns,
                .bytes = call.bytes});
}

void Recorder::join(GlobalRank rank, std::uint64_t call, Meeting meeting) {
  const std::lock_guard lock(mutex_);
  const auto open = open_[rank].find(call);
  if (open == open_[rank].end()) return;
  open->second.meeting = meeting;
  if (sink_.begun) sink_.begun(call, open->second);
}

void Recorder::leave(GlobalRank rank, std::uint64_t call, bool failed) {
  const std::lock_guard lock(mutex_);
  if (!lane_.now_ns || is_dead(rank)) return;
  const auto open = open_[rank].find(call);
  if (open != open_[rank].end()) close(open_[rank], open, failed, now());
}

void Recorder::fault(GlobalRank rank, std::string_view kind, std::string_view where) {
  const std::lock_guard lock(mutex_);
  if (is_dead(rank)) return;
  keep(Instant{InstantKind::kFault, rank, now(), std::string(kind), std::string(where)});
}

void Recorder::died(GlobalRank rank) { ended(rank, "killed", ""); }

void Recorder::returned(GlobalRank rank) {
  const std::lock_guard lock(mutex_);
  close_all(rank);
}

void Recorder::ended(GlobalRank rank, std::string_view how, std::string_view why) {
  const std::lock_guard lock(mutex_);
  close_all(rank);
  keep(Instant{InstantKind::kEnd, rank, now(), std::string(how), std::string(why)});
}

void Recorder::finish() {
  const std::lock_guard lock(mutex_);
  for (const auto& [rank, own] : open_) close_all(rank);
  duration_ns_ = now();
  lane_ = {};
}

Recording Recorder::take() {
  const std::lock_guard lock(mutex_);
  Recording recording{
      .slices = {std::make_move_iterator(kept_.begin()), std::make_move_iterator(kept_.end())},
      .instants = std::move(instants_),
      .duration_ns = duration_ns_,
      .left_out = left_out_};
  put_in_order(recording.slices);
  return recording;
}

std::uint64_t Recorder::begin(Slice slice) {
  ++begun_;
  if (sink_.begun) sink_.begun(begun_, slice);
  open_[slice.rank].emplace(begun_, std::move(slice));
  return begun_;
}

Recorder::Open::iterator Recorder::close(Open& own, Open::iterator open, bool cut,
                                         std::uint64_t end_ns) {
  open->second.end_ns = end_ns;
  open->second.cut = cut;
  keep(open->first, std::move(open->second));
  return own.erase(open);
}

void Recorder::close_all(GlobalRank rank) {
  const std::uint64_t end_ns = now();
  Open& own = open_[rank];
  while (!own.empty()) close(own, own.begin(), true, end_ns);
}

void Recorder::keep(Instant instant) {
  if (sink_.instant) return sink_.instant(instant);
  instants_.push_back(std::move(instant));
}

void Recorder::keep(std::uint64_t number, Slice slice) {
  if (sink_.slice) return sink_.slice(number, slice);
  kept_.push_back(std::move(slice));
  if (kept_.size() <= slices_max_) return;
  kept_.pop_front();
  ++left_out_;
}

}  // namespace reprise::sim
