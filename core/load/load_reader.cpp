#include "core/load/load_reader.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/base/caught.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/zip/zip_layout.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {
namespace {

constexpr std::byte kPoison{0xBD};

/// Upper limit on the size of staging for one read if the CPU makes the copies. With a larger size,
/// staging would not stay in the CPU's cache.
constexpr std::uint64_t kHostStagingMax = std::uint64_t{256} << 10U;

/// Adjacent items are read together up to a sixteenth of all bytes, but up to a quarter if that is
/// at most kJoinedMin, and never more than kJoinedMax: enough to hide what a call costs, and shares
/// that leave work for other threads while this is read, and reads for the time of the copies.
constexpr std::uint64_t kJoinedShare = 16;
constexpr std::uint64_t kFewShare = 4;
constexpr std::uint64_t kJoinedMin = std::uint64_t{256} << 10U;
constexpr std::uint64_t kJoinedMax = std::uint64_t{4} << 20U;
/// These limit how many items are joined if their heads and tails are kept beside the ring. At most
/// one is joined per this many bytes of all that is read, so that heads and tails are few beside
/// the elements, and at most one per this many items, so that readers have work.
constexpr std::uint64_t kBytesShare = std::uint64_t{512} << 10U;
constexpr std::uint64_t kItemsShare = 16;
constexpr std::uint64_t kItemsMax = 32;

/// Least number of reads that may be on their way at once if copies follow them: enough to hide
/// what a call costs.
constexpr std::size_t kReadersMin = 4;

/// The number for each thread if they read into host memory: one read is waiting for it.
constexpr std::size_t kReadsPerThread = 2;

/// Reads into host memory are copies already, so one thread does not read ahead there.
Readers readers_of(const Device& device, Tasks& tasks) {
  const auto threads = static_cast<std::size_t>(tasks.threads());
  if (!device.host_memory()) return {.tasks = &tasks, .most = std::max(kReadersMin, threads)};
  if (threads == 1) return {};
  return {.tasks = &tasks, .most = kReadsPerThread * threads};
}
Readers readers_of(const Device& device, Tasks& tasks, std::size_t most) {
  Readers readers = readers_of(device, tasks);
  readers.most = std::min(readers.most, most);
  return readers;
}

/// Limits for a rank that needs only single elements. With the heads and tails of the items and
/// what parsing takes, its reads stay within kEmptyRankBytes.
constexpr std::size_t kSingleReaders = 2;
constexpr std::uint64_t kSingleStaging = 1024;

const StoredChunk& chunk_of(const Catalog& catalog, const ChunkRead& read) {
  return catalog.tensors[read.tensor].chunks[read.chunk];
}

bool only_single_elements(const LoadPlan& plan, const Catalog& catalog) {
  return std::all_of(plan.reads.begin(), plan.reads.end(), [&](const ChunkRead& read) {
    return chunk_of(catalog, read).box.elements() <= 1;
  });
}

/// Returns a limit on the memory for heads and tails of items.
std::uint64_t around_items(const LoadPlan& plan, const Catalog& catalog, const StagingNeed& need) {
  std::uint64_t largest = 0;
  for (const auto& read : plan.reads) {
    const StoredChunk& chunk = chunk_of(catalog, read);
    const std::uint64_t elements = static_cast<std::uint64_t>(chunk.box.elements()) *
                                   size_of(catalog.tensors[read.tensor].dtype);
    if (chunk.range.size < elements) continue;
    const std::uint64_t around = chunk.range.size - elements;
    if (around <= ChunkReader::kAroundMax) largest = std::max(largest, around);
  }
  const std::uint64_t items = (need.readers + ChunkReader::kRunsMore) * need.joined_items;
  return largest * std::min<std::uint64_t>(items, plan.reads.size());
}

std::uint64_t largest_object(const LoadPlan& plan, const Catalog& catalog) {
  std::uint64_t largest = 0;
  for (const auto& read : plan.objects) {
    largest = std::max(largest, catalog.objects[read.object].range.size);
  }
  return largest;
}

/// True if the bytes begin or end as a zip archive does, so one that is damaged at one end counts.
bool resembles_archive(const Bytes& bytes) {
  constexpr std::size_t kEndBytes = 22;  // the end of an archive without a comment
  const auto has = [&bytes](std::size_t at, std::uint32_t signature) {
    return load_le<std::uint32_t>(ByteSpan(bytes).subspan(at)) == signature;
  };
  return bytes.size() >= kEndBytes &&
         (has(0, zip::kLocalSignature) || has(bytes.size() - kEndBytes, zip::kEndSignature));
}

}  // namespace

StagingNeed staging_need(const LoadPlan& plan, const Catalog& catalog, const Device& device,
                         Tasks& tasks, std::uint64_t most) {
  const bool single = only_single_elements(plan, catalog);
  StagingNeed need{.most = most, .readers = readers_of(device, tasks).most};
  if (single) {
    need.most = std::min(need.most, kSingleStaging);
    need.readers = std::min<std::uint64_t>(need.readers, kSingleReaders);
  }
  need.reads = need.readers;
  if (!device.host_memory()) {
    need.reads *= 2;  // half are read while others are copied
  } else {            // a copy is done before the next read
    need.most = std::min(need.most, need.reads * kHostStagingMax);
  }
  bool stages = !device.host_memory();
  for (const auto& read : plan.reads) {
    const auto bytes = chunk_of(catalog, read).range.size;
    stages = stages || bytes <= ChunkReader::kStagedMax;
    need.largest = std::max(need.largest, bytes);
    need.all += bytes;
  }
  if (single || plan.reads.size() < 2) return need;
  need.joined = std::min(
      std::max(need.all / kJoinedShare, std::min(need.all / kFewShare, kJoinedMin)), kJoinedMax);
  if (device.host_memory()) {
    const std::uint64_t share = std::min(plan.reads.size() / kItemsShare, need.all / kBytesShare);
    need.joined_items = std::clamp<std::uint64_t>(share, 1, kItemsMax);
  }
  // Items that are read together have to fit into one part of staging.
  if (stages) need.largest = std::max(need.largest, need.joined);
  return need;
}

std::uint64_t reading_bound(const LoadPlan& plan, const Catalog& catalog, const StagingNeed& need) {
  // Items whose heads and tails are compared, items that are parsed, and objects are read one kind
  // after the other.
  return read_ring(need) + std::max({around_items(plan, catalog, need),
                                     largest_object(plan, catalog), kParsedAtOnce});
}

std::uint64_t empty_reading_bound(const LoadPlan& plan, const Catalog& catalog) {
  return kEmptyRankBytes + largest_object(plan, catalog);
}

ShareReader::ShareReader(Checkpoint& checkpoint, Device& device, Tasks& tasks, StateDict& into,
                         const Staging& staging, ChecksumTally* checksums, TensorFrames& frames)
    : checkpoint_(checkpoint),
      device_(device),
      into_(into),
      staging_(device.staging(staging.bytes)),
      ring_(std::make_unique<StagingRing>(MutableByteSpan(staging_.get(), staging.bytes),
                                          staging.room, device,
                                          readers_of(device, tasks, staging.readers))),
      checksums_(checksums),
      chunks_(std::make_unique<ChunkReader>(checkpoint, *ring_, checksums, frames, staging.joined,
                                            staging.joined_items)) {}

void ShareReader::drain() {
  FirstFailure failure;
  failure.attempt([this] { catch_up(); });
  failure.attempt([this] { ring_->drain(); });
  failure.rethrow();
}

void ShareReader::read(const ChunkRead& read) {
  const StoredTensor& tensor = checkpoint_.catalog().tensors[read.tensor];
  targets_.clear();
  for (const auto& target : read.targets) {
    const TensorLeaf& leaf = into_.tensors[target.leaf];
    const Piece& piece = leaf.pieces[target.piece];
    targets_.push_back({target.source,
                        target.region,
                        {address_of(leaf, piece, target.region.offset), piece.strides}});
  }
  chunks_->read(tensor, tensor.chunks[read.chunk], targets_);
}

Value ShareReader::object(const ObjectRead& read) {
  const StoredObject& stored = checkpoint_.catalog().objects[read.object];
  const bool plain = into_.objects[read.leaf].is_plain();
  // Reads the item only once, so that the bytes that are used are the bytes that were checked.
  Bytes bytes = checkpoint_.object_bytes(stored);
  SpanSource source(
      bytes,
      {.key = stored.key, .file = checkpoint_.display(stored.file), .offset = stored.range.offset});
  // Bytes of a job's own need be no archive, and then have no checksum.
  const bool has_checksums = !plain || resembles_archive(bytes);
  if (checksums_ != nullptr && has_checksums) {
    checksums_->add(source, stored.key);
    checksums_->require_no_damage();
  }
  if (checksums_ != nullptr && !has_checksums) ++unverified_;
  if (plain) return Value(std::move(bytes));
  BytesItem item = read_bytes_item(source);
  if (!item.value) {
    source.fail(Code::kUnsupported, "the object can't be loaded: " + item.opaque_because, 0);
  }
  List* list = item.value->as<List>();
  if (list != nullptr && list->size() == 1) return std::move(list->front());
  return std::move(*item.value);
}

void ShareReader::poison(const LoadPlan& plan) {
  try {
    ring_->drain();                  // so that no copy comes after the poison
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the load has failed before
  }
  for (const auto& read : plan.reads) {
    for (const auto& target : read.targets) poison(target);
  }
}

void ShareReader::poison(const LoadTarget& target) {
  const std::array<std::byte, 16> pattern = [] {
    std::array<std::byte, 16> bytes{};
    bytes.fill(kPoison);
    return bytes;
  }();
  const TensorLeaf& leaf = into_.tensors[target.leaf];
  const Piece& piece = leaf.pieces[target.piece];
  const ScatterCopy copy{.host = {pattern.data(), Dims::filled(piece.box.ndim(), 0)},
                         .device = {address_of(leaf, piece, target.region.offset), piece.strides},
                         .extents = target.region.extent,
                         .element_bytes = size_of(leaf.dtype)};
  device_.wait(device_.scatter({&copy, 1}));
}

}  // namespace reprise
