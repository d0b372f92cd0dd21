#pragma once
// Reads Perfetto traces. It shares nothing with the writer: the field numbers are written down here
// once more, as they stand in Perfetto's proto files.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::driver::test {

/// One field of a message, as protobuf's wire format has it.
struct WireField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  ///< of wire types 0 and 1
  std::string bytes = {};   ///< of wire type 2
};

/// Throws std::runtime_error if the text is not a message.
std::vector<WireField> read_message(std::string_view text);

/// A TrackDescriptor.
struct ReadTrack {
  std::uint64_t parent = 0;
  std::string name = {};                    ///< for a process track, the name of the process
  std::optional<std::uint64_t> pid = {};    ///< only for a process track
  std::optional<std::uint64_t> order = {};  ///< sibling_order_rank
};

/// A TrackEvent.
struct ReadEvent {
  std::uint64_t at_ns = 0;
  std::uint64_t sequence = 0;
  char type = '?';  ///< 'B' slice begin, 'E' slice end, 'i' instant
  std::uint64_t track = 0;
  std::string category = {};
  std::string name = {};
  std::vector<std::uint64_t> flows = {};
  std::map<std::string, std::string> notes = {};  ///< debug annotations
};

struct ReadTrace {
  std::map<std::uint64_t, ReadTrack> tracks;
  std::vector<ReadEvent> events;  ///< in the order of the file

  /// Returns the process to which an event belongs.
  const ReadTrack& process_of(const ReadEvent& event) const;
  std::vector<ReadEvent> events_on(const std::string& track, const std::string& process) const;
};

/// Throws std::runtime_error if the bytes are not a trace, or if an event is on a track that was
/// not described before.
ReadTrace read_trace(std::string_view bytes);

}  // namespace reprise::driver::test
