#include "core/load/load_open.hpp"

#include <algorithm>
#include <functional>

#include "core/agree/agreement.hpp"
#include "core/agree/leader.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

constexpr std::size_t kTextRoom = 512;  // rough size of an encoded file name

void put_location(Bytes& wire, const Location& location) {
  put_text(wire, location.directory);
  append_le(wire, location.step ? location.step->value : std::int64_t{-1});
  put_text(wire, location.tracker.value_or(""));
}

Location take_location(PeerWire& wire) {
  Location location;
  location.directory = wire.text();
  const auto step = wire.number<std::int64_t>();
  if (step >= 0) location.step = Step{step};
  if (auto tracker = wire.text(); !tracker.empty()) location.tracker = std::move(tracker);
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

/// Returns the metadata for this rank. If each rank wrote its own metadata, leaves out the items of
/// other ranks.
std::shared_ptr<const Metadata> for_rank(std::shared_ptr<const Metadata> read,
                                         const Communicator& group, const LoadSeams& seams) {
  const Metadata& all = *read;
  if (all.ranks.empty()) return read;
  const auto is_own = [](const auto& item) { return item.known_by.own; };
  const auto tensor = std::ranges::find_if(all.catalog.tensors, is_own);
  const auto object = std::ranges::find_if(all.catalog.objects, is_own);
  const std::string* own = tensor != all.catalog.tensors.end()   ? &tensor->key
                           : object != all.catalog.objects.end() ? &object->key
                                                                 : nullptr;
  if (own != nullptr && all.ranks.size() != static_cast<std::size_t>(group.group().size())) {
    throw Error(Code::kUnsupported,
                "each of " + std::to_string(all.ranks.size()) +
                    " ranks saved its own values without collectives, but " +
                    std::to_string(group.group().size()) +
                    " ranks load: rewrite the checkpoint first with `reprise reshard --per-rank "
                    "first` or `--per-rank drop`",
                {.key = *own});
  }
  return std::make_shared<const Metadata>(seen_by(all, seams.own_metadata(group).value));
}

// --- trackers -----------------------------------------------------------------------------------

TrackedSteps tracked_by_all(Store& store, Communicator& group, const LoadOptions& options) {
  const auto wires = agree_on(group, [&] {
    Bytes wire;
    const auto own = tracked_step(store, options.directory);
    append_le(wire, own ? own->value : std::int64_t{-1});
    return wire;
  });
  TrackedSteps tracked;
  for (const Bytes& bytes : wires) {
    const auto step = PeerWire(bytes, "a tracker").number<std::int64_t>();
    tracked.push_back(step < 0 ? std::nullopt : std::optional(Step{step}));
  }
  return tracked;
}

/// Finds the first rank whose tracker does not name `newest`. Returns text such as "that of rank 2
/// names iteration 4".
std::string other_idea(const TrackedSteps& tracked, Step newest, const Group& group) {
  const auto other = std::find_if(tracked.begin(), tracked.end(),
                                  [newest](const auto& step) { return step != newest; });
  const auto place = static_cast<std::int32_t>(other - tracked.begin());
  return "that of rank " + std::to_string(group.member({place}).value) +
         (*other ? " names iteration " + std::to_string((*other)->value) : " names no iteration");
}

/// Makes `newest` the first location. If falling back is allowed, the locations that the leader
/// found come after it; otherwise they are dropped.
void put_first(Step newest, const LoadOptions& options, std::vector<Location>& locations) {
  Location first = locations.front();
  first.step = newest;
  first.directory = join_path(options.directory, directory_of({newest}));
  locations.front().tracker.reset();
  std::erase_if(locations, [newest](const auto& other) { return other.step == newest; });
  if (options.fallback == Fallback::kNone) locations.clear();
  locations.insert(locations.begin(), std::move(first));
}

/// Handles trackers that differ between ranks. In that case, the ranks see different stores, or
/// some ranks see an old state of one store. The newest iteration that a tracker names was
/// committed, so it is loaded. Throws unless each rank's store has that iteration.
void take_newest(Store& store, Communicator& group, const LoadOptions& options,
                 const LoadSeams& seams, Candidates& found) {
  if (!found.locations.front().tracker) return;  // the checkpoint was found without a tracker
  const TrackedSteps tracked = tracked_by_all(store, group, options);
  const bool alike = std::all_of(tracked.begin(), tracked.end(),
                                 [&](const auto& step) { return step == tracked.front(); });
  if (alike) return;
  const auto newest = seams.tracked(tracked, seams.leader.leader(group));
  if (!newest) return;
  const std::string seen =
      "the ranks' trackers differ: " + other_idea(tracked, *newest, group.group());
  put_first(*newest, options, found.locations);
  const Location& first = found.locations.front();
  agree_on(group, [&] {
    if (store.stat(first.directory)) return Bytes{};
    throw Error(
        Code::kTrackerDangling,
        seen + ", another names iteration " + std::to_string(newest->value) +
            ", and this rank's store does not have that iteration: ranks see different stores; "
            "copy it to each store, or name a checkpoint that all of them have",
        {.rank = group.group().member(group.rank()), .file = store.display(first.directory)});
  });
  found.notes.push_back(seen + "; the newest, iteration " + std::to_string(newest->value) +
                        ", is loaded");
}

Candidates candidates_of_leader(Store& store, Communicator& group, const LoadOptions& options,
                                const LeaderSeams& lead) {
  const Bytes answer = from_leader(group, lead, [&] {
    const Candidates found =
        candidates(store, options.directory, options.fallback, StepNames(options.step_names));
    Bytes wire;
    put_texts(wire, found.passed_over);
    put_texts(wire, found.notes);
    for (const auto& location : found.locations) put_location(wire, location);
    return wire;
  });
  PeerWire wire(answer, "the list of checkpoints");
  Candidates found;
  found.passed_over = wire.texts();
  found.notes = wire.texts();
  while (!wire.empty()) found.locations.push_back(take_location(wire));
  return found;
}

}  // namespace

GroupRank own_rank(const Communicator& group) { return group.rank(); }

std::optional<Step> newest_tracked(const TrackedSteps& tracked, GroupRank /*leader*/) {
  return *std::max_element(tracked.begin(), tracked.end());
}

Candidates candidates_for_all(Store& store, Communicator& group, const LoadOptions& options,
                              const LoadSeams& seams) {
  Candidates found = candidates_of_leader(store, group, options, seams.leader);
  take_newest(store, group, options, seams, found);
  return found;
}

Opened opened_as(const KnownMetadata& known, Store& store, const Location& location) {
  return {Checkpoint(store, location, known.metadata, known.content), 0};
}

Opened open_for_all(Store& store, Communicator& group, const LoadSeams& seams,
                    const Location& location, ParsedMetadata* parsed) {
  const Bytes answer = from_leader(group, seams.leader, [&] {
    const MetadataFiles files = read_metadata_files(store, location.directory);
    Bytes wire = encode(files);
    append_le(wire, hash_of(files));
    return wire;
  });
  std::optional<Checkpoint> checkpoint;
  agree_on(group, [&] {
    PeerWire wire(answer, "metadata");
    const std::vector<std::string> names = wire.texts();
    std::vector<ByteSpan> contents;
    for (std::size_t i = 0; i < names.size(); ++i) contents.push_back(wire.part());
    const auto hash = wire.number<std::uint64_t>();
    wire.end();
    auto all = parsed != nullptr ? parsed->read(contents, names, hash)
                                 : std::make_shared<const Metadata>(read_metadata(contents, names));
    checkpoint.emplace(store, location, for_rank(std::move(all), group, seams), hash);
    return Bytes{};
  });
  return {std::move(*checkpoint), answer.size()};
}

}  // namespace reprise
