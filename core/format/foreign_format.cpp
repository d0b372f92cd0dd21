#include "core/format/foreign_format.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tracker.hpp"

namespace reprise {
namespace {

constexpr std::string_view kByTorch =
    "make one of it: python -m torch.distributed.checkpoint.format_utils torch_to_dcp FILE DIR";
constexpr std::string_view kByMegatron =
    "make one of it with Megatron-LM: load it with --ckpt-convert-format torch_dist "
    "--ckpt-convert-save DIR";

struct Format {
  std::string_view name;
  std::string_view advice;
  /// Patterns of the last parts of a path, in which '*' stands for any text without '/'.
  std::vector<std::string_view> signs;
  bool certain = true;
};

/// The formats. If the same files fit several of them, the first one counts.
const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {"a DeepSpeed checkpoint",
       "make one file of it with the zero_to_fp32.py in its directory, then a checkpoint of that "
       "file: python -m torch.distributed.checkpoint.format_utils torch_to_dcp FILE DIR",
       {"zero_to_fp32.py", "mp_rank_*_model_states.pt", "zero_pp_rank_*_states.pt",
        "*_zero_pp_rank_*_states.pt", "layer_*-model_states.pt"}},
      {"a checkpoint of Megatron-LM's older format, with a file for each model-parallel rank",
       kByMegatron,
       {"mp_rank_*/model_optim_rng.pt", "mp_rank_*/model_rng.pt", "mp_rank_*/distrib_optim.pt"}},
      {"an Orbax checkpoint",
       "restore it with Orbax, and save the arrays as torch tensors with "
       "torch.distributed.checkpoint.save",
       {"_CHECKPOINT_METADATA", "manifest.ocdbt", "ocdbt.process_*/*"}},
      {"zarr arrays, as Megatron-Core saved them before torch_dist", kByMegatron, {".zarray"}},
      {"a Hugging Face checkpoint",
       "load it with from_pretrained, and save its state_dict() with "
       "torch.distributed.checkpoint.save",
       {"model.safetensors.index.json", "model.safetensors", "model-*-of-*.safetensors",
        "adapter_model.safetensors", "pytorch_model.bin.index.json", "pytorch_model.bin",
        "pytorch_model-*-of-*.bin"}},
      {"safetensors files",
       "load them with safetensors.torch.load_file, and save the tensors with "
       "torch.distributed.checkpoint.save",
       {"*.safetensors"}},
      {"checkpoint files of Lightning", kByTorch, {"*.ckpt"}},
      {"files of torch.save", kByTorch, {"*.pt", "*.pth"}, false},
  };
  return kFormats;
}

/// True if the text fits the pattern, in which '*' stands for any text without '/'.
bool fits(std::string_view text, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t at = star;; ++at) {
    if (fits(text.substr(at), pattern.substr(star + 1))) return true;
    if (at == text.size() || text[at] == '/') return false;
  }
}

/// Returns as many of the path's last parts as the pattern has; empty if the path has fewer.
std::string_view last_parts(std::string_view path, std::string_view pattern) {
  auto parts = std::ranges::count(pattern, '/') + 1;
  std::size_t begin = path.size();
  while (parts-- > 0) {
    if (begin == 0) return {};
    const auto slash = path.rfind('/', begin - 1);
    if (slash == std::string_view::npos) return parts == 0 ? path : std::string_view();
    if (parts == 0) return path.substr(slash + 1);
    begin = slash;
  }
  return {};
}

bool shows(const Format& format, std::string_view path) {
  if (is_part_of_checkpoint(path.substr(path.rfind('/') + 1))) return false;
  return std::ranges::any_of(
      format.signs, [path](std::string_view sign) { return fits(last_parts(path, sign), sign); });
}

bool begins_with(ByteSpan bytes, std::string_view what) {
  return bytes.size() >= what.size() && std::memcmp(bytes.data(), what.data(), what.size()) == 0;
}

/// A safetensors file begins with the length of a JSON object, as 8 bytes, then the object.
bool is_safetensors(ByteSpan first) {
  return first.size() > 9 && first[8] == std::byte{'{'} && first[7] == std::byte{0} &&
         first[6] == std::byte{0};
}

bool has_text(ByteSpan bytes, std::string_view what) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.find(what) != std::string_view::npos;
}

}  // namespace

std::string ForeignFormat::message() const {
  return std::string(name) + (sign.empty() ? "" : " (" + sign + ")") +
         ", and only torch_dist checkpoints are read, which have a .metadata; " +
         std::string(advice);
}

std::optional<ForeignFormat> foreign_format_of(std::span<const std::string> paths) {
  std::vector<std::string_view> nearest_first(paths.begin(), paths.end());
  const auto depth = [](std::string_view path) { return std::ranges::count(path, '/'); };
  std::ranges::stable_sort(nearest_first, {}, depth);
  for (auto first = nearest_first.begin(); first != nearest_first.end();) {
    const auto last = std::find_if(first, nearest_first.end(), [&](std::string_view path) {
      return depth(path) != depth(*first);
    });
    for (const Format& format : formats()) {
      const auto sign = std::find_if(
          first, last, [&format](std::string_view path) { return shows(format, path); });
      if (sign == last) continue;
      return ForeignFormat{format.name, format.advice, std::string(*sign), format.certain};
    }
    first = last;
  }
  return std::nullopt;
}

std::optional<ForeignFormat> foreign_file_of(std::string_view name, ByteSpan first) {
  if (is_safetensors(first)) {
    return ForeignFormat{"a safetensors file",
                         "load it with safetensors.torch.load_file, and save the tensors with "
                         "torch.distributed.checkpoint.save",
                         {}};
  }
  const bool archive = begins_with(first, "PK\x03\x04") && has_text(first, "data.pkl");
  // Files of torch before 1.6 begin with a pickled number.
  const bool legacy = begins_with(first, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46");
  if (archive || legacy) {
    return ForeignFormat{
        name.ends_with(".ckpt") ? "a checkpoint file of Lightning" : "a file of torch.save",
        kByTorch,
        {}};
  }
  if (begins_with(first, "GGUF")) {
    return ForeignFormat{
        "a GGUF file", "convert the model that it was made of; it can't be made back into one", {}};
  }
  return std::nullopt;
}

bool is_part_of_checkpoint(std::string_view name) {
  return name == kMetadataFile || rank_of_metadata(name) || name.ends_with(".distcp") ||
         name == kCommonFile || name == kBackendFile || name == kTrackerFile;
}

}  // namespace reprise
