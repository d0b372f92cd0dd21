#include "core/plan/load_plan.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "core/geometry/folded_shape.hpp"
#include "core/geometry/sweep.hpp"
#include "core/plan/chunk_index.hpp"

namespace reprise {
namespace {

/// Object key of the common state in checkpoints that store it as an object. Jobs request the
/// common state without this key, so the object is never reported as not requested.
constexpr std::string_view kCommonStateKey = "common_state/shard_0_1";

struct Hit {
  std::uint32_t tensor;
  std::uint32_t chunk;
  LoadTarget target;
};

class Loader {
 public:
  Loader(const Catalog& catalog, std::size_t tensors)
      : catalog_(catalog),
        tensor_wanted_(catalog.tensors.size()),
        object_wanted_(catalog.objects.size()) {
    hits_.reserve(tensors);
  }

  void want(const TensorLeaf& leaf, std::uint32_t index) {
    const StoredTensor* stored = catalog_.tensor(leaf.key);
    if (stored == nullptr)
      return miss(Code::kNotStored, leaf.key, "the checkpoint lacks this tensor");
    const auto tensor = static_cast<std::uint32_t>(stored - catalog_.tensors.data());
    tensor_wanted_[tensor] = true;
    const Dims& shape = logical_shape(*stored);
    const bool as_stored = shape == leaf.shape && stored->folded == leaf.folded;
    if (!as_stored && !(leaf.any_shape && shape.size() == leaf.shape.size())) {
      return miss(Code::kShapeDrift, leaf.key,
                  "the checkpoint has shape " + shape_text(all_extents(*stored)) +
                      ", but the load requests " + shape_text(unfolded(leaf.shape, leaf.folded)));
    }
    if (stored->dtype != leaf.dtype) {
      return miss(Code::kDtypeDrift, leaf.key,
                  "the checkpoint has element type " + std::string(name_of(stored->dtype)) +
                      ", but the load requests " + std::string(name_of(leaf.dtype)));
    }
    std::vector<Box> boxes;
    boxes.reserve(leaf.pieces.size());
    const Box whole = Box::whole(shape);
    for (const Piece& piece : leaf.pieces) {
      const bool comparable = piece.box.ndim() == shape.size();
      if (comparable && leaf.any_shape) {
        const Box none{piece.box.offset, Dims::filled(shape.size(), 0)};
        boxes.push_back(intersect(piece.box, whole).value_or(none));
      } else if (comparable && contains(whole, piece.box)) {
        boxes.push_back(piece.box);
      } else {
        return miss(Code::kShapeDrift, leaf.key,
                    "the load requests " + to_string(piece.box) + ", which lies outside of shape " +
                        to_string(shape));
      }
    }
    if (!find_hits(leaf.key, boxes, index, *stored, tensor)) return;
    std::erase_if(boxes, [](const Box& box) { return box.empty(); });
    plan_.elements += union_volume(boxes);
  }

  void want(const ObjectLeaf& leaf, std::uint32_t index) {
    const std::string name = stored_key(leaf);
    const StoredObject* stored = catalog_.object(name);
    if (stored == nullptr) stored = find_with_short_grid(leaf);
    if (stored == nullptr) {
      return miss(Code::kNotStored, name, "the checkpoint lacks this object");
    }
    const auto object = static_cast<std::size_t>(stored - catalog_.objects.data());
    object_wanted_[object] = true;
    if (stored->file == kNoFile) {
      return miss(Code::kCoverageGap, name, "the metadata lists this object but no storage for it");
    }
    plan_.objects.push_back({index, static_cast<std::uint32_t>(object)});
  }

  LoadPlan take() {
    make_reads();
    list_not_requested();
    return std::move(plan_);
  }

 private:
  void miss(Code code, const std::string& key, std::string message) {
    plan_.mismatches.push_back({code, key, std::move(message)});
  }

  /// Finds the stored pieces that meet the boxes that a leaf wants, one for each of its pieces. If
  /// they do not supply each wanted element exactly once, adds a mismatch and returns false.
  bool find_hits(const std::string& key, std::span<const Box> boxes, std::uint32_t index,
                 const StoredTensor& stored, std::uint32_t tensor) {
    if (std::ranges::all_of(boxes, &Box::empty)) return true;
    const std::size_t before = hits_.size();
    const ChunkIndex chunks(stored);
    for (std::size_t p = 0; p < boxes.size(); ++p) {
      const Box& wanted = boxes[p];
      if (wanted.empty()) continue;
      std::int64_t found = 0;
      bool stored_somewhere = true;
      chunks.meet(wanted, [&](const StoredPiece& piece, const Box& common) {
        stored_somewhere &= stored.chunks[piece.chunk].file != kNoFile;
        found += common.elements();
        hits_.push_back(
            {tensor, piece.chunk, {piece.source, index, static_cast<std::uint32_t>(p), common}});
      });
      if (stored_somewhere && found == wanted.elements()) continue;
      hits_.resize(before);
      miss(found > wanted.elements() ? Code::kChunkOverlap : Code::kCoverageGap, key,
           !stored_somewhere
               ? "the metadata names no storage for a chunk of " + to_string(wanted)
               : "the stored chunks cover " + std::to_string(found) + " of the " +
                     std::to_string(wanted.elements()) + " elements of " + to_string(wanted));
      return false;
    }
    return true;
  }

  /// Finds an object in an older file, whose object keys lack the last extent of the grid.
  const StoredObject* find_with_short_grid(const ObjectLeaf& leaf) const {
    if (leaf.grid.size() < 2) return nullptr;
    Dims grid;
    for (std::size_t d = 0; d + 1 < leaf.grid.size(); ++d) grid.push_back(leaf.grid[d]);
    return catalog_.object(object_key(leaf.key, leaf.coordinate, grid));
  }

  void make_reads() {
    using Place = std::tuple<FileIndex, std::uint64_t, std::uint32_t, std::uint32_t, std::size_t>;
    std::vector<Place> order;  // what is compared lies side by side, not in the catalog
    order.reserve(hits_.size());
    for (const Hit& hit : hits_) {
      const StoredChunk& chunk = catalog_.tensors[hit.tensor].chunks[hit.chunk];
      order.emplace_back(chunk.file, chunk.range.offset, hit.tensor, hit.chunk, order.size());
    }
    std::sort(order.begin(), order.end());
    auto& reads = plan_.reads;
    reads.reserve(hits_.size());
    for (const Place& place : order) {
      const Hit& hit = hits_[std::get<4>(place)];
      if (reads.empty() || reads.back().tensor != hit.tensor || reads.back().chunk != hit.chunk) {
        reads.push_back({hit.tensor, hit.chunk, {}});
      }
      reads.back().targets.push_back(hit.target);
    }
    for (const ChunkRead& read : plan_.reads) plan_.bytes_needed += bytes_of(read);
  }

  std::uint64_t bytes_of(const ChunkRead& read) const {
    const std::size_t width = size_of(catalog_.tensors[read.tensor].dtype);
    if (read.targets.size() == 1) {
      return static_cast<std::uint64_t>(read.targets[0].region.elements()) * width;
    }
    std::vector<Box> regions;
    regions.reserve(read.targets.size());
    for (const LoadTarget& target : read.targets) regions.push_back(target.region);
    return union_volume(regions) * width;
  }

  void list_not_requested() {
    for (std::size_t t = 0; t < catalog_.tensors.size(); ++t) {
      if (!tensor_wanted_[t]) plan_.not_requested.push_back(catalog_.tensors[t].key);
    }
    for (std::size_t o = 0; o < catalog_.objects.size(); ++o) {
      const std::string& key = catalog_.objects[o].key;
      if (!object_wanted_[o] && key != kCommonStateKey) plan_.not_requested.push_back(key);
    }
    std::sort(plan_.not_requested.begin(), plan_.not_requested.end());
  }

  const Catalog& catalog_;
  LoadPlan plan_;
  std::vector<Hit> hits_;
  std::vector<bool> tensor_wanted_;
  std::vector<bool> object_wanted_;
};

}  // namespace

LoadPlan load_plan(std::span<const TensorLeaf> wanted, std::span<const ObjectLeaf> wanted_objects,
                   const Catalog& catalog) {
  Loader loader(catalog, wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    loader.want(wanted[i], static_cast<std::uint32_t>(i));
  }
  for (std::size_t i = 0; i < wanted_objects.size(); ++i) {
    loader.want(wanted_objects[i], static_cast<std::uint32_t>(i));
  }
  return loader.take();
}

}  // namespace reprise
