#include "sim/mutants/wrong_memory.hpp"

#include <algorithm>
#include <utility>

namespace reprise::sim {
namespace {

/// Takes all elements at once and hands them out of its own memory.
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
    leaves->settle();
  }

  void fill(std::size_t item, std::int64_t begin, std::int64_t /*end*/,
            MutableByteSpan out) override {
    const auto from =
        static_cast<std::ptrdiff_t>(begin) * static_cast<std::ptrdiff_t>(width_of(item));
    std::copy_n(clones_[item].begin() + from, out.size(), out.begin());
  }
  void settle() override {}

 private:
  /// Bytes of an element.
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

std::uint64_t all_reads(const StagingNeed& need) { return need.all + one_read(need); }

}  // namespace

void clone_before_staging(Policies& policies) { policies.save.source = clone_source; }
void keep_loaded_copy(Policies& policies) { policies.load.staging = all_reads; }

}  // namespace reprise::sim
