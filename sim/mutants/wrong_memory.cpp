#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "core/save/leaf_source.hpp"
#include "core/save/staging.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

/// Copies all elements when it is constructed, and serves each fill() from these copies.
class CloneSource final : public ContentSource {
 public:
  CloneSource(Device& device, std::vector<LeafOrigin> origins) : origins_(std::move(origins)) {
    const auto leaves = leaf_source(device, origins_);
    for (std::size_t i = 0; i < origins_.size(); ++i) {
      const Piece* piece = origins_[i].piece;
      const std::int64_t elements = piece == nullptr ? 0 : piece->box.elements();
      clones_.emplace_back(static_cast<std::size_t>(elements) * width_of(i));
      if (elements > 0) leaves->fill(i, 0, elements, clones_.back());
    }
    leaves->drain();
  }

  void fill(std::size_t item, std::int64_t begin, std::int64_t /*end*/,
            MutableByteSpan out) override {
    const auto from =
        static_cast<std::ptrdiff_t>(begin) * static_cast<std::ptrdiff_t>(width_of(item));
    std::copy_n(clones_[item].begin() + from, out.size(), out.begin());
  }
  void drain() override {}

 private:
  /// Returns the number of bytes of an element.
  std::size_t width_of(std::size_t item) const {
    const TensorLeaf* leaf = origins_[item].leaf;
    return leaf == nullptr ? 0 : size_of(leaf->dtype);
  }

  std::vector<LeafOrigin> origins_;
  std::vector<Bytes> clones_;
};

std::unique_ptr<ContentSource> clone_source(Device& device, std::vector<LeafOrigin> origins) {
  return std::make_unique<CloneSource>(device, std::move(origins));
}

const Registration kLoadPeakSaveClone({
    "load-peak/save-clone",
    "The save clones the whole payload before it stages any of it.",
    "SaveSeams::source",
    "a rank whose tensors are larger than the rest of its file",
    {judged::kMemPeakExceeded},
    [](Policies& policies) { policies.save.source = asked<clone_source>; },
});

/// Allocates memory for an empty shard. The memory is kept until the thread ends, because leaves
/// point into it.
std::byte* made(std::size_t bytes) {
  thread_local std::deque<Bytes> all;
  return all.emplace_back(bytes).data();
}

/// Gives empty shards memory for the whole tensor. This memory is never read or written, because a
/// copy into an empty shard copies nothing.
StateDict with_whole_for_empty(StateDict state) {
  for (TensorLeaf& leaf : state.tensors) {
    const std::int64_t elements = volume(leaf.shape);
    if (!leaf.pieces.empty() || elements <= 1) continue;
    leaf.pieces = {contiguous_piece(Box::whole(leaf.shape))};
    leaf.data = made(static_cast<std::size_t>(elements) * size_of(leaf.dtype));
    leaf.placed.reset();
  }
  return state;
}

const Registration kEmptyShardMaterialised({
    "empty-shard-materialised",
    "A rank whose shard of a tensor is empty loads the whole tensor and then copies nothing out "
    "of it.",
    "JobPolicy::requested",
    "fsdp_dtensor, 512 rows over 30 ranks, or 3 rows over 4",
    {judged::kMemPeakExceeded},
    [](Policies& policies) { policies.job.requested = asked<with_whole_for_empty>; },
});

/// If the rank has nothing to write, stages memory for a whole tensor anyway.
std::unique_ptr<ContentSource> tensor_for_nothing(Device& device, std::vector<LeafOrigin> origins) {
  constexpr std::int64_t kElements = std::int64_t{1} << 16;
  const bool nothing = std::all_of(origins.begin(), origins.end(), [](const LeafOrigin& origin) {
    return origin.piece == nullptr || origin.piece->box.elements() <= 1;
  });
  if (nothing) {
    TensorLeaf whole{.shape = {kElements}, .pieces = {contiguous_piece(Box::whole({kElements}))}};
    const std::size_t bytes = static_cast<std::size_t>(kElements) * size_of(whole.dtype);
    whole.data = made(bytes);
    const auto elements = leaf_source(device, {{&whole, whole.pieces.data()}});
    elements->fill(0, 0, kElements, {made(bytes), bytes});
    elements->drain();
  }
  return leaf_source(device, std::move(origins));
}

const Registration kEmptyShardMaterialisedAtSave({
    "empty-shard-materialised/at-save",
    "A rank with nothing to write still stages a whole tensor.",
    "SaveSeams::source",
    "a rank that writes nothing: fsdp_dtensor, 512 rows over 30 ranks",
    {judged::kMemPeakExceeded},
    [](Policies& policies) { policies.save.source = asked<tensor_for_nothing>; },
});

std::uint64_t all_reads(const StagingNeed& need) { return need.all + one_read(need); }

const Registration kLoadPeak({
    "load-peak",
    "The load keeps everything that it has read in a second buffer beside the destination, "
    "until it ends.",
    "LoadSeams::staging",
    "a rank with several tensors",
    {judged::kMemPeakExceeded},
    [](Policies& policies) { policies.load.staging = asked<all_reads>; },
});

}  // namespace
}  // namespace reprise::sim
