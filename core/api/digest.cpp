#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/api/access.hpp"
#include "core/api/calls.hpp"
#include "core/base/caught.hpp"
#include "core/digest/witness_digest.hpp"
#include "core/ports/leaf_reach.hpp"
#include "core/ports/mixed_device.hpp"
#include "core/save/leaf_source.hpp"

namespace reprise {
namespace {

/// Bytes that are copied before they are hashed, so few that they are still in a cache.
constexpr std::uint64_t kRoom = std::uint64_t{256} << 10U;

/// Copies tensors piece by piece, and hashes the copies whenever there is no room for more.
class Digests {
 public:
  Digests(Device& device, const StateDict& state, std::span<std::uint64_t> digests)
      : room_(std::max(device.batch_bytes(), kRoom)),
        staging_(device.staging(room_)),
        digests_(digests) {
    std::vector<LeafOrigin> origins;
    for (std::size_t leaf = 0; leaf < state.tensors.size(); ++leaf) {
      for (const Piece& piece : state.tensors[leaf].pieces) {
        origins.push_back({&state.tensors[leaf], &piece});
        tensors_.push_back(leaf);
      }
      keys_.push_back(witness_key(state.tensors[leaf].key, name_of(state.tensors[leaf].dtype)));
    }
    origins_ = origins;
    source_ = leaf_source(device, std::move(origins));
  }

  void run() {
    FirstFailure failure;
    failure.attempt([this] {
      for (std::size_t item = 0; item < origins_.size(); ++item) add(item);
      flush();
    });
    failure.attempt([this] { source_->drain(); });  // copies use the staging
    failure.rethrow();
  }

 private:
  /// Elements of an item that are in staging from `at` on.
  struct Copied {
    std::size_t item;
    std::int64_t begin;
    std::int64_t end;
    std::uint64_t at;
  };

  void add(std::size_t item) {
    const std::uint64_t width = size_of(origins_[item].leaf->dtype);
    const std::int64_t elements = origins_[item].piece->box.elements();
    for (std::int64_t begin = 0; begin < elements;) {
      if (room_ - used_ < width) flush();
      const auto fit = static_cast<std::int64_t>((room_ - used_) / width);
      const std::int64_t end = begin + std::min(elements - begin, fit);
      const std::uint64_t bytes = static_cast<std::uint64_t>(end - begin) * width;
      source_->fill(item, begin, end, {staging_.get() + used_, bytes});
      copied_.push_back({item, begin, end, used_});
      used_ += bytes;
      begin = end;
    }
  }

  void flush() {
    source_->drain();
    for (const Copied& copied : copied_) hash(copied);
    copied_.clear();
    used_ = 0;
  }

  void hash(const Copied& copied) {
    const auto& [leaf, piece] = origins_[copied.item];
    const std::size_t tensor = tensors_[copied.item];
    const std::byte* elements = staging_.get() + copied.at;
    for (const Box& box : boxes_of_range(piece->box, copied.begin, copied.end)) {
      const std::size_t bytes = static_cast<std::size_t>(box.elements()) * size_of(leaf->dtype);
      digests_[tensor] +=
          witness_digest(keys_[tensor], leaf->dtype, leaf->shape, box, {elements, bytes});
      elements += bytes;
    }
  }

  std::uint64_t room_;
  StagingMemory staging_;
  std::uint64_t used_ = 0;
  std::vector<LeafOrigin> origins_;   ///< of each item: a piece of a tensor
  std::vector<std::size_t> tensors_;  ///< of each item
  std::vector<std::uint64_t> keys_;   ///< of each tensor
  std::unique_ptr<ContentSource> source_;
  std::vector<Copied> copied_;
  std::span<std::uint64_t> digests_;
};

}  // namespace

void digest(const State& state, Device& device, std::span<std::uint64_t> digests) {
  const StateDict& content = StateAccess::content(state);
  if (digests.size() != content.tensors.size()) {
    throw Error(Code::kUsage, "the state has " + std::to_string(content.tensors.size()) +
                                  " tensors, and there is room for " +
                                  std::to_string(digests.size()) + " digests");
  }
  require_reach(device, content);
  std::optional<MixedDevice> mixed;
  if (needs_mixed_device(device, content)) mixed.emplace(device, content);
  std::ranges::fill(digests, 0);
  Digests(mixed ? *mixed : device, content, digests).run();
}

}  // namespace reprise
