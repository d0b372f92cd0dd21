// Tests what is recognized by the names in a directory and by the first bytes of a file.

#include "core/format/foreign_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "core/base/bytes.hpp"

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
      {"verl",
       {"latest_checkpointed_iteration.txt", "global_step_10/data.pt",
        "global_step_10/actor/model_world_size_4_rank_0.pt"},
       "verl",
       "global_step_10/actor/model_world_size_4_rank_0.pt"},
      {"verl's actor",
       {"extra_state_world_size_4_rank_1.pt", "huggingface/config.json", "fsdp_config.json"},
       "verl",
       "extra_state_world_size_4_rank_1.pt"},
      {"torch_checkpointing",
       {"metadata.pkl", "model_0.pt", "model_1.pt", "optimizer_0.pt"},
       "torch_checkpointing",
       "metadata.pkl"},
      {"torch_checkpointing, its root",
       {"step_10/metadata.pkl", "step_10/model_0.pt", "step_20/metadata.pkl", "notes.txt"},
       "torch_checkpointing",
       "step_10/metadata.pkl"},
      {"torch_checkpointing, without a resharder",
       {"model_0.pt", "step_0.pt"},
       "as torch_checkpointing writes",
       "model_0.pt",
       false},
      {"metadata.pkl of something else",
       {"metadata.pkl", "epoch_3/model_0.pt"},
       "files of torch.save",
       "epoch_3/model_0.pt",
       false},
      {"NVRx", {"iter_0000010_3_local.pt"}, "NVRx", "iter_0000010_3_local.pt"},
      {"FSDP", {"shard_rank0.pth", "shard_rank1.pth"}, "single ranks", "shard_rank0.pth", false},
      {"DeepSpeed universal",
       {"global_step10_universal/mp_rank_00_model_states.pt",
        "global_step10_universal/zero/w/fp32.pt", "latest_universal", "zero_to_fp32.py"},
       "DeepSpeed universal",
       "latest_universal"},
      {"DeepSpeed universal, its step",
       {"mp_rank_00_model_states.pt", "zero/w.weight/exp_avg.pt"},
       "DeepSpeed universal",
       "zero/w.weight/exp_avg.pt"},
      {"torch's sharded safetensors",
       {"shard-00001-model-00001-of-00001.safetensors"},
       "pieces of tensors",
       "shard-00001-model-00001-of-00001.safetensors"},
      {"an adapter",
       {"README.md", "adapter_model.safetensors"},
       "adapter",
       "adapter_model.safetensors"},
      {"NeMo's archive", {"llama.nemo"}, "archive of NeMo", "llama.nemo"},
      {"NeMo's context alone",
       {"context/io.json", "context/model.yaml"},
       "context",
       "context/io.json"},
      {"a model whose name has 'rank'",
       {"reranker.pt"},
       "files of torch.save",
       "reranker.pt",
       false},
      {"names that are certain count before others that are nearer",
       {"notes.pt", "hf/model.safetensors"},
       "Hugging Face",
       "hf/model.safetensors"},
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

TEST(ForeignFormat, no_advice_makes_a_checkpoint_of_a_part) {
  const std::string zip = std::string("PK\3\4\0\0\x08\x08\0\0", 10) + "archive/data.pkl";
  for (const std::string name :
       {"model_world_size_4_rank_0.pt", "optim_world_size_8_rank_7.pt",
        "extra_state_world_size_4_rank_0.pt", "iter_0000010_0_local.pt", "shard_rank0.pth",
        "rank_3.pt", "checkpoint_rank-2.pt", "model_rank12.pth"}) {
    for (const auto& found : {foreign_file_of(name, as_bytes(zip)),
                              foreign_format_of(std::vector<std::string>{"x/" + name})}) {
      ASSERT_TRUE(found) << name;
      EXPECT_THAT(found->message(), HasSubstr("one rank's part")) << name;
      EXPECT_THAT(found->message(), Not(HasSubstr("format_utils"))) << name;
    }
  }
  EXPECT_THAT(foreign_file_of("model_world_size_4_rank_0.pt", as_bytes(zip))->message(),
              HasSubstr("reprise reshard DIR OUT"));
  EXPECT_THAT(foreign_file_of("model_0.pt", as_bytes(zip))->message(),
              AllOf(HasSubstr("if the number in the name of FILE is a rank's"),
                    HasSubstr("torch_checkpointing"), HasSubstr("if FILE has the whole model")));
  EXPECT_THAT(foreign_file_of("model.pt", as_bytes(zip))->message(),
              AllOf(HasSubstr("if FILE has the whole model"), Not(HasSubstr("number"))));
  const std::vector<std::string> beside = {"metadata.pkl", "model_0.pt"};
  EXPECT_THAT(foreign_file_of("model_0.pt", as_bytes(zip), beside)->message(),
              AllOf(HasSubstr("one rank's part"), HasSubstr("reprise reshard DIR OUT"),
                    Not(HasSubstr("format_utils"))));
  EXPECT_THAT(foreign_file_of("epoch.pt", as_bytes(zip), beside)->message(),
              HasSubstr("if FILE has the whole model"));
  const std::string safetensors("\x40\0\0\0\0\0\0\0{\"a\":", 13);
  EXPECT_THAT(foreign_file_of("shard-00001-model-00001-of-00002.safetensors", as_bytes(safetensors))
                  ->message(),
              HasSubstr("reprise reshard DIR OUT"));
  EXPECT_THAT(foreign_file_of("adapter_model.safetensors", as_bytes(safetensors))->message(),
              HasSubstr("peft"));
  EXPECT_THAT(foreign_file_of("x.nemo", as_bytes("model_config.yaml"))->message(),
              HasSubstr("archive of NeMo"));
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
