// Tests that diff uses bounded memory: within 256 MiB it compares 2 GiB of tensors that the two
// checkpoints split differently.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "core/adapters/posix/posix_store.hpp"
#include "core/format/metadata.hpp"
#include "core/format/tensor_item.hpp"
#include "core/format/zip/crc32.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::diff_memory_test {
namespace {

constexpr std::int64_t kRows = 32768;
constexpr std::int64_t kColumns = 4096;
constexpr int kTensors = 4;  // float32 tensors of 512 MiB each
constexpr std::uint64_t kLimit = std::uint64_t{256} << 20U;

/// Fills part of a row. All rows are zeros except every 1024th, so that the file is sparse.
void fill_row(std::int64_t row, std::int64_t first_column, std::span<float> out) {
  for (std::size_t c = 0; c < out.size(); ++c) {
    out[c] =
        row % 1024 == 5 ? static_cast<float>(row * 7 + first_column) + static_cast<float>(c) : 0.0F;
  }
}

/// A checkpoint whose tensors are split into `parts` parts along dimension `dim`. Each part is one
/// item in one file.
class SparseCheckpoint {
 public:
  SparseCheckpoint(const std::filesystem::path& path, std::size_t dim, std::int64_t parts)
      : store_(path.string()), dim_(dim), parts_(parts) {
    std::filesystem::create_directories(path);
    for (int t = 0; t < kTensors; ++t) write_tensor("w" + std::to_string(t));
    const auto out = store_.create(".metadata");
    out->write_at(0, write_metadata(metadata_));
    out->close();
  }

 private:
  void write_tensor(const std::string& key) {
    StoredTensor tensor{.key = key, .dtype = DType::kFloat32, .shape = {kRows, kColumns}};
    for (std::int64_t p = 0; p < parts_; ++p) {
      Box box = Box::whole(tensor.shape);
      box.extent[dim_] = tensor.shape[dim_] / parts_;
      box.offset[dim_] = p * box.extent[dim_];
      tensor.chunks.push_back(write_item(key + "_" + std::to_string(p) + ".distcp", box));
    }
    metadata_.catalog.tensors.push_back(std::move(tensor));
  }

  StoredChunk write_item(const std::string& name, const Box& box) {
    const TensorItemLayout layout(DType::kFloat32, box.extent);
    const auto out = store_.create(name);
    out->write_at(0, layout.head());
    std::vector<float> row(static_cast<std::size_t>(box.extent[1]));
    Crc32 crc;
    std::uint64_t at = layout.data_offset();
    for (std::int64_t r = 0; r < box.extent[0]; ++r) {
      fill_row(box.offset[0] + r, box.offset[1], row);
      const auto bytes = std::as_bytes(std::span(row));
      crc.update(bytes);
      if (row.front() != 0) out->write_at(at, bytes);
      at += bytes.size();
    }
    out->write_at(at, layout.tail(crc.value()));
    out->close();
    metadata_.catalog.files.push_back(name);
    return {box, static_cast<FileIndex>(metadata_.catalog.files.size() - 1), {0, layout.length()}};
  }

  PosixStore store_;
  std::size_t dim_;
  std::int64_t parts_;
  Metadata metadata_;
};

TEST(DiffMemory, TwoGigabytesOfTensorsUnder256MiB) {
  if (!kAddressSpaceLimited) GTEST_SKIP() << "memory can't be limited under a sanitizer";
  const contracts::TemporaryDirectory directory;
  const std::filesystem::path root(directory.path());
  const SparseCheckpoint rows(root / "rows", 0, 2);
  const SparseCheckpoint columns(root / "columns", 1, 4);
  const auto result = run_program({"diff", (root / "rows").string(), (root / "columns").string()},
                                  {.seconds = 200, .address_space_bytes = kLimit});
  EXPECT_EQ(result.exit_code, 0) << result.all();
  EXPECT_NE(result.out.find("536,870,912 elements (2.00 GiB)"), std::string::npos) << result.out;
  EXPECT_LT(result.peak_rss_bytes, kLimit);
  std::cout << "peak resident: " << (result.peak_rss_bytes >> 10U) << " KiB\n";
}

}  // namespace
}  // namespace reprise::test::diff_memory_test
