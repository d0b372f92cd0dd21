#include "core/engine/load.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/engine/agreement.hpp"
#include "core/engine/checksum_tally.hpp"
#include "core/engine/chunk_reader.hpp"
#include "core/engine/extents.hpp"
#include "core/engine/phases.hpp"
#include "core/engine/plan_memory.hpp"
#include "core/engine/text_wire.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/plan/cover.hpp"

namespace reprise {
namespace {

constexpr std::byte kPoison{0xBD};
constexpr std::size_t kTextRoom = 512;  // of a file's name on the wire, about
constexpr std::string_view kSwitchedOff =
    "checksums were not verified: the writer had them switched off, those of elements are 0";

// --- the checkpoint, read by one rank for all ---------------------------------------------------

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

Candidates candidates_for_all(Store& store, Communicator& group, const LoadOptions& options) {
  const Bytes answer = from_leader(group, options.policy.lead, [&] {
    const Candidates found = candidates(store, options.path, options.fallback);
    Bytes wire;
    put_texts(wire, found.passed_over);
    for (const auto& location : found.locations) put_location(wire, location);
    return wire;
  });
  ByteSpan wire(answer);
  Candidates found;
  found.passed_over = take_texts(wire);
  while (!wire.empty()) found.locations.push_back(take_location(wire));
  return found;
}

struct Opened {
  Checkpoint checkpoint;
  std::uint64_t metadata_bytes = 0;  ///< that went round
  MetadataIdentity identity = {};    ///< if the load has a cache
};

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

Opened open_for_all(Store& store, Communicator& group, const LoadOptions& options,
                    const Location& location) {
  if (options.cache != nullptr) return open_with_cache(store, group, options, location);
  return open_for_all(store, group, options.policy.lead, location,
                      [&] { return read_metadata_files(store, location.directory); });
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

/// What reads go through.
struct Staging {
  std::uint64_t bytes = 0;
  std::uint64_t room = 0;  ///< for one read
};

/// Reads this rank's share into its leaves.
class Reader {
 public:
  /// `checksums` is null if they are ignored.
  Reader(Checkpoint& checkpoint, Device& device, StateDict& into, const Staging& staging,
         ChecksumTally* checksums)
      : checkpoint_(checkpoint),
        device_(device),
        into_(into),
        staging_(std::make_unique_for_overwrite<std::byte[]>(staging.bytes)),
        ring_({staging_.get(), staging.bytes}, staging.room),
        checksums_(checksums),
        chunks_({checkpoint, device, {}, checksums}) {}

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
    const StoredChunk& chunk = tensor.chunks[read.chunk];
    chunks_.go_through(ring_.next(chunk.range.size));
    return chunks_.read(tensor, chunk, targets_);
  }

  /// The stored value; the list of one that it is wrapped in is taken off.
  Value object(const StoredObject& stored) {
    // Once: what is checked is what is used.
    const Bytes bytes = checkpoint_.object_bytes(stored);
    SpanSource source(bytes, {.key = stored.key,
                              .file = checkpoint_.display(stored.file),
                              .offset = stored.range.offset});
    if (checksums_ != nullptr) {
      checksums_->add(source, stored.key);
      checksums_->require_no_damage();
    }
    BytesItem item = read_bytes_item(source);
    if (!item.value) {
      source.fail(Code::kUnsupported, "the object can't be loaded: " + item.opaque_because, 0);
    }
    List* list = item.value->as<List>();
    if (list != nullptr && list->size() == 1) return std::move(list->front());
    return std::move(*item.value);
  }

  /// All that the plan was to fill.
  void poison(const LoadPlan& plan) {
    std::set<std::size_t> leaves;
    for (const auto& read : plan.reads) {
      for (const auto& target : read.targets) leaves.insert(target.leaf);
    }
    for (const std::size_t leaf : leaves) poison(into_.tensors[leaf]);
  }

 private:
  void poison(const TensorLeaf& leaf) {
    const std::array<std::byte, 16> pattern = [] {
      std::array<std::byte, 16> bytes{};
      bytes.fill(kPoison);
      return bytes;
    }();
    for (const auto& piece : leaf.pieces) {
      const auto first = static_cast<std::size_t>(piece.local) * size_of(leaf.dtype);
      const ScatterCopy copy{.host = {pattern.data(), Dims::filled(piece.box.rank(), 0)},
                             .device = {leaf.data + first, piece.strides},
                             .extents = piece.box.extent,
                             .element_bytes = size_of(leaf.dtype)};
      device_.wait(device_.scatter({&copy, 1}));
    }
  }

  Checkpoint& checkpoint_;
  Device& device_;
  StateDict& into_;
  std::unique_ptr<std::byte[]> staging_;
  StagingRing ring_;
  ChecksumTally* checksums_;
  ChunkReader chunks_;
  std::vector<RegionTarget> targets_;
};

/// Staging from which the CPU copies on; more would not stay in its cache.
constexpr std::uint64_t kHostStagingMax = std::uint64_t{256} << 10U;

StagingNeed staging_need(const LoadPlan& plan, const Catalog& catalog, const Device& device,
                         std::uint64_t most) {
  StagingNeed need{.most = device.host_memory() ? std::min(most, kHostStagingMax) : most};
  for (const auto& read : plan.reads) {
    const auto bytes = catalog.tensors[read.tensor].chunks[read.chunk].range.size;
    need.largest = std::max(need.largest, bytes);
    need.all += bytes;
  }
  return need;
}

/// Of an item that is parsed, beside its elements: a small one is read whole for that.
constexpr std::uint64_t kParsedAtOnce = 8192;

std::uint64_t largest_object(const LoadPlan& plan, const Catalog& catalog) {
  std::uint64_t largest = 0;
  for (const auto& read : plan.objects) {
    largest = std::max(largest, catalog.objects[read.object].range.size);
  }
  return largest;
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

/// A candidate that can't be loaded because it is damaged; the same on all ranks.
struct Damage {
  Error error;
};

/// Runs a stage of a load.
template <class Work>
auto stage(LoadStage which, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (is_damage(error.code(), which)) throw Damage{error};
    throw;
  }
}

/// One load: candidate after candidate until one is whole.
class Loading {
 public:
  /// What the job wants, now that it is open.
  using Want = std::function<Wanted(Loading&, Checkpoint&)>;

  Loading(const Ports& ports, Communicator& group, const LoadOptions& options)
      : ports_(ports), group_(group), options_(options) {}

  LoadReport run(const Want& want) {
    begin_phase(ports_.trace, phase::kLocate);
    Candidates found = candidates_for_all(ports_.store, group_, options_);
    end_phase(ports_.trace, phase::kLocate);
    fell_back_from_ = std::move(found.passed_over);
    std::optional<Error> first;
    for (const Location& location : found.locations) {
      try {
        return attempt(location, want);
      } catch (const Damage& damage) {
        if (!first) first = damage.error;
        pass_over(location, damage.error);
      }
    }
    throw *first;
  }

  /// Shown to the job, and held against its checksums where all are.
  std::optional<Value> common(Checkpoint& checkpoint) {
    begin_phase(ports_.trace, phase::kCommon);
    ChecksumTally tally;
    auto value = stage(LoadStage::kContent, [&] {
      return common_for_all(
          group_, options_.policy.lead, [&]() -> Checkpoint& { return checkpoint; },
          verifies() ? &tally : nullptr);
    });
    end_phase(ports_.trace, phase::kCommon);
    return value;
  }

 private:
  /// What a reading rank has in hand.
  struct Share {
    LoadPlan plan;
    Staging staging = {};
    std::vector<Value> objects = {};  ///< as in plan.objects
    std::optional<Value> common = {};
    ChecksumTally tally = {};
  };

  bool verifies() const {
    return options_.checksums == LoadChecksums::kVerified || options_.fallback != Fallback::kNone;
  }

  void pass_over(const Location& location, const Error& error) {
    if (options_.fallback == Fallback::kNone) return;
    fell_back_from_.push_back(location.directory + ": " + error.what());
    ports_.trace.event({.phase = "load", .detail = "passed over " + fell_back_from_.back()});
    if (votes_.size() < opened_.size()) votes_.emplace_back(group_.group().size());
    Votes& votes = votes_.back();
    const bool unseen = std::none_of(votes.begin(), votes.end(),
                                     [](const auto& fault) { return fault.has_value(); });
    if (unseen) votes.assign(votes.size(), error);  // no look at the files had shown it
  }

  LoadReport attempt(const Location& location, const Want& want) {
    opened_.emplace_back();
    begin_phase(ports_.trace, phase::kMetadata);
    stage(LoadStage::kOpen,
          [&] { opened_.back() = open_for_all(ports_.store, group_, options_, location); });
    Opened& opened = options_.fallback == Fallback::kNone ? *opened_.back() : vote();
    end_phase(ports_.trace, phase::kMetadata, {.bytes = opened.metadata_bytes});
    LoadReport report = fill(opened.checkpoint, want(*this, opened.checkpoint));
    report.metadata_bytes = opened.metadata_bytes;
    if (options_.cache != nullptr) remember(opened, report);
    return report;
  }

  /// For the next load of it, and for the plan of the next save.
  void remember(const Opened& opened, LoadReport& report) const {
    if (opened.metadata_bytes == 0) {
      report.reused.push_back(CacheKind::kMetadata);
      remember_log(report, {line_of(report.reused)}, ports_.trace);
    }
    options_.cache->memory().read = {opened.identity, opened.checkpoint.shared_metadata()};
  }

  /// All ranks look at their share of the newest candidate's files.
  Opened& vote() {
    Contribution mine;
    try {
      require_files(opened_.back()->checkpoint, group_.rank(), group_.group().size());
    } catch (const Error& error) {
      mine.error = error;
    }
    Votes votes;
    std::optional<Error> fault;
    for (auto& heard : hear(group_, mine)) {
      if (heard.error && !fault) fault = heard.error;
      votes.push_back(std::move(heard.error));
    }
    votes_.push_back(std::move(votes));
    if (fault) stage(LoadStage::kOpen, [&] { throw *fault; });
    const auto taken = options_.policy.chosen(votes_, group_.rank());
    CHECK(taken && opened_[*taken]);
    return *opened_[*taken];
  }

  LoadReport fill(Checkpoint& checkpoint, const Wanted& wanted) {
    LoadReport report;
    report.location = checkpoint.location();
    report.log = report.fell_back_from = fell_back_from_;
    Share share = plan(checkpoint, wanted, report);
    read(checkpoint, *wanted.into, share, report);
    for (std::size_t i = 0; i < share.objects.size(); ++i) {
      wanted.into->objects[share.plan.objects[i].leaf].value = std::move(share.objects[i]);
    }
    if (share.common) wanted.into->common = std::move(*share.common);
    report.objects = share.objects.size();
    return report;
  }

  Share plan(const Checkpoint& checkpoint, const Wanted& wanted, LoadReport& report) {
    Share share;
    begin_phase(ports_.trace, phase::kLoadPlan);
    const auto absent = stage(
        LoadStage::kKeys, [&] { return plan_share(checkpoint, *wanted.into, share.plan, report); });
    KeyMismatch keys = mismatch_over(group_, share.plan, absent);
    for (auto* side : {&keys.missing, &keys.unexpected}) {
      for (const auto* excused : {&options_.excused, &wanted.excused}) {
        const auto taken = take_excused(*side, *excused);
        report.excused.insert(report.excused.end(), taken.begin(), taken.end());
      }
    }
    StrictVerdict verdict = options_.policy.strict(options_.strictness, keys);
    remember_log(report, verdict.log, ports_.trace);
    if (verdict.refuse || (!verdict.drop_unexpected && !keys.unexpected.empty())) refuse(keys);
    report.returned = std::move(verdict.returned);
    const LoadPlan& own = share.plan;
    report.elements = own.elements;
    report.bytes_needed = own.bytes_needed;
    const StagingNeed need =
        staging_need(own, checkpoint.catalog(), ports_.device, options_.staging_bytes);
    share.staging = {.bytes = options_.policy.staging(need), .room = one_read(need)};
    report.peak_staging = share.staging.bytes;
    report.bound_staging =
        one_read(need) + std::max(largest_object(own, checkpoint.catalog()), kParsedAtOnce);
    end_phase(ports_.trace, phase::kLoadPlan, {.items = own.reads.size() + own.objects.size()});
    return share;
  }

  /// Keys that are wanted and not stored.
  std::vector<std::string> plan_share(const Checkpoint& checkpoint, const StateDict& into,
                                      LoadPlan& plan, LoadReport& report) {
    std::vector<std::string> absent;
    agree_on(group_, [&] {
      require_apart(checkpoint);
      report.tensors = prove_stored_cover(into, checkpoint.catalog());
      plan = load_plan(into.tensors, into.objects, checkpoint.catalog());
      for (const auto& mismatch : plan.mismatches) {
        if (mismatch.code != Code::kMissingKey) {
          throw Error(mismatch.code, mismatch.message, {.key = mismatch.key});
        }
        if (poisoned_.contains(mismatch.key)) {
          throw Error(Code::kMissingKey,
                      "a newer checkpoint that was damaged has this tensor, and this one does not",
                      {.key = mismatch.key, .file = checkpoint.location().directory});
        }
        absent.push_back(mismatch.key);
      }
      return Bytes{};
    });
    return absent;
  }

  void read(Checkpoint& checkpoint, StateDict& into, Share& share, LoadReport& report) {
    std::optional<Reader> reader;
    ChecksumTally* const checksums = verifies() ? &share.tally : nullptr;
    try {
      agree_on(group_, [&] {
        reader.emplace(checkpoint, ports_.device, into, share.staging, checksums);
        read_share(*reader, checkpoint.catalog(), share, report);
        return Bytes{};
      });
      begin_phase(ports_.trace, phase::kCommon);
      share.common = common_for_all(
          group_, options_.policy.lead, [&]() -> Checkpoint& { return checkpoint; }, checksums);
      report.records_verified = share.tally.records();
      if (verifies() && judge_checksums(group_, share.tally)) {
        report.records_verified = 0;
        remember_log(report, {std::string(kSwitchedOff)}, ports_.trace);
      }
      end_phase(ports_.trace, phase::kCommon);
    } catch (const Error& error) {
      if (reader) reader->poison(share.plan);
      for (const auto& leaf : into.tensors) poisoned_.insert(leaf.key);
      if (is_damage(error.code(), LoadStage::kContent)) throw Damage{error};
      throw;
    }
  }

  void read_share(Reader& reader, const Catalog& catalog, Share& share, LoadReport& report) const {
    begin_phase(ports_.trace, phase::kRead);
    for (const auto& read : share.plan.reads) report.bytes_read += reader.read(read);
    end_phase(ports_.trace, phase::kRead, {.bytes = report.bytes_read, .items = report.tensors});
    begin_phase(ports_.trace, phase::kObjects);
    for (const auto& read : share.plan.objects) {
      share.objects.push_back(reader.object(catalog.objects[read.object]));
    }
    end_phase(ports_.trace, phase::kObjects, {.items = share.objects.size()});
  }

  const Ports& ports_;
  Communicator& group_;
  const LoadOptions& options_;
  std::vector<std::optional<Opened>> opened_;  ///< candidates, as far as they could be opened
  std::vector<Votes> votes_;                   ///< on them
  std::vector<std::string> fell_back_from_;
  std::set<std::string> poisoned_;  ///< keys that only another candidate can make whole
};

}  // namespace

std::optional<Value> read_common(Store& store, Communicator& group, const std::string& path,
                                 const LeaderPolicy& lead) {
  std::optional<Checkpoint> checkpoint;
  return common_for_all(group, lead, [&]() -> Checkpoint& {
    return checkpoint.emplace(Checkpoint::open(store, path));
  });
}

LoadReport load(const Ports& ports, Communicator& group, const LoadOptions& options,
                const Ask& ask) {
  return Loading(ports, group, options).run([&ask](Loading& loading, Checkpoint& checkpoint) {
    const auto common = loading.common(checkpoint);
    return ask(checkpoint.location(), common ? &*common : nullptr);
  });
}

LoadReport load(const Ports& ports, Communicator& group, StateDict& into,
                const LoadOptions& options) {
  return Loading(ports, group, options).run([&into](Loading&, Checkpoint&) {
    return Wanted{&into, {}};
  });
}

}  // namespace reprise
