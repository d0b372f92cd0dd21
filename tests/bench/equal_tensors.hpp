#pragma once
// Makes a state of equally large tensors for benchmarks.

#include <cstdint>
#include <string>

#include "core/geometry/piece.hpp"
#include "core/state/state_dict.hpp"
#include "tests/bench/limit.hpp"

namespace reprise::bench {

/// Tensors of the same size, alternately bf16 and fp32, that are consecutive in warm memory.
class EqualTensors {
 public:
  EqualTensors(std::size_t count, std::size_t bytes_each, std::uint64_t seed)
      : memory_(count * bytes_each, seed) {
    for (std::size_t t = 0; t < count; ++t) {
      TensorLeaf leaf;
      leaf.key = "decoder.layers." + std::to_string(t) + ".mlp.linear_fc1.weight";
      leaf.dtype = t % 2 == 0 ? DType::kBFloat16 : DType::kFloat32;
      const auto elements = static_cast<std::int64_t>(bytes_each / size_of(leaf.dtype));
      leaf.shape = {elements / kColumns, kColumns};
      leaf.pieces = {contiguous_piece({{0, 0}, leaf.shape})};
      leaf.data = memory_.bytes().data() + t * bytes_each;
      state.tensors.push_back(std::move(leaf));
    }
  }

  MutableByteSpan bytes() { return memory_.bytes(); }
  ByteSpan bytes() const { return memory_.bytes(); }

  StateDict state;

 private:
  static constexpr std::int64_t kColumns = 128;
  WarmMemory memory_;
};

}  // namespace reprise::bench
