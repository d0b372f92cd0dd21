#include "core/engine/load_open.hpp"

#include <algorithm>
#include <functional>

#include "core/base/hash.hpp"
#include "core/engine/agreement.hpp"
#include "core/engine/plan_memory.hpp"
#include "core/engine/text_wire.hpp"

namespace reprise {
namespace {

constexpr std::size_t kTextRoom = 512;  // of a file's name on the wire, about

void put_location(Bytes& wire, const Location& location) {
  put_text(wire, location.directory);
  append_le(wire, location.step ? location.step->value : std::int64_t{-1});
  put_text(wire, location.tracker.value_or(""));
}

Location take_location(ByteSpan& wire) {
  Location location;
  location.directory = take_text(wire);
  const auto step = load_le<std::int64_t>(wire);
  wire = wire.subspan(8);
  if (step >= 0) location.step = Step{step};
  if (auto tracker = take_text(wire); !tracker.empty()) location.tracker = std::move(tracker);
  return location;
}

Bytes encode(const MetadataFiles& files) {
  Bytes wire;
  std::size_t size = 0;
  for (const auto& content : files.contents) size += content.size() + kTextRoom;
  wire.reserve(size + kTextRoom);
  put_texts(wire, files.names);
  for (const auto& content : files.contents) put_text(wire, as_text(content));
  return wire;
}

/// `files`: as the leader has them.
Opened open_for_all(Store& store, Communicator& group, const LeaderPolicy& lead, Location location,
                    const std::function<MetadataFiles()>& files) {
  const Bytes answer = from_leader(group, lead, [&] { return encode(files()); });
  ByteSpan wire(answer);
  const std::vector<std::string> names = take_texts(wire);
  std::vector<ByteSpan> contents;
  for (std::size_t i = 0; i < names.size(); ++i) contents.push_back(take_bytes(wire));
  std::optional<Checkpoint> checkpoint;
  agree_on(group, [&] {
    checkpoint.emplace(store, std::move(location), read_metadata(contents, names));
    return Bytes{};
  });
  return {std::move(*checkpoint), answer.size()};
}

std::uint64_t hash_of(const MetadataFiles& files) {
  Hasher hash;
  for (const auto& name : files.names) hash.text(name);
  for (const auto& content : files.contents) hash.bytes(content);
  return hash.digest();
}

/// Whether all ranks keep metadata under this key.
bool all_keep(Communicator& group, const PlanCache& cache, const MetadataCachePolicy& policy,
              const PlanCache::Memory& memory, std::uint64_t key) {
  const auto keys = agree_on(group, [&] {
    Bytes wire;
    if (cache.keeps(CacheKind::kMetadata) && memory.read) {
      append_le(wire, policy.key(memory.read->identity));
    }
    return wire;
  });
  return std::all_of(keys.begin(), keys.end(), [key](const Bytes& wire) {
    return !wire.empty() && load_le<std::uint64_t>(wire) == key;
  });
}

/// The leader reads the files anew; they go round, and are parsed, unless all ranks have kept what
/// they say.
Opened open_with_cache(Store& store, Communicator& group, const LoadOptions& options,
                       Location location) {
  PlanCache::Memory& memory = options.cache->memory();
  MetadataFiles files;
  const Bytes answer = from_leader(group, options.policy.lead, [&] {
    files = read_metadata_files(store, location.directory);
    Bytes wire;
    append_le(wire, hash_of(files));
    return wire;
  });
  const MetadataIdentity live{location.directory, load_le<std::uint64_t>(answer)};
  const MetadataCachePolicy& policy = options.policy.cache;
  if (!all_keep(group, *options.cache, policy, memory, policy.key(live))) {
    Opened opened = open_for_all(store, group, options.policy.lead, std::move(location),
                                 [&files] { return std::move(files); });
    opened.identity = live;
    return opened;
  }
  agree_on(group, [&] {
    policy.verify(memory.read->identity, live);
    return Bytes{};
  });
  return {Checkpoint(store, std::move(location), memory.read->metadata), 0, live};
}

}  // namespace

Candidates candidates_for_all(Store& store, Communicator& group, const LoadOptions& options) {
  const Bytes answer = from_leader(group, options.policy.lead, [&] {
    const Candidates found = candidates(store, options.path, options.fallback);
    Bytes wire;
    put_texts(wire, found.passed_over);
    put_texts(wire, found.notes);
    for (const auto& location : found.locations) put_location(wire, location);
    return wire;
  });
  ByteSpan wire(answer);
  Candidates found;
  found.passed_over = take_texts(wire);
  found.notes = take_texts(wire);
  while (!wire.empty()) found.locations.push_back(take_location(wire));
  return found;
}

Opened open_for_all(Store& store, Communicator& group, const LoadOptions& options,
                    const Location& location) {
  if (options.cache != nullptr) return open_with_cache(store, group, options, location);
  return open_for_all(store, group, options.policy.lead, location,
                      [&] { return read_metadata_files(store, location.directory); });
}

}  // namespace reprise
