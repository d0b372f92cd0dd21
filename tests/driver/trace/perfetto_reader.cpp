#include "tests/driver/trace/perfetto_reader.hpp"

#include <stdexcept>

namespace reprise::driver::test {
namespace {

std::uint64_t take_varint(std::string_view& text) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (text.empty()) throw std::runtime_error("a varint is cut off");
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a varint does not end");
}

std::string_view take_bytes(std::string_view& text, std::uint64_t size) {
  if (size > text.size()) throw std::runtime_error("a field is cut off");
  const auto bytes = text.substr(0, size);
  text.remove_prefix(size);
  return bytes;
}

ReadTrack read_track(std::string_view message, std::uint64_t& uuid) {
  ReadTrack track;
  for (const auto& field : read_message(message)) {
    if (field.number == 1) uuid = field.value;
    if (field.number == 2) track.name = field.bytes;
    if (field.number == 5) track.parent = field.value;
    if (field.number == 12) track.order = field.value;
    if (field.number != 3) continue;
    for (const auto& of_process : read_message(field.bytes)) {
      if (of_process.number == 1) track.pid = of_process.value;
      if (of_process.number == 6) track.name = of_process.bytes;
    }
  }
  return track;
}

void read_annotation(std::string_view message, ReadEvent& event) {
  std::string name;
  std::string value;
  for (const auto& field : read_message(message)) {
    if (field.number == 10) name = field.bytes;
    if (field.number == 6) value = field.bytes;
    if (field.number >= 2 && field.number <= 4) value = std::to_string(field.value);
  }
  event.notes[name] = value;
}

ReadEvent read_event(std::string_view message) {
  constexpr std::string_view kTypes = "?BEiC";
  ReadEvent event;
  for (const auto& field : read_message(message)) {
    if (field.number == 4) read_annotation(field.bytes, event);
    if (field.number == 9) event.type = kTypes.at(field.value);
    if (field.number == 11) event.track = field.value;
    if (field.number == 22) event.category = field.bytes;
    if (field.number == 23) event.name = field.bytes;
    if (field.number == 47) event.flows.push_back(field.value);
  }
  return event;
}

void read_packet(std::string_view message, ReadTrace& trace) {
  std::uint64_t at_ns = 0;
  std::uint64_t sequence = 0;
  std::optional<ReadEvent> event;
  for (const auto& field : read_message(message)) {
    if (field.number == 8) at_ns = field.value;
    if (field.number == 10) sequence = field.value;
    if (field.number == 11) event = read_event(field.bytes);
    if (field.number != 60) continue;
    std::uint64_t uuid = 0;
    const ReadTrack track = read_track(field.bytes, uuid);
    if (!trace.tracks.emplace(uuid, track).second) throw std::runtime_error("a track comes twice");
  }
  if (sequence == 0) throw std::runtime_error("a packet has no sequence");
  if (!event) return;
  if (!trace.tracks.contains(event->track)) throw std::runtime_error("an event has no track");
  event->at_ns = at_ns;
  event->sequence = sequence;
  trace.events.push_back(*event);
}

}  // namespace

std::vector<WireField> read_message(std::string_view text) {
  std::vector<WireField> fields;
  while (!text.empty()) {
    const std::uint64_t tag = take_varint(text);
    WireField field{.number = tag / 8};
    switch (tag % 8) {
      case 0:
        field.value = take_varint(text);
        break;
      case 1:
        for (unsigned shift = 0; const char byte : take_bytes(text, 8)) {
          field.value |= std::uint64_t{static_cast<unsigned char>(byte)} << shift;
          shift += 8;
        }
        break;
      case 2:
        field.bytes = take_bytes(text, take_varint(text));
        break;
      default:
        throw std::runtime_error("a field has an unknown wire type");
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

const ReadTrack& ReadTrace::process_of(const ReadEvent& event) const {
  const ReadTrack* track = &tracks.at(event.track);
  while (!track->pid) track = &tracks.at(track->parent);
  return *track;
}

std::vector<ReadEvent> ReadTrace::events_on(const std::string& track,
                                            const std::string& process) const {
  std::vector<ReadEvent> found;
  for (const auto& event : events) {
    if (tracks.at(event.track).name != track) continue;
    if (process_of(event).name == process) found.push_back(event);
  }
  return found;
}

ReadTrace read_trace(std::string_view bytes) {
  ReadTrace trace;
  for (const auto& field : read_message(bytes)) {
    if (field.number != 1) throw std::runtime_error("this is no field of a trace");
    read_packet(field.bytes, trace);
  }
  return trace;
}

}  // namespace reprise::driver::test
