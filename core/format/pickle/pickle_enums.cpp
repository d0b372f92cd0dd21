// Lists the members of the enums that are on the closed list of names, with the values that they
// have in torch 2.15 and megatron-core 0.16.

#include <algorithm>
#include <array>

#include "core/format/pickle/pickle_calls.hpp"
#include "core/format/pickle/pickle_names.hpp"

namespace reprise::pickle {
namespace {

struct Member {
  std::string_view module;
  std::string_view type;
  std::string_view member;
  EnumValue value;
};

constexpr std::string_view kMetadataModule = "torch.distributed.checkpoint.metadata";
constexpr std::string_view kShardedModule = "torch.distributed._shard.sharded_tensor.metadata";
constexpr std::string_view kPlannerModule = "torch.distributed.checkpoint.planner";
constexpr std::string_view kEnums = "megatron.core.enums";
constexpr std::string_view kLayers = "megatron.core.transformer.enums";
constexpr std::string_view kRerunModule = "megatron.core.rerun_state_machine";

constexpr EnumValue number(std::int64_t value) { return value; }
constexpr EnumValue word(std::string_view value) { return value; }

constexpr std::array kMembers{
    Member{kMetadataModule, "_MEM_FORMAT_ENCODING", "TORCH_CONTIGUOUS_FORMAT", number(0)},
    Member{kMetadataModule, "_MEM_FORMAT_ENCODING", "TORCH_CHANNELS_LAST", number(1)},
    Member{kMetadataModule, "_MEM_FORMAT_ENCODING", "TORCH_PRESERVE_FORMAT", number(2)},
    Member{kShardedModule, "MEM_FORMAT_ENCODING", "TORCH_CONTIGUOUS_FORMAT", number(0)},
    Member{kShardedModule, "MEM_FORMAT_ENCODING", "TORCH_CHANNELS_LAST", number(1)},
    Member{kShardedModule, "MEM_FORMAT_ENCODING", "TORCH_PRESERVE_FORMAT", number(2)},
    Member{kPlannerModule, "WriteItemType", "TENSOR", number(1)},
    Member{kPlannerModule, "WriteItemType", "SHARD", number(2)},
    Member{kPlannerModule, "WriteItemType", "BYTE_IO", number(3)},
    Member{kPlannerModule, "LoadItemType", "TENSOR", number(1)},
    Member{kPlannerModule, "LoadItemType", "BYTE_IO", number(2)},
    Member{kEnums, "ModelType", "encoder_or_decoder", number(1)},
    Member{kEnums, "ModelType", "encoder_and_decoder", number(2)},
    Member{kEnums, "ModelType", "retro_encoder", number(3)},
    Member{kEnums, "ModelType", "retro_decoder", number(4)},
    Member{kEnums, "Fp8Recipe", "delayed", word("delayed")},
    Member{kEnums, "Fp8Recipe", "tensorwise", word("tensorwise")},
    Member{kEnums, "Fp8Recipe", "mxfp8", word("mxfp8")},
    Member{kEnums, "Fp8Recipe", "blockwise", word("blockwise")},
    Member{kEnums, "Fp8Recipe", "custom", word("custom")},
    Member{kEnums, "Fp4Recipe", "nvfp4", word("nvfp4")},
    Member{kEnums, "Fp4Recipe", "custom", word("custom")},
    Member{kLayers, "LayerType", "embedding", number(1)},
    Member{kLayers, "LayerType", "loss", number(2)},
    Member{kLayers, "LayerType", "encoder", number(3)},
    Member{kLayers, "LayerType", "decoder", number(4)},
    Member{kLayers, "LayerType", "mtp", number(5)},
    Member{kLayers, "AttnType", "self_attn", number(1)},
    Member{kLayers, "AttnType", "cross_attn", number(2)},
    Member{kLayers, "AttnMaskType", "padding", number(1)},
    Member{kLayers, "AttnMaskType", "causal", number(2)},
    Member{kLayers, "AttnMaskType", "no_mask", number(3)},
    Member{kLayers, "AttnMaskType", "padding_causal", number(4)},
    Member{kLayers, "AttnMaskType", "arbitrary", number(5)},
    Member{kLayers, "AttnMaskType", "causal_bottom_right", number(6)},
    Member{kLayers, "AttnBackend", "flash", number(1)},
    Member{kLayers, "AttnBackend", "fused", number(2)},
    Member{kLayers, "AttnBackend", "unfused", number(3)},
    Member{kLayers, "AttnBackend", "local", number(4)},
    Member{kLayers, "AttnBackend", "auto", number(5)},
    Member{kRerunModule, "RerunState", "NOT_RUNNING_YET", number(0)},
    Member{kRerunModule, "RerunState", "INITIAL_RUN", number(1)},
    Member{kRerunModule, "RerunState", "RERUNNING_IN_PLACE", number(2)},
    Member{kRerunModule, "RerunState", "WILL_RERUN_FROM_CHECKPOINT", number(3)},
    Member{kRerunModule, "RerunState", "RERUNNING_FROM_CHECKPOINT", number(4)},
    Member{kRerunModule, "RerunState", "RERUNNING_AGAIN_FROM_CHECKPOINT", number(5)},
    Member{kRerunModule, "RerunMode", "DISABLED", word("disabled")},
    Member{kRerunModule, "RerunMode", "VALIDATE_RESULTS", word("validate_results")},
    Member{kRerunModule, "RerunMode", "REPORT_DETERMINISM_STATS", word("report_determinism_stats")},
    Member{kRerunModule, "RerunDiagnostic", "CORRECT_RESULT", word("correct_result")},
    Member{kRerunModule, "RerunDiagnostic", "TRANSIENT_ERROR", word("transient_error")},
    Member{kRerunModule, "RerunDiagnostic", "PERSISTENT_ERROR", word("persistent_error")},
    Member{kRerunModule, "RerunValidationStatus", "RERUN_DISABLED", word("rerun_disabled")},
    Member{kRerunModule, "RerunValidationStatus", "INITIAL_RUN", word("initial_run")},
    Member{kRerunModule, "RerunValidationStatus", "FIRST_RERUN_NOT_REPRODUCIBLE",
           word("first_rerun_not_reproducible")},
    Member{kRerunModule, "RerunValidationStatus", "FIRST_RERUN_REPRODUCIBLE",
           word("first_rerun_reproducible")},
    Member{kRerunModule, "RerunValidationStatus", "SECOND_RERUN_NOT_REPRODUCIBLE",
           word("second_rerun_not_reproducible")},
    Member{kRerunModule, "RerunValidationStatus", "SECOND_RERUN_REPRODUCIBLE",
           word("second_rerun_reproducible")},
};

}  // namespace

std::optional<EnumValue> enum_value(std::string_view module, std::string_view name,
                                    std::string_view member) {
  for (const Member& known : kMembers) {
    if (known.type == name && known.member == member && known.module == module) return known.value;
  }
  return std::nullopt;
}

Fit knows_member(const NameRule& rule, EnumValue value) {
  if (rule.module == "signal") {  // of Linux
    const auto* number = std::get_if<std::int64_t>(&value);
    constexpr std::int64_t kPlainMax = 31;
    constexpr std::array<std::int64_t, 2> kRealTime{34, 64};
    const bool known =
        number != nullptr && ((*number >= 1 && *number <= kPlainMax) ||
                              std::ranges::find(kRealTime, *number) != kRealTime.end());
    return known ? Fit::kFits : Fit::kRefused;
  }
  bool listed = false;
  for (const Member& known : kMembers) {
    if (known.type != rule.name || known.module != rule.module) continue;
    if (known.value == value) return Fit::kFits;
    listed = true;
  }
  if (!listed) return Fit::kFits;  // its members are not listed here
  return rule.module.starts_with("torch.") ? Fit::kRefused : Fit::kUnread;
}

}  // namespace reprise::pickle
