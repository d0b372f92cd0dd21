#pragma once
// Says by a tensor's key how a job's parallelism cuts it: which pipeline stage has it, and which of
// its dimensions tensor parallelism cuts. Knows the names of Megatron-Core, of transformers and of
// torchtitan. Pure.
//
//   decoder.layers.self_attention.linear_qkv.weight    [layers, rows, columns]: rows, dimension 1
//   decoder.layers.3.mlp.linear_fc2.weight             [rows, columns]: columns, dimension 1
//   decoder.layers.mlp.experts.experts.linear_fc1.weight   [layers, experts, rows, columns]: rows

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise {

struct ParallelKey {
  enum class Stage : std::uint8_t {
    kEvery,  ///< nothing says that only some stages have it
    kFirst,  ///< of the embedding
    kLast,   ///< of the output
    kLayer,  ///< of a layer, or of several
  };
  enum class Cut : std::uint8_t {
    kWhole,    ///< each rank of tensor parallelism has all of it
    kRows,     ///< the first dimension that stands for neither layers nor experts
    kColumns,  ///< the dimension after that
    kUnknown,  ///< the name is not known
  };

  Stage stage = Stage::kEvery;
  Cut cut = Cut::kUnknown;
  std::optional<std::int64_t> layer;  ///< number of the layer, if the key has one
  bool layers_stacked = false;        ///< true if dimension 0 counts the layers
  bool expert = false;                ///< true if it is of a mixture's experts
  std::optional<std::int64_t> expert_number;
  bool experts_stacked = false;  ///< true if a dimension counts the experts
  /// True if the rows may be those of two matrices, the gate and the other one, which are cut each
  /// for itself (linear_fc1 of a gated MLP).
  bool maybe_gated = false;

  /// Number of leading dimensions that count layers or experts.
  std::size_t lead() const { return (layers_stacked ? 1U : 0U) + (experts_stacked ? 1U : 0U); }
};

/// Parses the key of a weight, or of a tensor of its optimizer state.
ParallelKey parse_parallel_key(std::string_view key);

}  // namespace reprise
