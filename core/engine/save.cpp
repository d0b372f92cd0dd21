#include "core/engine/save.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/check.hpp"
#include "core/base/codes.hpp"
#include "core/base/hash.hpp"
#include "core/engine/agreement.hpp"
#include "core/engine/image_writer.hpp"
#include "core/engine/leader.hpp"
#include "core/engine/leaf_source.hpp"
#include "core/engine/load_staging.hpp"
#include "core/engine/peer_wire.hpp"
#include "core/engine/plan_fit.hpp"
#include "core/engine/planning.hpp"
#include "core/engine/retention.hpp"
#include "core/engine/seamed.hpp"
#include "core/format/bytes_item.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

/// This rank's items to write, in the order of the plan: objects, then tensor chunks.
struct WriteShare {
  std::vector<ImageItem> items;
  std::vector<LeafOrigin> origins;  ///< one per item; empty for objects
};

/// Throws because the plan wants something that this state lacks: it was made for another state.
[[noreturn]] void refuse_absent(const std::string& key, const std::string& what) {
  throw Error(Code::kStalePlan,
              "the plan wants this rank to write " + what + ", which it no longer holds",
              {.key = key});
}

class LeafIndex {
 public:
  explicit LeafIndex(const StateDict& state) {
    for (const auto& leaf : state.tensors) leaves_.push_back(&leaf);
    std::sort(leaves_.begin(), leaves_.end(),
              [](const TensorLeaf* a, const TensorLeaf* b) { return a->key < b->key; });
  }

  LeafOrigin find(const std::string& key, const Box& box) const {
    const auto first = std::lower_bound(
        leaves_.begin(), leaves_.end(), key,
        [](const TensorLeaf* leaf, const std::string& wanted) { return leaf->key < wanted; });
    if (first == leaves_.end() || (*first)->key != key) refuse_absent(key, "this key");
    const auto& pieces = (*first)->pieces;
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&box](const Piece& candidate) {
      return candidate.box == box;
    });
    if (piece == pieces.end()) refuse_absent(key, to_string(box));
    return {*first, &*piece};
  }

 private:
  std::vector<const TensorLeaf*> leaves_;
};

WriteShare share_of(const GlobalPlan& plan, GroupRank rank, const StateDict& state) {
  WriteShare share;
  std::map<std::string, const ObjectLeaf*> objects;
  for (const auto& leaf : state.objects) {
    objects.emplace(object_key(leaf.key, leaf.coordinate, leaf.grid), &leaf);
  }
  for (const auto& object : plan.objects) {
    if (object.owner != rank) continue;
    const auto leaf = objects.find(object.key);
    if (leaf == objects.end()) refuse_absent(object.key, "this object");
    // Megatron's form of a sharded object is a list with one entry.
    Bytes content = write_bytes_item(Value(List{leaf->second->value}));
    share.items.push_back({.key = object.key, .extent = {}, .content = std::move(content)});
    share.origins.emplace_back();
  }
  const LeafIndex leaves(state);
  for (const auto& tensor : plan.tensors) {
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      if (tensor.owners[c] != rank) continue;
      const Box& box = (*tensor.boxes)[c];
      share.items.push_back(
          {.key = tensor.key, .dtype = tensor.dtype, .extent = box.extent, .content = {}});
      share.origins.push_back(leaves.find(tensor.key, box));
    }
  }
  return share;
}

constexpr std::string_view kWrittenWire = "the list of what was written";

std::string payload_name(GroupRank rank) { return "__" + std::to_string(rank.value) + "_0.distcp"; }

Bytes encode(const WrittenFile& file) {
  Bytes wire;
  append_le(wire, file.bytes);
  append_le(wire, static_cast<std::uint64_t>(file.ranges.size()));
  for (const auto& range : file.ranges) {
    append_le(wire, range.offset);
    append_le(wire, range.size);
  }
  if (file.sha256) append(wire, *file.sha256);
  return wire;
}

WrittenFile decode_written(ByteSpan bytes) {
  PeerWire wire(bytes, kWrittenWire);
  WrittenFile file;
  file.bytes = wire.number<std::uint64_t>();
  for (auto left = wire.count(2 * sizeof(std::uint64_t)); left > 0; --left) {
    const auto offset = wire.number<std::uint64_t>();
    const ByteRange range{offset, wire.number<std::uint64_t>()};
    if (!range.fits(file.bytes)) wire.refuse("has a range that its file does not have");
    file.ranges.push_back(range);
  }
  if (wire.empty()) return file;
  const ByteSpan digest = wire.bytes(Sha256Digest{}.size());
  wire.end();
  std::copy(digest.begin(), digest.end(), file.sha256.emplace().begin());
  return file;
}

/// Checks that each rank wrote exactly what the plan assigns to it.
void require_as_planned(const GlobalPlan& plan, const std::vector<WrittenFile>& written) {
  std::vector<std::size_t> planned(written.size(), 0);
  for (const auto& object : plan.objects)
    ++planned.at(static_cast<std::size_t>(object.owner.value));
  for (const auto& tensor : plan.tensors) {
    for (const GroupRank owner : tensor.owners) {
      ++planned.at(static_cast<std::size_t>(owner.value));
    }
  }
  for (std::size_t r = 0; r < written.size(); ++r) {
    if (written[r].ranges.size() == planned[r]) continue;
    PeerWire({}, kWrittenWire)
        .refuse("names " + std::to_string(written[r].ranges.size()) + " items where " +
                std::to_string(planned[r]) + " are planned");
  }
}

/// Combines the plan with the written ranges; each rank's ranges are in the plan's order.
Catalog catalog_of(const GlobalPlan& plan, const std::vector<WrittenFile>& written) {
  Catalog catalog;
  std::vector<FileIndex> files(written.size(), kNoFile);
  std::vector<std::size_t> next(written.size(), 0);
  for (std::size_t r = 0; r < written.size(); ++r) {
    if (written[r].ranges.empty()) continue;
    files[r] = static_cast<FileIndex>(catalog.files.size());
    catalog.files.push_back(payload_name({static_cast<std::int32_t>(r)}));
  }
  const auto take = [&](GroupRank owner) {
    const auto r = static_cast<std::size_t>(owner.value);
    return std::pair{files[r], written[r].ranges[next[r]++]};
  };
  for (const auto& object : plan.objects) {
    const auto [file, range] = take(object.owner);
    catalog.objects.push_back({object.key, file, range});
  }
  for (const auto& tensor : plan.tensors) {
    StoredTensor stored{.key = tensor.key,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape,
                        .chunks = {},
                        .original_shape = {}};
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      const auto [file, range] = take(tensor.owners[c]);
      stored.chunks.push_back({(*tensor.boxes)[c], file, range});
    }
    catalog.tensors.push_back(std::move(stored));
  }
  return catalog;
}

/// Returns an id in uuid form, derived from the plan and the target: equal saves have equal ids.
std::string save_id(const GlobalPlan& plan, const CommitTarget& target) {
  const std::uint64_t high = mix64(plan.signature, hash_of(std::string_view(target.directory)));
  const std::string digits =
      hex(high) + hex(mix64(high, static_cast<std::uint64_t>(target.step.value_or(Step{}).value)));
  return digits.substr(0, 8) + "-" + digits.substr(8, 4) + "-4" + digits.substr(13, 3) + "-a" +
         digits.substr(17, 3) + "-" + digits.substr(20, 12);
}

/// True for errors of a collective itself: other ranks may not take part in the next one.
bool is_of_fabric(Code code) {
  return code == Code::kPeerFailed || code == Code::kDeadline || code == passed_on::kHang ||
         code == Code::kCollectiveMismatch;
}

/// True if there are only objects and single elements, which any rank may have to write.
bool is_small(const std::vector<ImageItem>& items) {
  return std::all_of(items.begin(), items.end(), [](const ImageItem& item) {
    return !item.content.empty() || volume(item.extent) <= 1;
  });
}

/// State of a rank's background work; the maximum over the ranks is the worst.
enum class WriteStatus : std::int64_t { kDone, kPending, kFailed };

}  // namespace

struct Save::State {
  Ports ports;
  std::shared_ptr<Communicator> group;
  SaveSettings options;
  SaveSeams seams;
  SavePlan planned;
  std::optional<Dict> common;
  std::unique_ptr<ContentSource> source;
  std::unique_ptr<ImageWriter> writer;  ///< null if this rank owns nothing
  SaveReport report;
  std::optional<WrittenFile> written = {};  ///< file of this rank, once written
  bool write_ended = false;                 ///< and its phase has been traced
  bool committed = false;
  std::optional<Error> failed;  ///< a failed save stays failed; same on all ranks

  GlobalRank self() const { return group->group().member(group->rank()); }

  const GlobalPlan& plan() const { return *planned.plan; }

  void make_plan(const StateDict& state) {
    planned =
        plan_save(ports, *group, state, {.plan = seams.plan, .cache = seams.cache}, options.cache);
    report.plan_signature = plan().signature;
    report.tensors = plan().tensors.size();
    report.objects = plan().objects.size();
    report.planned = planned.planned;
    report.reused = planned.reused;
    report.log = planned.log;
  }

  /// Checks that the plan has a place for everything; a plan made just now always has.
  void require_planned(const StateDict& state) const {
    if (planned.planned != Planned::kReused) return;
    const auto keys = unplanned_keys(plan(), state);
    if (!keys.empty()) seams.cache.unplanned(keys);
  }

  void snapshot(const StateDict& state) {
    require_planned(state);
    WriteShare share = share_of(plan(), group->rank(), state);
    report.bound_empty = kEmptyRankBytes;
    source = seams.source(ports.device, std::move(share.origins));
    if (share.items.empty()) return;
    const ImageOptions image = with_batches_of(ports.device.batch_bytes(), options.image);
    report.bound_staging = staging_bound(share.items, image);
    if (is_small(share.items)) report.bound_empty += report.bound_staging;
    const std::string path = join_path(options.target.saving(), payload_name(group->rank()));
    writer = std::make_unique<ImageWriter>(ports.store, ports.tasks, path, std::move(share.items),
                                           image, seams.stage);
    writer->stage(*source);
    report.peak_staging = writer->peak_bytes();
  }

  /// Waits until this rank's part is durable. Throws its error if it failed.
  void wait_for_write() {
    if (!written) written = writer ? writer->finish() : WrittenFile{};
  }
  void end_write() {
    wait_for_write();
    if (std::exchange(write_ended, true)) return;
    report.bytes = written->bytes;
    end_phase(ports.trace, phase::kWrite, {.bytes = written->bytes});
  }

  /// Returns the state of this rank's own part without waiting for it.
  Contribution part_written(WriteStatus& status) {
    status = WriteStatus::kFailed;
    return contribution_of([&] {
      const bool through = written || !writer || writer->done();
      if (through) end_write();
      status = through ? WriteStatus::kDone : WriteStatus::kPending;
      return Bytes{};
    });
  }

  /// Returns every rank's written file, or nothing if a small collective finds one still busy.
  std::vector<Bytes> vote() {
    WriteStatus status{};
    Contribution mine = part_written(status);
    const auto worst =
        group->all_reduce(Reduce::kMax, std::array{static_cast<std::int64_t>(status)});
    if (WriteStatus{worst.front()} == WriteStatus::kPending) return {};
    if (WriteStatus{worst.front()} == WriteStatus::kDone)
      mine = contribution_of([&] { return encode(*written); });
    return agree(*group, mine);
  }

  /// Runs `work` unless the save has already ended, and remembers its error.
  void settle(const std::function<void()>& work) {
    if (failed) throw *failed;
    if (committed) return;
    try {
      work();
    } catch (const std::exception& caught) {
      failed = error_from(caught);
      give_up();
      throw Error(*failed);
    }
  }

  /// Releases the target and the space of a failed save once no rank writes any more. Collective,
  /// unless a collective itself failed.
  void give_up() {
    writer.reset();  // waits for pending writes
    if (!committed && !is_of_fabric(failed->code())) {
      try {
        hear(*group, {{}, failed});  // tells the error to ranks in another call
      } catch (const std::exception&) {
        // A lost rank writes no more; if it does, its directory is still marked.
      }
    }
    abandon(ports.store, options.target);
  }

  void poll() {
    begin_phase(ports.trace, phase::kVote);
    const auto votes = vote();
    end_phase(ports.trace, phase::kVote);
    if (!votes.empty()) commit(votes);
  }

  void finish() {
    agree_on(*group, [this] {
      wait_for_write();
      return Bytes{};
    });
    begin_phase(ports.trace, phase::kVote);
    const auto votes = agree(*group, contribution_of([this] {
      end_write();
      return encode(*written);
    }));
    end_phase(ports.trace, phase::kVote);
    commit(votes);
  }

  Part part() const {
    const GroupRank leader = seams.leader.leader(*group);
    return group->rank() == leader ? Part::kLeader : Part::kMember;
  }

  void require_possible() const {
    if (options.target.keep.value_or(1) >= 1) return;
    throw Error(Code::kUsage, "keep: at least one checkpoint stays, the new one");
  }

  /// Throws if ranks differ in `keep`: some would wait for the others in retention.
  static void require_one_keep(const std::vector<Bytes>& keeps) {
    if (std::count(keeps.begin(), keeps.end(), keeps.front()) ==
        static_cast<std::ptrdiff_t>(keeps.size())) {
      return;
    }
    throw Error(Code::kUsage, "keep: ranks are to keep different numbers of checkpoints");
  }

  void stage(const StateDict& state) {
    begin_phase(ports.trace, phase::kStage);
    require_one_keep(agree_on(*group, [&] {
      require_possible();
      snapshot(state);
      Bytes keep;
      append_le(keep, options.target.keep.value_or(0));
      return keep;
    }));
    end_phase(ports.trace, phase::kStage);
  }

  void prepare_directory(const StateDict& state) {
    begin_phase(ports.trace, phase::kPrepare);
    const Bytes token = from_leader(*group, seams.leader, [&] {
      CHECK(state.common.as<Dict>() != nullptr);
      common = *state.common.as<Dict>();
      run_protocol(seams.prepare(ports.store, options.target), phase::kPrepare, ports.trace);
      return to_bytes(options.target.claim.token);
    });
    options.target.claim.token = as_text(token);
    end_phase(ports.trace, phase::kPrepare);
  }

  CommitContent content_of(const std::vector<Bytes>& votes) {
    CommitContent content{.metadata = {},
                          .common = std::move(common),
                          .manifest = options.image.checksums == Checksums::kCrc32AndSha256,
                          .digests = {}};
    std::vector<WrittenFile> files;
    for (const auto& vote : votes) {
      const std::string name = payload_name({static_cast<std::int32_t>(files.size())});
      const WrittenFile& file = files.emplace_back(decode_written(vote));
      if (!file.ranges.empty()) content.payload.push_back({name, file.bytes});
      if (file.sha256) content.digests.push_back({name, *file.sha256});
    }
    require_as_planned(plan(), files);
    content.metadata.catalog = catalog_of(plan(), files);
    content.metadata.checkpoint_id = options.target.directory;
    content.metadata.save_id = save_id(plan(), options.target);
    return content;
  }

  void commit(const std::vector<Bytes>& votes) {
    begin_phase(ports.trace, phase::kCommit);
    const auto notes = agree_on(*group, [&] {
      const CommitContent content = part() == Part::kLeader ? content_of(votes) : CommitContent{};
      run_protocol(seams.commit(ports.store, options.target, content, part()), phase::kCommit,
                   ports.trace);
      return take_notes();
    });
    end_phase(ports.trace, phase::kCommit);
    for (const Bytes& of_one : notes) log(of_one);
    committed = true;
    if (options.cache != nullptr) {
      remember(*options.cache, planned, seams.cache);
    }
    retain();
    options.target.claim = {};
  }

  /// Takes this rank's messages to the operator.
  Bytes take_notes() {
    Bytes wire;
    put_texts(wire, std::exchange(options.target.claim.notes, {}));
    return wire;
  }
  void log(ByteSpan notes) {
    PeerWire wire(notes, "notes");
    for (auto& note : wire.texts()) report.log.push_back(std::move(note));
  }

  /// Removes old checkpoints; the new one is committed even if this fails.
  void retain() {
    if (!options.target.keep) return;
    begin_phase(ports.trace, phase::kRetention);
    const Bytes notes = from_leader(*group, seams.leader, [&] {
      try {
        run_protocol(seams.retention(ports.store, options.target), phase::kRetention, ports.trace);
      } catch (const std::exception& error) {
        options.target.claim.notes.push_back(
            std::string("older checkpoints were not all removed; the next save tries again: ") +
            error.what());
      }
      return take_notes();
    });
    end_phase(ports.trace, phase::kRetention);
    log(notes);
  }
};

Save::Save(std::unique_ptr<State> state) : state_(std::move(state)) {}
Save::Save(Save&&) noexcept = default;
Save& Save::operator=(Save&&) noexcept = default;
Save::~Save() = default;

Save Save::begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                 SaveSettings options) {
  return begin_save(ports, std::move(group), state, std::move(options), {});
}

Save begin_save(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                SaveSettings options, const SaveSeams& seams) {
  auto started = std::make_unique<Save::State>(Save::State{.ports = ports,
                                                           .group = std::move(group),
                                                           .options = std::move(options),
                                                           .seams = seams,
                                                           .planned = {},
                                                           .common = {},
                                                           .source = nullptr,
                                                           .writer = nullptr,
                                                           .report = {},
                                                           .failed = {}});
  Save::State& own = *started;
  Trace& trace = ports.trace;
  begin_phase(trace, phase::kPlan);
  own.make_plan(state);
  end_phase(trace, phase::kPlan, {.items = own.report.tensors + own.report.objects});
  own.settle([&] {
    own.prepare_directory(state);
    own.stage(state);
  });
  begin_phase(trace, phase::kWrite);
  return Save(std::move(started));
}

bool Save::poll() {
  State& own = *state_;
  own.settle([&] { own.poll(); });
  return own.committed;
}

std::uint64_t Save::bound_staging() const { return state_->report.bound_staging; }

std::shared_ptr<StoreLock> Save::root_lock(const Store& store, const std::string& root) const {
  const CommitTarget& target = state_->options.target;
  const std::string own = state_->ports.store.display(parent_path(target.directory));
  return store.display(root) == own ? target.claim.root : nullptr;  // stores may be wrapped again
}

SaveReport Save::finish() {
  State& own = *state_;
  own.settle([&] { own.finish(); });
  return own.report;
}

}  // namespace reprise
