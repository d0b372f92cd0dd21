#pragma once
// Keys of a mixture's experts, as trainers name them.
//
//   layers.0.mlp.experts.local_experts.3.linear_fc1.weight   numbered, Megatron-Core
//   layers.0.mlp.experts.3.up_proj.weight                    numbered, Hugging Face
//   layers.0.mlp.experts.linear_fc1.weight3                  grouped layers; also weight3_w, bias3
//   layers.0.mlp.experts.experts.linear_fc1.weight           stacked: all of them in one tensor

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

/// Returns the parts of a key between its dots.
std::vector<std::string_view> parts_of_key(std::string_view key);

/// Returns the number that a part is; nothing if it is anything else.
std::optional<std::int64_t> number_of_part(std::string_view part);

/// If a part of the key is `moment`, returns the key without it.
std::optional<std::string> without_part(std::string_view key, std::string_view moment);

/// True if a part of the key says that the tensor is of an optimizer's state: "optimizer" and the
/// like. Moments that are stored without such a part are not known by this.
bool is_of_optimizer(std::string_view key);

struct ExpertKey {
  std::string layer;                   ///< what stands before `experts`, with its dot
  std::optional<std::int64_t> number;  ///< of the expert; none if experts are stacked
  std::string series;                  ///< the key with `*` in place of the number
};

/// Returns nothing if the key is not an expert's.
std::optional<ExpertKey> parse_expert_key(std::string_view key);

}  // namespace reprise
