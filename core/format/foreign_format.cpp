#include "core/format/foreign_format.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tracker.hpp"

namespace reprise {
namespace {

constexpr std::string_view kBySavingAgain =
    "write it again with any later torch, which makes an archive that is read: "
    "torch.save(torch.load(FILE, map_location='cpu'), NEW)";
// A file of torch.save does not say if it is whole.
constexpr std::string_view kIfWhole =
    "name the file to read it; if FILE has the whole model, and not one rank's part of it, make "
    "one "
    "of it: reprise reshard FILE OUT";
// torch_checkpointing names its files ITEM_RANK.pt, and many scripts name them NAME_EPOCH.pt.
constexpr std::string_view kIfNotByRank =
    "name the file to read it; if the number in the name of FILE is a rank's, it is one rank's "
    "part: "
    "load all of them with the program that wrote them, as torch_checkpointing, and save with "
    "torch.distributed.checkpoint.save; if FILE has the whole model, make one of it: reprise "
    "reshard "
    "FILE OUT";
constexpr std::string_view kByItsJob =
    "each file is one rank's part, and torch_to_dcp would take a part for the whole: load them in "
    "a job on as many ranks, with the program that wrote them, and save with "
    "torch.distributed.checkpoint.save";
constexpr std::string_view kByMegatron =
    "make one of it with Megatron-LM: load it with --ckpt-convert-format torch_dist "
    "--ckpt-convert-save DIR";
constexpr std::string_view kByReshard = "make one of it: reprise reshard IN OUT";
constexpr std::string_view kOfAllPieces =
    "each file is one rank's part; make one of all in their directory: reprise reshard DIR OUT";
constexpr std::string_view kByUnpacking =
    "unpack it with tar: if it has a distributed checkpoint, that is a directory in it";

/// How much the names prove, and where they count.
enum class Proof : std::uint8_t {
  kAnywhere,  ///< certain, also beside names of another format that are nearer
  kNearest,   ///< certain; of several formats, the one nearest to the directory counts
  kWeak,      ///< other files have such names, too: counts only if nothing certain is there
};

struct Format {
  std::string_view name;
  std::string_view advice;
  /// Patterns of the last parts of a path, in which '*' stands for any text without '/', and '#'
  /// for a number.
  std::vector<std::string_view> signs;
  Proof proof = Proof::kNearest;
  /// If not empty, a sign counts only if a file of this pattern is in the same directory.
  std::string_view beside = {};
};

/// The formats. If the same files fit several of them, the first one counts.
const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {"a DeepSpeed universal checkpoint",
       "name the directory that has zero/ in it to read it, and make one of it: reprise reshard "
       "DIR OUT; zero_to_fp32.py can't read it",
       {"latest_universal", "zero/*/fp32.pt", "zero/*/exp_avg.pt"},
       Proof::kAnywhere},
      {"a checkpoint of verl, with a file for each rank",
       kOfAllPieces,
       {"model_world_size_#_rank_#.pt", "optim_world_size_#_rank_#.pt",
        "extra_state_world_size_#_rank_#.pt"},
       Proof::kAnywhere},
      {"a DeepSpeed checkpoint",
       "make one file of it with the zero_to_fp32.py in its directory, then a checkpoint of that "
       "file: python -m torch.distributed.checkpoint.format_utils torch_to_dcp FILE DIR",
       {"zero_to_fp32.py", "mp_rank_*_model_states.pt", "zero_pp_rank_*_states.pt",
        "*_zero_pp_rank_*_states.pt", "layer_*-model_states.pt"}},
      {"a checkpoint of Megatron-LM's older format, with a file for each model-parallel rank",
       kByMegatron,
       {"mp_rank_*/model_optim_rng.pt", "mp_rank_*/model_rng.pt", "mp_rank_*/distrib_optim.pt"}},
      {"a checkpoint of torch_checkpointing, with a file for each item and rank",
       kOfAllPieces,
       {"metadata.pkl"},
       Proof::kNearest,
       "*_#.pt"},
      {"a local checkpoint of NVRx, with one file per rank", kByItsJob, {"iter_#_#_local.pt"}},
      {"an Orbax checkpoint",
       "restore it with Orbax, and save the arrays as torch tensors with "
       "torch.distributed.checkpoint.save",
       {"_CHECKPOINT_METADATA", "manifest.ocdbt", "ocdbt.process_*/*"}},
      {"zarr arrays, as Megatron-Core saved them before torch_dist", kByMegatron, {".zarray"}},
      {"safetensors files with pieces of tensors, as torch writes them (HuggingFaceStorageWriter)",
       kOfAllPieces,
       {"shard-#-model-#-of-#.safetensors"}},
      {"an adapter of a Hugging Face model, without the model",
       "load the model with it (peft.PeftModel.from_pretrained), merge it (merge_and_unload), and "
       "save the state_dict() with torch.distributed.checkpoint.save",
       {"adapter_model.safetensors", "adapter_model.bin", "adapter_config.json"}},
      {"a Hugging Face checkpoint",
       kByReshard,
       {"model.safetensors.index.json", "model.safetensors", "model-*-of-*.safetensors"}},
      {"safetensors files", kByReshard, {"*.safetensors"}},
      {"a Hugging Face checkpoint",
       kByReshard,
       {"pytorch_model.bin.index.json", "pytorch_model.bin", "pytorch_model-*-of-*.bin"}},
      {"an archive of NeMo", kByUnpacking, {"*.nemo"}},
      {"the context of a NeMo checkpoint, without its weights",
       "the weights should be in a directory 'weights' beside 'context', but they are not there",
       {"context/io.json", "context/model.yaml", "io.json"}},
      {"checkpoint files of Lightning", kIfWhole, {"*.ckpt"}},
      {"files of single ranks",
       kByItsJob,
       {"*rank#.pt", "*rank#.pth", "*rank_#.pt", "*rank_#.pth", "*rank-#.pt", "*_local.pt"},
       Proof::kWeak},
      {"files of torch.save with numbers, as torch_checkpointing writes for each item and rank",
       kIfNotByRank,
       {"*_#.pt"},
       Proof::kWeak},
      {"files of torch.save", kIfWhole, {"*.pt", "*.pth"}, Proof::kWeak},
  };
  return kFormats;
}

/// True if the text fits the pattern, in which '*' stands for any text without '/', and '#' for one
/// or more digits.
bool fits(std::string_view text, std::string_view pattern) {
  const auto sign = pattern.find_first_of("*#");
  if (sign == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, sign))) return false;
  const bool number = pattern[sign] == '#';
  const std::string_view rest = pattern.substr(sign + 1);
  for (std::size_t at = sign;; ++at) {
    if ((!number || at > sign) && fits(text.substr(at), rest)) return true;
    if (at == text.size() || text[at] == '/') return false;
    if (number && (text[at] < '0' || text[at] > '9')) return false;
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

std::string_view directory_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// True if the path is a sign of the format, and has the file beside it that the format wants.
bool is_sign_among(const Format& format, std::string_view path,
                   std::span<const std::string> paths) {
  if (!shows(format, path)) return false;
  return format.beside.empty() || std::ranges::any_of(paths, [&](std::string_view other) {
           return directory_of(other) == directory_of(path) &&
                  fits(last_parts(other, format.beside), format.beside);
         });
}

bool begins_with(ByteSpan bytes, std::string_view what) {
  return bytes.size() >= what.size() && std::memcmp(bytes.data(), what.data(), what.size()) == 0;
}

bool has_text(ByteSpan bytes, std::string_view what) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.find(what) != std::string_view::npos;
}

}  // namespace

std::string ForeignFormat::message() const {
  return std::string(name) + (sign.empty() ? "" : " (" + sign + ")") +
         ", and not a torch_dist checkpoint, which has a .metadata; " + std::string(advice);
}

std::optional<ForeignFormat> foreign_format_of(std::span<const std::string> paths) {
  std::vector<std::string_view> nearest_first(paths.begin(), paths.end());
  const auto depth = [](std::string_view path) { return std::ranges::count(path, '/'); };
  std::ranges::stable_sort(nearest_first, {}, depth);
  for (const Proof proof : {Proof::kAnywhere, Proof::kNearest, Proof::kWeak}) {
    for (auto first = nearest_first.begin(); first != nearest_first.end();) {
      const auto last = std::find_if(first, nearest_first.end(), [&](std::string_view path) {
        return depth(path) != depth(*first);
      });
      for (const Format& format : formats()) {
        if (format.proof != proof) continue;
        const auto sign = std::find_if(
            first, last, [&](std::string_view path) { return is_sign_among(format, path, paths); });
        if (sign == last) continue;
        return ForeignFormat{format.name, format.advice, std::string(*sign), proof != Proof::kWeak};
      }
      first = last;
    }
  }
  return std::nullopt;
}

std::optional<ForeignFormat> foreign_file_of(std::string_view name, ByteSpan first,
                                             std::span<const std::string> beside) {
  const auto named = [name](std::string_view part) {
    return std::ranges::any_of(formats(), [&](const Format& format) {
      return format.name.find(part) != std::string_view::npos && shows(format, name);
    });
  };
  if (is_safetensors_file(first)) {
    if (named("pieces of tensors")) {
      return ForeignFormat{"a safetensors file with pieces of tensors", kOfAllPieces, {}};
    }
    if (named("adapter")) {
      return ForeignFormat{"an adapter's safetensors file, without its model",
                           "load the model with it (peft.PeftModel.from_pretrained), merge it "
                           "(merge_and_unload), and save the state_dict() with "
                           "torch.distributed.checkpoint.save",
                           {}};
    }
    return ForeignFormat{"a safetensors file", kByReshard, {}};
  }
  if (fits(name, "*.nemo")) return ForeignFormat{"an archive of NeMo", kByUnpacking, {}};
  const bool archive = begins_with(first, "PK\x03\x04") && has_text(first, "data.pkl");
  // Files of torch before 1.6 begin with a pickled number.
  const bool legacy = begins_with(first, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46");
  if (archive || legacy) {
    for (const Format& format : formats()) {
      const bool of_ranks = format.advice.starts_with("each file is one rank's part");
      const bool named_beside =
          !format.beside.empty() && fits(name, format.beside) &&
          std::ranges::any_of(beside, [&](const auto& other) { return shows(format, other); });
      if (of_ranks && (named_beside || shows(format, name))) {
        return ForeignFormat{"one rank's part of a checkpoint", format.advice, {}};
      }
    }
    if (legacy) {
      return ForeignFormat{
          "a file of torch.save before torch 1.6, which is no archive", kBySavingAgain, {}};
    }
    if (name.ends_with(".ckpt")) {
      return ForeignFormat{"a checkpoint file of Lightning", kIfWhole, {}, true, true};
    }
    return ForeignFormat{
        "a file of torch.save", fits(name, "*_#.pt") ? kIfNotByRank : kIfWhole, {}, true, true};
  }
  if (begins_with(first, "GGUF")) {
    return ForeignFormat{
        "a GGUF file", "convert the model that it was made of; it can't be made back into one", {}};
  }
  return std::nullopt;
}

/// It begins with the length of a JSON object, as 8 bytes, then the object.
bool is_safetensors_file(ByteSpan first) {
  return first.size() > 9 && first[8] == std::byte{'{'} && first[7] == std::byte{0} &&
         first[6] == std::byte{0};
}

bool is_part_of_checkpoint(std::string_view name) {
  return name == kMetadataFile || rank_of_metadata(name) || name.ends_with(".distcp") ||
         name == kCommonFile || name == kBackendFile || name == kTrackerFile;
}

}  // namespace reprise
