// Tests what is recognized by the names in a directory and by the first bytes of a file.

#include "core/format/foreign_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {
namespace {

using ::testing::HasSubstr;

struct DirectoryRow {
  const char* name;
  std::vector<std::string> paths;
  const char* format;  ///< part of the name; null if nothing may be recognized
  const char* sign = "";
  bool certain = true;
};

std::vector<DirectoryRow> directories() {
  return {
      {"HF with an index",
       {"config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json"},
       "Hugging Face",
       "model-00001-of-00002.safetensors"},
      {"HF, older", {"config.json", "pytorch_model.bin"}, "Hugging Face", "pytorch_model.bin"},
      {"HF checkpoints below",
       {"checkpoint-500/model.safetensors", "checkpoint-500/optimizer.pt"},
       "Hugging Face",
       "checkpoint-500/model.safetensors"},
      {"safetensors", {"weights.safetensors"}, "safetensors files", "weights.safetensors"},
      {"DeepSpeed",
       {"global_step100/mp_rank_00_model_states.pt",
        "global_step100/zero_pp_rank_0_mp_rank_00_optim_states.pt", "latest"},
       "DeepSpeed",
       "global_step100/mp_rank_00_model_states.pt"},
      {"DeepSpeed's inner directory",
       {"bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"},
       "DeepSpeed",
       "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"},
      {"DeepSpeed of a Trainer",
       {"global_step5/mp_rank_00_model_states.pt", "zero_to_fp32.py", "trainer_state.json"},
       "DeepSpeed",
       "zero_to_fp32.py"},
      {"Orbax",
       {"_CHECKPOINT_METADATA", "default/_METADATA", "default/manifest.ocdbt", "default/d/abc"},
       "Orbax",
       "_CHECKPOINT_METADATA"},
      {"Orbax's item", {"manifest.ocdbt", "ocdbt.process_0/d/x"}, "Orbax", "manifest.ocdbt"},
      {"Lightning", {"last.ckpt"}, "Lightning", "last.ckpt"},
      {"Megatron-LM, older",
       {"mp_rank_00/model_optim_rng.pt", "mp_rank_01/model_optim_rng.pt"},
       "Megatron-LM's older format",
       "mp_rank_00/model_optim_rng.pt"},
      {"Megatron-LM, older, without a tracker",
       {"iter_0000100/mp_rank_00_000/model_optim_rng.pt"},
       "Megatron-LM's older format",
       "iter_0000100/mp_rank_00_000/model_optim_rng.pt"},
      {"zarr", {"common.pt", "metadata.json", "w/.zarray", "w/0.0"}, "zarr", "w/.zarray"},
      {"torch.save", {"epoch_3.pt", "log.txt"}, "torch.save", "epoch_3.pt", false},
      {"parts of torch_dist are no files of torch.save",
       {"common.pt", "metadata.json", "__0_0.distcp"},
       nullptr},
      {"nothing", {}, nullptr},
      {"names that only look alike",
       {"model.safetensors.txt", "mp_rank_00/notes.txt", "ckpt", "x.ptx", "pytorch_model/bin",
        "mp_rank_/x/_model_states.pt.txt"},
       nullptr},
  };
}

TEST(ForeignFormat, directories_are_recognized_by_their_names) {
  for (const DirectoryRow& row : directories()) {
    SCOPED_TRACE(row.name);
    const auto found = foreign_format_of(row.paths);
    ASSERT_EQ(found.has_value(), row.format != nullptr);
    if (!found) continue;
    EXPECT_THAT(std::string(found->name), HasSubstr(row.format));
    EXPECT_EQ(found->sign, row.sign);
    EXPECT_EQ(found->certain, row.certain);
    EXPECT_FALSE(found->advice.empty());
    EXPECT_THAT(found->message(), HasSubstr(" (" + found->sign + ")"));
  }
}

TEST(ForeignFormat, files_are_recognized_by_their_first_bytes) {
  struct FileRow {
    const char* name;
    std::string first;
    const char* format;
  };
  const std::string zip = std::string("PK\3\4\0\0\x08\x08\0\0", 10) + "archive/data.pkl";
  const std::vector<FileRow> rows = {
      {"model.safetensors", std::string("\x40\0\0\0\0\0\0\0{\"a\":", 13), "safetensors"},
      {"renamed", std::string("\x40\0\0\0\0\0\0\0{\"a\":", 13), "safetensors"},
      {"last.ckpt", zip, "Lightning"},
      {"model.pt", zip, "torch.save"},
      {"old.pt", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20", "torch.save"},
      {"llama.gguf", std::string("GGUF\3\0", 6), "GGUF"},
      {"archive.zip", std::string("PK\3\4") + "photo.jpg", nullptr},
      {"text.safetensors", "hello, this is text", nullptr},
      {"empty.pt", "", nullptr},
      {"the least of safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10), "safetensors"},
      {"too short for an object", std::string("\2\0\0\0\0\0\0\0{", 9), nullptr},
  };
  for (const FileRow& row : rows) {
    const auto found = foreign_file_of(row.name, as_bytes(row.first));
    ASSERT_EQ(found.has_value(), row.format != nullptr) << row.name;
    if (found) {
      EXPECT_THAT(std::string(found->name), HasSubstr(row.format)) << row.name;
    }
  }
}

TEST(ForeignFormat, parts_of_a_checkpoint_have_names_of_their_own) {
  for (const char* name : {".metadata", "__3_0.distcp", "__2.metadata", "common.pt",
                           "metadata.json", "latest_checkpointed_iteration.txt"}) {
    EXPECT_TRUE(is_part_of_checkpoint(name)) << name;
  }
  for (const char* name : {"x.metadata", "model.pt", "distcp"}) {
    EXPECT_FALSE(is_part_of_checkpoint(name)) << name;
  }
}

}  // namespace
}  // namespace reprise
