#include "core/save/rank_write.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/caught.hpp"
#include "core/base/codes.hpp"
#include "core/base/key_order.hpp"
#include "core/format/bytes_item.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/save/phases.hpp"
#include "core/save/save.hpp"
#include "core/save/staging.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Throws STALE_PLAN, because the plan assigns something to this rank that the rank does not hold.
[[noreturn]] void refuse_absent(const std::string& key, const std::string& what) {
  throw Error(Code::kStalePlan,
              "the plan assigns this rank to write " + what + ", which it no longer holds",
              {.key = key});
}

class LeafIndex {
 public:
  explicit LeafIndex(const StateDict& state) {
    for (const auto& leaf : state.tensors) leaves_.push_back(&leaf);
    sort_by_keys(leaves_, [](const TensorLeaf* leaf) -> const std::string& { return leaf->key; });
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

/// True if all items are objects or single-element tensors. The plan can assign such items to any
/// rank, even to a rank without parts of larger tensors.
bool is_small(const std::vector<ImageItem>& items) {
  return std::all_of(items.begin(), items.end(), [](const ImageItem& item) {
    return !item.content.empty() || volume(item.extent) <= 1;
  });
}

constexpr std::string_view kWrittenWire = "the list of what was written";

Bytes encode(const WrittenFiles& files) {
  Bytes wire;
  for (const WrittenFile& file : files) {
    append_le(wire, file.bytes);
    append_le(wire, static_cast<std::uint64_t>(file.ranges.size()));
    for (const auto& range : file.ranges) {
      append_le(wire, range.offset);
      append_le(wire, range.size);
    }
    append_le(wire, static_cast<std::uint8_t>(file.sha256.has_value()));
    if (file.sha256) append(wire, *file.sha256);
  }
  return wire;
}

WrittenFile decode_file(PeerWire& wire) {
  WrittenFile file;
  file.bytes = wire.number<std::uint64_t>();
  for (auto left = wire.count(2 * sizeof(std::uint64_t)); left > 0; --left) {
    const auto offset = wire.number<std::uint64_t>();
    const ByteRange range{offset, wire.number<std::uint64_t>()};
    if (!range.fits(file.bytes)) wire.refuse("has a range beyond the end of its file");
    file.ranges.push_back(range);
  }
  if (wire.number<std::uint8_t>() == 0) return file;
  const ByteSpan digest = wire.bytes(Sha256Digest{}.size());
  std::copy(digest.begin(), digest.end(), file.sha256.emplace().begin());
  return file;
}

/// A thread gets a file of its own if it has at least this much to write.
constexpr std::uint64_t kFileMin = std::uint64_t{16} << 20U;

std::uint64_t bytes_of(const ImageItem& item) {
  if (!item.content.empty()) return item.content.size();
  return static_cast<std::uint64_t>(volume(item.extent)) * size_of(item.dtype);
}

/// Divides a share among as many files, or fewer if the items are too large for that. The items
/// keep their order.
std::vector<WriteShare> divided(WriteShare share, std::uint64_t bytes, std::uint64_t files) {
  std::vector<WriteShare> parts;
  std::uint64_t begin = 0;
  std::uint64_t current = 0;
  for (std::size_t i = 0; i < share.items.size(); ++i) {
    const std::uint64_t file = begin * files / bytes;
    begin += bytes_of(share.items[i]);
    if (parts.empty() || file > current) parts.emplace_back();
    current = file;
    parts.back().items.push_back(std::move(share.items[i]));
    parts.back().origins.push_back(share.origins[i]);
  }
  return parts;
}

/// States of a rank's background work, in order from best to worst, so that the maximum over all
/// ranks is the worst state.
enum class WriteStatus : std::int64_t { kDone, kPending, kFailed };

/// Sets `status` to the state of this rank's background work. Does not wait for that work.
Contribution part_written(RankWrite& write, WriteStatus& status) {
  status = WriteStatus::kFailed;
  return contribution_of([&] {
    const bool through = write.through();
    if (through) write.end();
    status = through ? WriteStatus::kDone : WriteStatus::kPending;
    return Bytes{};
  });
}

}  // namespace

std::string payload_name(GroupRank rank, std::size_t number) {
  return "__" + std::to_string(rank.value) + "_" + std::to_string(number) + ".distcp";
}

WriteShare share_of(const GlobalPlan& plan, GroupRank rank, const StateDict& state) {
  WriteShare share;
  const auto objects = objects_by_key(state);
  for (const auto& object : plan.objects) {
    if (object.owner != rank) continue;
    const auto leaf = objects.find(object.key);
    if (leaf == objects.end()) refuse_absent(object.key, "this object");
    // Megatron stores a sharded object as a list with one entry.
    Bytes content = leaf->second->is_plain() ? *leaf->second->value.as<Bytes>()
                                             : write_bytes_item(Value(List{leaf->second->value}));
    share.items.push_back({.key = object.key, .extent = {}, .content = std::move(content)});
    share.origins.emplace_back();
  }
  const LeafIndex leaves(state);
  for (const auto& tensor : plan.tensors) {
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      if (tensor.owners[c] != rank) continue;
      const Box& box = (*tensor.boxes)[c];
      share.items.push_back({.key = tensor.key,
                             .dtype = tensor.dtype,
                             .extent = box.extent,
                             .content = {},
                             .folded = tensor.folded});
      share.origins.push_back(leaves.find(tensor.key, box));
    }
  }
  return share;
}

WrittenFiles decode_written(ByteSpan vote) {
  PeerWire wire(vote, kWrittenWire);
  WrittenFiles files;
  while (!wire.empty()) files.push_back(decode_file(wire));
  return files;
}

void RankWrite::snapshot(WriteShare share, const std::string& directory, GroupRank rank,
                         const ImageOptions& options) {
  costs_.bound_empty = kEmptyRankBytes;
  if (share.items.empty()) {
    written_.emplace();
    return;
  }
  const bool small = is_small(share.items);
  const ImageOptions image = with_batches_of(ports_.device.batch_bytes(), options);
  std::uint64_t bytes = 0;
  for (const ImageItem& item : share.items) bytes += bytes_of(item);
  // Each thread that writes a file needs a batch of the staging.
  const std::uint64_t files =
      std::min({static_cast<std::uint64_t>(ports_.tasks.threads()), bytes / kFileMin,
                image.staging_bytes_max / image.batch_bytes});
  // The caller waits for the files if the bytes don't fit into staging; more staging than a
  // blocking save takes says that the job goes on before. Copies of a GPU's memory are made by one
  // thread.
  const bool waits = bytes > image.staging_bytes_max && image.staging_bytes_max <= kBlockingStaging;
  if (files > 1 && waits && ports_.device.host_memory()) {
    write_now(divided(std::move(share), bytes, files), directory, rank, image);
  } else {
    costs_.bound_staging = staging_bound(share.items, image);
    source_ = seams_.source(ports_.device, std::move(share.origins));
    writer_ = std::make_unique<ImageWriter>(ports_.store, ports_.tasks,
                                            join_path(directory, payload_name(rank)),
                                            std::move(share.items), image, seams_.stage);
    writer_->stage(*source_);
    costs_.peak_staging = writer_->peak_bytes();
    costs_.waited_for_staging = writer_->has_waited();
  }
  if (small) costs_.bound_empty += costs_.bound_staging;
}

/// Writes one file for each of the shares, at once. A thread copies, checksums and writes batch
/// after batch, and has a single one, which stays in its core's cache.
void RankWrite::write_now(std::vector<WriteShare> shares, const std::string& directory,
                          GroupRank rank, const ImageOptions& options) {
  ImageOptions image = options;
  image.staging_bytes_max = image.batch_bytes;
  image.returns = BeginReturns::kWhenCopied;
  WrittenFiles written(shares.size());
  std::vector<std::uint64_t> peaks(shares.size());
  std::vector<std::unique_ptr<Task>> tasks;  // declared last, because what they use must outlive it
  for (std::size_t i = 0; i < shares.size(); ++i) {
    costs_.bound_staging += staging_bound(shares[i].items, image);
    tasks.push_back(ports_.tasks.start([&, i] {
      TasksAtOnce here;
      const auto source = seams_.source(ports_.device, std::move(shares[i].origins));
      ImageWriter writer(ports_.store, here, join_path(directory, payload_name(rank, i)),
                         std::move(shares[i].items), image, seams_.stage);
      writer.stage(*source);
      written[i] = writer.finish();
      peaks[i] = writer.peak_bytes();
    }));
  }
  FirstFailure failure;
  for (const auto& task : tasks) failure.attempt([&] { task->wait(); });
  failure.rethrow();
  for (const std::uint64_t peak : peaks) costs_.peak_staging += peak;
  costs_.waited_for_staging = true;
  written_ = std::move(written);
}

bool RankWrite::through() { return written_ || !writer_ || writer_->done(); }

void RankWrite::wait() {
  if (!written_) written_ = writer_ ? WrittenFiles{writer_->finish()} : WrittenFiles{};
}

const WrittenFiles& RankWrite::end() {
  wait();
  if (std::exchange(ended_, true)) return *written_;
  for (const WrittenFile& file : *written_) costs_.bytes += file.bytes;
  end_phase(ports_.trace, phase::kWrite, {.bytes = costs_.bytes});
  return *written_;
}

std::vector<Bytes> poll_votes(Communicator& group, RankWrite& write) {
  WriteStatus status{};
  Contribution mine = part_written(write, status);
  const auto worst = group.all_reduce(Reduce::kMax, std::array{static_cast<std::int64_t>(status)});
  if (WriteStatus{worst.front()} == WriteStatus::kPending) return {};
  if (WriteStatus{worst.front()} == WriteStatus::kDone) {
    mine = contribution_of([&] { return encode(write.end()); });
  }
  return agree(group, mine);
}

std::vector<Bytes> take_votes(Communicator& group, RankWrite& write) {
  return agree(group, contribution_of([&] { return encode(write.end()); }));
}

}  // namespace reprise
