#include "core/engine/load.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/base/check.hpp"
#include "core/base/print.hpp"
#include "core/engine/agreement.hpp"
#include "core/engine/checksum_tally.hpp"
#include "core/engine/chunk_reader.hpp"
#include "core/engine/extents.hpp"
#include "core/engine/phases.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/plan/cover.hpp"

namespace reprise {
namespace {

constexpr std::byte kPoison{0xBD};
constexpr std::size_t kTextRoom = 512;  // of a file's name on the wire, about
constexpr std::string_view kSwitchedOff =
    "checksums were not verified: the writer had them switched off, those of elements are 0";

// --- the wire -----------------------------------------------------------------------------------

void put_text(Bytes& wire, std::string_view text) {
  append_le(wire, static_cast<std::uint64_t>(text.size()));
  append(wire, as_bytes(text));
}

/// A part of the wire.
ByteSpan take_bytes(ByteSpan& wire) {
  const auto size = load_le<std::uint64_t>(wire);
  const ByteSpan bytes = wire.subspan(8, size);
  wire = wire.subspan(8 + size);
  return bytes;
}

std::string take_text(ByteSpan& wire) { return std::string(as_text(take_bytes(wire))); }

void put_texts(Bytes& wire, const std::vector<std::string>& texts) {
  append_le(wire, static_cast<std::uint64_t>(texts.size()));
  for (const auto& text : texts) put_text(wire, text);
}

std::vector<std::string> take_texts(ByteSpan& wire) {
  const auto count = load_le<std::uint64_t>(wire);
  wire = wire.subspan(8);
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < count; ++i) texts.push_back(take_text(wire));
  return texts;
}

// --- the checkpoint, read by one rank for all ---------------------------------------------------

Location locate_for_all(Store& store, Communicator& group, const LeaderPolicy& lead,
                        const std::string& path) {
  const Bytes answer = from_leader(group, lead, [&] {
    Bytes wire;
    const Location location = locate(store, path);
    put_text(wire, location.directory);
    append_le(wire, location.step ? location.step->value : std::int64_t{-1});
    put_text(wire, location.tracker.value_or(""));
    return wire;
  });
  ByteSpan wire(answer);
  Location location;
  location.directory = take_text(wire);
  const auto step = load_le<std::int64_t>(wire);
  wire = wire.subspan(8);
  if (step >= 0) location.step = Step{step};
  if (auto tracker = take_text(wire); !tracker.empty()) location.tracker = std::move(tracker);
  return location;
}

Checkpoint open_for_all(Store& store, Communicator& group, const LeaderPolicy& lead,
                        Location location) {
  const Bytes answer = from_leader(group, lead, [&] {
    Bytes wire;
    const MetadataFiles files = read_metadata_files(store, location.directory);
    std::size_t size = 0;
    for (const auto& content : files.contents) size += content.size() + kTextRoom;
    wire.reserve(size + kTextRoom);
    put_texts(wire, files.names);
    for (const auto& content : files.contents) put_text(wire, as_text(content));
    return wire;
  });
  ByteSpan wire(answer);
  const std::vector<std::string> names = take_texts(wire);
  std::vector<ByteSpan> contents;
  for (std::size_t i = 0; i < names.size(); ++i) contents.push_back(take_bytes(wire));
  std::optional<Checkpoint> checkpoint;
  agree_on(group, [&] {
    checkpoint.emplace(store, std::move(location), read_metadata(contents, names));
    return Bytes{};
  });
  return std::move(*checkpoint);
}

/// Each requested tensor's chunks tile it; otherwise some wish would stay unfilled in silence.
/// Returns how many of the requested tensors are stored.
std::uint64_t prove_stored_cover(const StateDict& wanted, const Catalog& catalog) {
  std::vector<Box> boxes;
  std::uint64_t stored = 0;
  for (const auto& leaf : wanted.tensors) {
    const StoredTensor* tensor = catalog.tensor(leaf.key);
    if (tensor == nullptr) continue;
    ++stored;
    if (tensor->chunks.size() == 1 && tensor->chunks[0].box == Box::whole(tensor->shape)) continue;
    boxes.clear();
    for (const auto& chunk : tensor->chunks) boxes.push_back(chunk.box);
    if (const auto defect = prove_cover(tensor->shape, boxes)) {
      throw Error(defect->code, defect->message, {.key = leaf.key});
    }
  }
  return stored;
}

// --- requested keys against stored keys ---------------------------------------------------------

bool is_excused(const std::string& key, const std::vector<std::string>& excused) {
  const auto object = parse_object_key(key);
  return std::any_of(excused.begin(), excused.end(), [&](const std::string& name) {
    return key == name || (object && object->key == name);
  });
}

/// Missing: stored, and asked for by no rank. Unexpected: asked for by some rank, and not stored.
KeyMismatch mismatch_over(Communicator& group, const LoadPlan& plan,
                          const std::vector<std::string>& absent) {
  const auto all = agree_on(group, [&] {
    Bytes wire;
    put_texts(wire, plan.unrequested);
    put_texts(wire, absent);
    return wire;
  });
  KeyMismatch keys;
  std::set<std::string> unexpected;
  for (std::size_t r = 0; r < all.size(); ++r) {
    ByteSpan wire(all[r]);
    const auto unrequested = take_texts(wire);  // sorted
    for (auto& key : take_texts(wire)) unexpected.insert(std::move(key));
    if (r == 0) {
      keys.missing = unrequested;
      continue;
    }
    std::vector<std::string> both;
    std::set_intersection(keys.missing.begin(), keys.missing.end(), unrequested.begin(),
                          unrequested.end(), std::back_inserter(both));
    keys.missing = std::move(both);
  }
  keys.unexpected.assign(unexpected.begin(), unexpected.end());
  return keys;
}

std::vector<std::string> take_excused(std::vector<std::string>& keys,
                                      const std::vector<std::string>& excused) {
  const auto first = std::stable_partition(
      keys.begin(), keys.end(), [&](const std::string& key) { return !is_excused(key, excused); });
  std::vector<std::string> taken(first, keys.end());
  keys.erase(first, keys.end());
  return taken;
}

std::string first_few(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> shown(
      keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, keys.size())));
  return join(shown, ", ") + (keys.size() > kShown ? ", ..." : "");
}

[[noreturn]] void refuse(const KeyMismatch& keys) {
  if (!keys.unexpected.empty()) {
    throw Error(Code::kMissingKey,
                std::to_string(keys.unexpected.size()) +
                    " requested keys are not in the checkpoint: " + first_few(keys.unexpected),
                {.key = keys.unexpected.front()});
  }
  throw Error(Code::kUnrequestedKeys,
              std::to_string(keys.missing.size()) +
                  " keys of the checkpoint are requested by no rank: " + first_few(keys.missing),
              {.key = keys.missing.front()});
}

// --- reading ------------------------------------------------------------------------------------

/// Reads this rank's share into its leaves.
class Reader {
 public:
  /// `checksums` is null if they are ignored.
  Reader(Checkpoint& checkpoint, Device& device, StateDict& into, std::uint64_t staging_bytes,
         ChecksumTally* checksums)
      : checkpoint_(checkpoint),
        device_(device),
        into_(into),
        staging_(std::make_unique_for_overwrite<std::byte[]>(staging_bytes)),
        checksums_(checksums),
        chunks_({checkpoint, device, {staging_.get(), staging_bytes}, checksums}) {}

  std::uint64_t read(const ChunkRead& read) {
    const StoredTensor& tensor = checkpoint_.catalog().tensors[read.tensor];
    targets_.clear();
    for (const auto& target : read.targets) {
      const TensorLeaf& leaf = into_.tensors[target.leaf];
      const Piece& piece = leaf.pieces[target.piece];
      const auto first = static_cast<std::size_t>(local_offset(piece, target.region.offset));
      targets_.push_back(
          {target.source, target.region, {leaf.data + first * size_of(leaf.dtype), piece.strides}});
    }
    return chunks_.read(tensor, tensor.chunks[read.chunk], targets_);
  }

  /// The stored value; the list of one that it is wrapped in is taken off.
  Value object(const StoredObject& stored) {
    const auto slice = checkpoint_.slice(stored.key, stored.file, stored.range);
    if (checksums_ != nullptr) {
      checksums_->add(*slice, stored.key);
      checksums_->require_no_damage();
    }
    BytesItem item = read_bytes_item(*slice);
    if (!item.value) {
      slice->fail(Code::kUnsupported, "the object can't be loaded: " + item.opaque_because, 0);
    }
    List* list = item.value->as<List>();
    if (list != nullptr && list->size() == 1) return std::move(list->front());
    return std::move(*item.value);
  }

  void poison() {
    const std::array<std::byte, 16> pattern = [] {
      std::array<std::byte, 16> bytes{};
      bytes.fill(kPoison);
      return bytes;
    }();
    for (const auto& leaf : into_.tensors) {
      for (const auto& piece : leaf.pieces) {
        const auto first = static_cast<std::size_t>(piece.local) * size_of(leaf.dtype);
        const ScatterCopy copy{.host = {pattern.data(), Dims::filled(piece.box.rank(), 0)},
                               .device = {leaf.data + first, piece.strides},
                               .extents = piece.box.extent,
                               .element_bytes = size_of(leaf.dtype)};
        device_.wait(device_.scatter({&copy, 1}));
      }
    }
  }

 private:
  Checkpoint& checkpoint_;
  Device& device_;
  StateDict& into_;
  std::unique_ptr<std::byte[]> staging_;
  ChecksumTally* checksums_;
  ChunkReader chunks_;
  std::vector<RegionTarget> targets_;
};

/// Staging from which the CPU copies on; more would not stay in its cache.
constexpr std::uint64_t kHostStagingMax = std::uint64_t{256} << 10U;

/// No read takes more than the largest item, and none more than what is allowed.
std::uint64_t staging_for(const LoadPlan& plan, const Catalog& catalog, const Device& device,
                          std::uint64_t most) {
  if (device.host_memory()) most = std::min(most, kHostStagingMax);
  std::uint64_t largest = 0;
  for (const auto& read : plan.reads) {
    largest = std::max(largest, catalog.tensors[read.tensor].chunks[read.chunk].range.size);
  }
  return std::min(largest, most);
}

/// The common state, read by one rank for all; that one also counts its records.
std::optional<Value> common_for_all(Communicator& group, const LeaderPolicy& lead,
                                    const std::function<Checkpoint&()>& checkpoint,
                                    ChecksumTally* checksums = nullptr) {
  const Bytes answer = from_leader(group, lead, [&] {
    Checkpoint& opened = checkpoint();
    const auto common = opened.common(checksums);
    if (!common) {
      opened.require_common_if_megatron();
      return Bytes{};
    }
    if (!common->item.value) {
      throw Error(Code::kUnsupported,
                  "the common state can't be loaded: " + common->item.opaque_because,
                  {.file = common->source});
    }
    return write_common_file(*common->item.value->as<Dict>());
  });
  if (answer.empty()) return std::nullopt;
  return read_common_file(answer).value;
}

/// Refuses mismatches that any rank saw, unless they mean that the writer had checksums switched
/// off: true then. Whether they do, only all ranks together know.
bool judge_checksums(Communicator& group, const ChecksumTally& mine) {
  const auto all = agree_on(group, [&] {
    Bytes wire;
    for (const ChecksumTally::Count& count : {mine.counts().all, mine.counts().elements}) {
      append_le(wire, count.records);
      append_le(wire, count.mismatches);
      append_le(wire, count.unset);
    }
    return wire;
  });
  ChecksumTally::Counts sum;
  const auto add = [](ChecksumTally::Count& count, ByteSpan wire) {
    count.records += load_le<std::uint64_t>(wire);
    count.mismatches += load_le<std::uint64_t>(wire.subspan(8));
    count.unset += load_le<std::uint64_t>(wire.subspan(16));
  };
  for (const ByteSpan wire : all) {
    add(sum.all, wire);
    add(sum.elements, wire.subspan(24));
  }
  if (sum.switched_off()) return true;
  if (sum.all.mismatches == 0) return false;
  agree_on(group, [&] {
    mine.require_matches();
    return Bytes{};
  });
  return false;
}

void remember_log(LoadReport& report, const std::vector<std::string>& lines, Trace& trace) {
  for (const auto& line : lines) trace.event({.phase = "load", .detail = line});
  report.log.insert(report.log.end(), lines.begin(), lines.end());
}

}  // namespace

std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderPolicy& lead) {
  std::optional<Checkpoint> checkpoint;
  return common_for_all(group, lead, [&]() -> Checkpoint& {
    return checkpoint.emplace(Checkpoint::open(store, path));
  });
}

LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options) {
  Trace& trace = ports.trace;
  begin_phase(trace, phase::kLocate);
  const LeaderPolicy& lead = options.policy.lead;
  Location location = locate_for_all(ports.store, group, lead, options.path);
  end_phase(trace, phase::kLocate);
  begin_phase(trace, phase::kMetadata);
  Checkpoint checkpoint = open_for_all(ports.store, group, lead, std::move(location));
  end_phase(trace, phase::kMetadata);
  const Catalog& catalog = checkpoint.catalog();
  LoadReport report;
  report.location = checkpoint.location();

  LoadPlan plan;
  std::vector<std::string> absent;
  begin_phase(trace, phase::kLoadPlan);
  agree_on(group, [&] {
    require_apart(checkpoint);
    report.tensors = prove_stored_cover(into, catalog);
    plan = load_plan(into.tensors, into.objects, catalog);
    for (const auto& mismatch : plan.mismatches) {
      if (mismatch.code != Code::kMissingKey) {
        throw Error(mismatch.code, mismatch.message, {.key = mismatch.key});
      }
      absent.push_back(mismatch.key);
    }
    return Bytes{};
  });
  KeyMismatch keys = mismatch_over(group, plan, absent);
  for (auto* side : {&keys.missing, &keys.unexpected}) {
    const auto taken = take_excused(*side, options.excused);
    report.excused.insert(report.excused.end(), taken.begin(), taken.end());
  }
  StrictVerdict verdict = options.policy.strict(options.strictness, keys);
  remember_log(report, verdict.log, ports.trace);
  if (verdict.refuse || (!verdict.drop_unexpected && !keys.unexpected.empty())) refuse(keys);
  report.returned = std::move(verdict.returned);
  report.elements = plan.elements;
  report.bytes_needed = plan.bytes_needed;
  report.peak_staging = staging_for(plan, catalog, ports.device, options.staging_bytes);

  end_phase(trace, phase::kLoadPlan, {.items = plan.reads.size() + plan.objects.size()});

  const bool verified = options.checksums == LoadChecksums::kVerified;
  ChecksumTally tally;
  ChecksumTally* const checksums = verified ? &tally : nullptr;
  std::optional<Reader> reader;
  std::vector<Value> objects;  // as in plan.objects
  std::optional<Value> common;
  try {
    agree_on(group, [&] {
      reader.emplace(checkpoint, ports.device, into, report.peak_staging, checksums);
      begin_phase(trace, phase::kRead);
      for (const auto& read : plan.reads) report.bytes_read += reader->read(read);
      end_phase(trace, phase::kRead, {.bytes = report.bytes_read, .items = report.tensors});
      begin_phase(trace, phase::kObjects);
      for (const auto& read : plan.objects) {
        objects.push_back(reader->object(catalog.objects[read.object]));
      }
      end_phase(trace, phase::kObjects, {.items = objects.size()});
      return Bytes{};
    });
    begin_phase(trace, phase::kCommon);
    common = common_for_all(
        group, lead, [&]() -> Checkpoint& { return checkpoint; }, checksums);
    report.records_verified = tally.records();
    if (verified && judge_checksums(group, tally)) {
      report.records_verified = 0;
      remember_log(report, {std::string(kSwitchedOff)}, ports.trace);
    }
    end_phase(trace, phase::kCommon);
  } catch (const Error&) {
    if (reader) reader->poison();
    throw;
  }
  for (std::size_t i = 0; i < objects.size(); ++i) {
    into.objects[plan.objects[i].leaf].value = std::move(objects[i]);
  }
  if (common) into.common = std::move(*common);
  report.objects = objects.size();
  return report;
}

}  // namespace reprise
