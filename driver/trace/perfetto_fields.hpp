#pragma once
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

#include <cstdint>

namespace reprise::driver::perfetto {

namespace trace {
inline constexpr std::uint32_t kPacket = 1;
}  // namespace trace

namespace packet {
inline constexpr std::uint32_t kTimestamp = 8;  // in ns
inline constexpr std::uint32_t kSequenceId = 10;
inline constexpr std::uint32_t kTrackEvent = 11;
inline constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet

namespace track {
inline constexpr std::uint32_t kUuid = 1;
inline constexpr std::uint32_t kName = 2;
inline constexpr std::uint32_t kProcess = 3;
inline constexpr std::uint32_t kParentUuid = 5;
inline constexpr std::uint32_t kChildOrdering = 11;
inline constexpr std::uint32_t kSiblingOrderRank = 12;

inline constexpr std::uint64_t kChildrenOrderedByRank = 3;  // EXPLICIT of kChildOrdering
}  // namespace track

namespace process {
inline constexpr std::uint32_t kPid = 1;
inline constexpr std::uint32_t kName = 6;
}  // namespace process

namespace event {
inline constexpr std::uint32_t kAnnotation = 4;
inline constexpr std::uint32_t kType = 9;
inline constexpr std::uint32_t kTrackUuid = 11;
inline constexpr std::uint32_t kCategory = 22;
inline constexpr std::uint32_t kName = 23;
inline constexpr std::uint32_t kFlowId = 47;  // fixed64

inline constexpr std::uint64_t kSliceBegin = 1;  // values of kType
inline constexpr std::uint64_t kSliceEnd = 2;
inline constexpr std::uint64_t kInstant = 3;
}  // namespace event

namespace annotation {
inline constexpr std::uint32_t kBool = 2;
inline constexpr std::uint32_t kUint = 3;
inline constexpr std::uint32_t kString = 6;
inline constexpr std::uint32_t kName = 10;
}  // namespace annotation

}  // namespace reprise::driver::perfetto
