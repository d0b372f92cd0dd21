// Tests what `verify` and `reshard` say about checkpoints that are not damaged, but that can't be
// confirmed as whole.

#include <gtest/gtest.h>

#include <fstream>

#include "core/format/metadata.hpp"
#include "core/format/zip/archive_writer.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test {
namespace {

TEST(Judgement, a_checkpoint_that_names_nothing_is_empty_and_not_whole) {
  const contracts::TemporaryDirectory directory;
  const Bytes metadata = write_metadata({});
  std::ofstream(directory.path() + "/.metadata", std::ios::binary) << as_text(metadata);
  const auto result = run_program({"verify", directory.path()});
  EXPECT_EQ(result.exit_code, 3) << result.all();
  EXPECT_NE(result.out.find("empty: 0 tensors"), std::string::npos) << result.all();
}

TEST(Judgement, a_tensor_in_a_compressed_record_is_not_whole) {
  const Victim victim("torch_2.15.0/same_content_a");
  std::string payload = text_of(victim.file("__0_0.distcp"));
  // In the zip directory, the entry of "archive/data/0" has the compression method "stored" (2
  // bytes at offset 10). Changes the method to "deflated".
  const std::string name = "archive/data/0";
  for (auto at = payload.find(name); at != std::string::npos; at = payload.find(name, at + 1)) {
    if (at >= 46 && payload.compare(at - 46, 4, "PK\x01\x02") == 0) payload[at - 46 + 10] = 8;
  }
  victim.write("__0_0.distcp", payload);
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  EXPECT_NE(result.out.find("__0_0.distcp"), std::string::npos) << result.all();
}

TEST(Judgement, overlapping_chunks_are_named_with_file_and_offset) {
  const Victim victim("torch_2.15.0/same_content_a");
  victim.edit_metadata([](Metadata& metadata) {
    for (auto& tensor : metadata.catalog.tensors) {
      if (tensor.chunks.size() > 1) tensor.chunks[1].box = tensor.chunks[0].box;
    }
  });
  const auto result = run_program({"verify", victim.path()});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  const auto overlap = result.out.find("CHUNK_OVERLAP");
  ASSERT_NE(overlap, std::string::npos) << result.all();
  const std::string line = result.out.substr(overlap, result.out.find('\n', overlap) - overlap);
  EXPECT_NE(line.find(".distcp"), std::string::npos) << line;
  EXPECT_NE(line.find("offset"), std::string::npos) << line;
}

TEST(Judgement, reshard_hands_no_hostile_object_on_and_leaves_nothing_behind) {
  const Victim victim("mcore_0.16.1_gpt_dp2/iter_0000010");
  ArchiveWriter archive("common");
  archive.add("data.pkl", as_bytes(std::string_view("\x80\x02"
                                                    "cos\nsystem\nX\x02\0\0\0ls\x85R.",
                                                    23)));
  archive.add("version", as_bytes("3\n"));
  archive.finish();
  victim.write("common.pt", std::string(as_text(archive.take())));
  const contracts::TemporaryDirectory out;
  const auto result = run_program({"reshard", victim.path(), out.path() + "/copy"});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_NE(result.err.find("os.system"), std::string::npos) << result.all();
  EXPECT_TRUE(std::filesystem::is_empty(out.path()));
}

}  // namespace
}  // namespace reprise::test
