#include "driver/trace/life_trace.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "driver/trace/proto_writer.hpp"
#include "driver/trace/slice_tracks.hpp"
#include "sim/fibers/scheduler.hpp"

namespace reprise::driver {
namespace {

// Numbers of the fields of Perfetto's trace format that we write. A file is one Trace message:
//
//   Trace             protos/perfetto/trace/trace.proto
//   TracePacket       protos/perfetto/trace/trace_packet.proto
//   TrackDescriptor   protos/perfetto/trace/track_event/track_descriptor.proto
//   ProcessDescriptor protos/perfetto/trace/track_event/process_descriptor.proto
//   TrackEvent        protos/perfetto/trace/track_event/track_event.proto
//   DebugAnnotation   protos/perfetto/trace/track_event/debug_annotation.proto
//
// of https://github.com/google/perfetto. Such numbers never change once they are in use.
namespace perfetto {

namespace trace {
constexpr std::uint32_t kPacket = 1;
}  // namespace trace

namespace packet {
constexpr std::uint32_t kTimestamp = 8;  // in ns
constexpr std::uint32_t kSequenceId = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet

namespace track {
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kProcess = 3;
constexpr std::uint32_t kParentUuid = 5;
constexpr std::uint32_t kChildOrdering = 11;
constexpr std::uint32_t kSiblingOrderRank = 12;

constexpr std::uint64_t kChildrenOrderedByRank = 3;  // EXPLICIT of kChildOrdering
}  // namespace track

namespace process {
constexpr std::uint32_t kPid = 1;
constexpr std::uint32_t kName = 6;
}  // namespace process

namespace event {
constexpr std::uint32_t kAnnotation = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kTrackUuid = 11;
constexpr std::uint32_t kCategory = 22;
constexpr std::uint32_t kName = 23;
constexpr std::uint32_t kFlowId = 47;  // fixed64

constexpr std::uint64_t kSliceBegin = 1;  // values of kType
constexpr std::uint64_t kSliceEnd = 2;
constexpr std::uint64_t kInstant = 3;
}  // namespace event

namespace annotation {
constexpr std::uint32_t kBool = 2;
constexpr std::uint32_t kUint = 3;
constexpr std::uint32_t kString = 6;
constexpr std::uint32_t kName = 10;
}  // namespace annotation

}  // namespace perfetto

namespace event = perfetto::event;

constexpr unsigned kLifeShift = 32;  ///< numbers of tracks and flows have the life above this bit

std::string_view category_of(sim::SliceKind kind) {
  switch (kind) {
    case sim::SliceKind::kPhase:
      return "phase";
    case sim::SliceKind::kStep:
      return "step";
    case sim::SliceKind::kCollective:
      return "collective";
    case sim::SliceKind::kStore:
      return "store";
    case sim::SliceKind::kCopy:
      return "copy";
  }
  return "";
}

/// The category of an instant, what stands before its name, and what its detail is.
struct InstantWords {
  std::string_view category;
  std::string prefix;
  std::string_view note;
};
InstantWords words_of(sim::InstantKind kind) {
  switch (kind) {
    case sim::InstantKind::kFault:
      return {"fault", "fault: ", "where"};
    case sim::InstantKind::kBroken:
      return {"broken", "broken: ", "how"};
    case sim::InstantKind::kEnd:
    case sim::InstantKind::kLost:
      break;
  }
  return {"end", "", "why"};
}

/// A TrackEvent that is being written.
class TrackEvent {
 public:
  TrackEvent(std::uint64_t type, std::uint64_t track) {
    writer_.number(event::kType, type).number(event::kTrackUuid, track);
  }
  TrackEvent& named(std::string_view category, std::string_view name) {
    writer_.text(event::kCategory, category).text(event::kName, name);
    return *this;
  }
  TrackEvent& note(std::string_view name, std::string_view text) {
    if (text.empty()) return *this;
    return add(name, ProtoWriter().text(perfetto::annotation::kString, text));
  }
  TrackEvent& note(std::string_view name, std::uint64_t number) {
    return add(name, ProtoWriter().number(perfetto::annotation::kUint, number));
  }
  TrackEvent& mark(std::string_view name) {
    return add(name, ProtoWriter().number(perfetto::annotation::kBool, 1));
  }
  TrackEvent& flow(std::uint64_t id) {
    writer_.fixed64(event::kFlowId, id);
    return *this;
  }
  const ProtoWriter& writer() const { return writer_; }

 private:
  TrackEvent& add(std::string_view name, ProtoWriter value) {
    value.text(perfetto::annotation::kName, name);
    writer_.message(event::kAnnotation, value);
    return *this;
  }

  ProtoWriter writer_;
};

class LifeTrace {
 public:
  LifeTrace(const TracedLife& life, const sim::Recording& recording)
      : life_(life), recording_(recording), flows_(flows_of(recording)) {}

  std::string packets() {
    describe_process();
    std::vector<std::vector<const sim::Slice*>> slices(life_.ranks.size());
    std::vector<Copies> copies(life_.ranks.size());
    for (const auto& slice : recording_.slices) {
      const auto rank = static_cast<std::size_t>(slice.rank.value);
      if (slice.kind == sim::SliceKind::kCopy) {
        copies.at(rank)[slice.name].slices.push_back(&slice);
      } else {
        slices.at(rank).push_back(&slice);
      }
    }
    for (std::size_t rank = 0; rank < slices.size(); ++rank) {
      add_rank(rank, slices[rank]);
      add_copies(rank, copies[rank]);
    }
    add_store();
    return joined();
  }

 private:
  using Copies = std::map<std::string, SliceTrack>;  ///< by direction: "gather", "scatter"
  struct StoreTrack {
    std::uint64_t uuid;
    std::uint64_t free_ns;
  };

  /// Numbers the collective calls that connect several ranks, from 1.
  static std::map<sim::Meeting, std::uint64_t> flows_of(const sim::Recording& recording) {
    std::map<sim::Meeting, int> ranks;
    for (const auto& slice : recording.slices) {
      if (slice.meeting) ++ranks[*slice.meeting];
    }
    std::map<sim::Meeting, std::uint64_t> flows;
    for (const auto& slice : recording.slices) {
      if (!slice.meeting || ranks[*slice.meeting] < 2) continue;
      flows.try_emplace(*slice.meeting, flows.size() + 1);
    }
    return flows;
  }

  std::uint64_t number_in_life(std::uint64_t number) const {
    return (std::uint64_t{life_.number} << kLifeShift) | number;
  }
  std::uint64_t process_track() const { return number_in_life(0); }

  void describe_process() {
    ProtoWriter process;
    process.number(perfetto::process::kPid, life_.number)
        .text(perfetto::process::kName, life_.name);
    describe(ProtoWriter()
                 .number(perfetto::track::kUuid, process_track())
                 .message(perfetto::track::kProcess, process)
                 .number(perfetto::track::kChildOrdering, perfetto::track::kChildrenOrderedByRank));
    if (recording_.left_out == 0) return;
    add(0, TrackEvent(event::kInstant, process_track())
               .named("trace", "the oldest slices of this life were left out")
               .note("slices", recording_.left_out));
  }

  std::uint64_t add_track(const std::string& name) {
    const std::uint64_t uuid = number_in_life(++tracks_);
    describe(ProtoWriter()
                 .number(perfetto::track::kUuid, uuid)
                 .text(perfetto::track::kName, name)
                 .number(perfetto::track::kParentUuid, process_track())
                 .number(perfetto::track::kSiblingOrderRank, tracks_));
    return uuid;
  }

  void add_rank(std::size_t rank, const std::vector<const sim::Slice*>& slices) {
    bool first = true;
    for (const auto& track : tracks_of(slices)) {
      const std::uint64_t uuid = add_track(life_.ranks[rank] + track.suffix);
      if (std::exchange(first, false)) add_instants(rank, uuid);
      add_slices(track, uuid);
    }
  }

  /// A bus carries the copies of one direction one after another, so they never overlap.
  void add_copies(std::size_t rank, const Copies& copies) {
    for (const auto& [direction, track] : copies) {
      add_slices(track, add_track(life_.ranks[rank] + ", " + direction));
    }
  }

  void add_instants(std::size_t rank, std::uint64_t track) {
    for (const auto& instant : recording_.instants) {
      if (static_cast<std::size_t>(instant.rank.value) != rank) continue;
      const auto [category, prefix, note] = words_of(instant.kind);
      TrackEvent written(event::kInstant, track);
      written.named(category, prefix + instant.name).note(note, instant.detail);
      add(instant.at_ns, written);
    }
  }

  void add_slices(const SliceTrack& track, std::uint64_t uuid) {
    std::vector<const sim::Slice*> open;
    const auto end_those_before = [&](std::optional<std::uint64_t> time) {
      while (!open.empty() && (!time || open.back()->end_ns <= *time)) {
        add(open.back()->end_ns, TrackEvent(event::kSliceEnd, uuid));
        open.pop_back();
      }
    };
    for (const sim::Slice* slice : track.slices) {
      end_those_before(slice->begin_ns);
      add(slice->begin_ns, begin_of(*slice, uuid));
      open.push_back(slice);
    }
    end_those_before({});
  }

  TrackEvent begin_of(const sim::Slice& slice, std::uint64_t track) const {
    TrackEvent begin(event::kSliceBegin, track);
    begin.named(category_of(slice.kind), slice.name);
    switch (slice.kind) {
      case sim::SliceKind::kPhase:
      case sim::SliceKind::kStep:
        if (slice.save) begin.note("save_of_step", static_cast<std::uint64_t>(slice.save->value));
        if (slice.items > 0) begin.note("items", slice.items);
        break;
      case sim::SliceKind::kCollective:
        begin.note("group", slice.detail);
        if (slice.meeting) begin.note("call", slice.meeting->sequence);
        break;
      case sim::SliceKind::kStore:
        begin.note("path", slice.detail);
        break;
      case sim::SliceKind::kCopy:
        begin.note("device", slice.detail);
        break;
    }
    if (slice.bytes > 0) begin.note("bytes", slice.bytes);
    if (slice.cut) begin.mark("cut");
    const auto flow = slice.meeting ? flows_.find(*slice.meeting) : flows_.end();
    if (flow != flows_.end()) begin.flow(number_in_life(flow->second));
    return begin;
  }

  /// In virtual time each call takes effect in a switch of its own, at the end of which the rank's
  /// call ends. So the store's slices never overlap, and one track holds them. In real time they
  /// take as long as the calls, and those that overlap are on further tracks.
  void add_store() {
    std::vector<const sim::Slice*> calls;
    for (const auto& slice : recording_.slices) {
      if (slice.kind == sim::SliceKind::kStore) calls.push_back(&slice);
    }
    if (!recording_.real_time) {
      std::sort(calls.begin(), calls.end(),
                [](const auto* a, const auto* b) { return a->end_ns < b->end_ns; });
    }
    std::vector<StoreTrack> tracks = {{add_track("store"), 0}};
    for (const sim::Slice* call : calls) {
      const std::uint64_t begin_ns =
          recording_.real_time ? call->begin_ns : call->end_ns - sim::Scheduler::kSwitchNs;
      const std::uint64_t track = store_track(tracks, begin_ns, call->end_ns);
      TrackEvent begin(event::kSliceBegin, track);
      begin.named("store", call->name)
          .note("path", call->detail)
          .note("rank", static_cast<std::uint64_t>(call->rank.value));
      if (call->bytes > 0) begin.note("bytes", call->bytes);
      if (call->cut) begin.mark("cut");
      add(begin_ns, begin);
      add(call->end_ns, TrackEvent(event::kSliceEnd, track));
    }
  }

  /// Returns a track of the store that is free from `begin_ns` on, and takes it until `end_ns`.
  std::uint64_t store_track(std::vector<StoreTrack>& tracks, std::uint64_t begin_ns,
                            std::uint64_t end_ns) {
    auto found = std::find_if(tracks.begin(), tracks.end(),
                              [&](const StoreTrack& track) { return track.free_ns <= begin_ns; });
    if (found == tracks.end()) {
      const std::string name = "store, overlapping " + std::to_string(tracks.size());
      found = tracks.insert(tracks.end(), {add_track(name), 0});
    }
    found->free_ns = end_ns;
    return found->uuid;
  }

  void describe(const ProtoWriter& track) {
    ProtoWriter packet;
    packet.number(perfetto::packet::kSequenceId, life_.number)
        .message(perfetto::packet::kTrackDescriptor, track);
    descriptors_.message(perfetto::trace::kPacket, packet);
  }

  void add(std::uint64_t at_ns, const TrackEvent& written) {
    ProtoWriter packet;
    packet.number(perfetto::packet::kTimestamp, life_.begin_ns + at_ns)
        .number(perfetto::packet::kSequenceId, life_.number)
        .message(perfetto::packet::kTrackEvent, written.writer());
    ProtoWriter trace;
    trace.message(perfetto::trace::kPacket, packet);
    events_.emplace_back(at_ns, trace.bytes());
  }

  std::string joined() {
    // Stable, so that events of one track that happen together keep their order.
    std::stable_sort(events_.begin(), events_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string bytes = descriptors_.bytes();
    for (const auto& [time, packet] : events_) bytes += packet;
    return bytes;
  }

  const TracedLife& life_;
  const sim::Recording& recording_;
  std::map<sim::Meeting, std::uint64_t> flows_;
  std::uint64_t tracks_ = 0;
  ProtoWriter descriptors_;
  std::vector<std::pair<std::uint64_t, std::string>> events_;  ///< time and packet
};

}  // namespace

std::string packets_of(const TracedLife& life, const sim::Recording& recording) {
  return LifeTrace(life, recording).packets();
}

}  // namespace reprise::driver
