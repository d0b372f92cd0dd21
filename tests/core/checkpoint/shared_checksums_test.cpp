// Tests that what is told of a checkpoint that several threads read does not depend on which of
// them came first.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/checkpoint/piece_reader.hpp"
#include "core/checkpoint/tensor_survey.hpp"
#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/ports/no_progress.hpp"
#include "tests/contracts/error_of.hpp"
#include "tests/fixtures/stored_fixture.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

void overwrite(const std::filesystem::path& path, std::uint64_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file << bytes;
}

/// Each tensor has an item without elements that can't be read. Whoever completes a tensor opens
/// it.
TEST(SharedChecksums, the_failure_of_the_first_tensor_is_thrown) {
  test::WrittenCheckpoint written;
  for (const char* key : {"t0", "t1"}) {
    written.chunks(key, DType::kUInt8, {4},
                   {{Box{{0}, {4}}, Bytes(4, std::byte{1})}, {Box{{1}, {0}}, {}}});
  }
  PosixStore& store = written.store();
  Checkpoint checkpoint = Checkpoint::open(store, "ckpt");
  for (const StoredTensor& tensor : checkpoint.catalog().tensors) {
    const ByteRange range = tensor.chunks[1].range;
    overwrite(written.path() + "/ckpt/__0_0.distcp", range.offset, std::string(range.size, 'x'));
  }
  HostDevice device("test", 0);
  for (const std::vector<std::uint32_t>& order : {std::vector<std::uint32_t>{0, 1}, {1, 0}}) {
    SharedChecksums checksums(checkpoint, device);
    for (const std::uint32_t tensor : order) {
      PieceReader reader(checkpoint, device);
      reader.count_in(checksums);
      const PieceOf piece{tensor, contiguous_piece(Box{{0}, {4}})};
      Bytes elements(4);
      reader.read(std::span(&piece, 1), elements.data());
      reader.hand_over();
    }
    const auto error = contracts::error_of([&] { checksums.judge(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->place().key, "t0");
  }
}

/// A file of torch.save in which one record has a checksum, and the others that are damaged have
/// none: what excuses them shows only in the whole file.
TEST(Survey, damage_that_shows_only_in_the_whole_file_is_a_finding) {
  test::FixtureCopy copy("torch_save_2.15.0");
  const auto path = copy.path("ckpt/without_checksums.pt");
  {
    WholeFile file(copy.store, "ckpt/without_checksums.pt");
    Archive archive(file, ArchiveOf::kFile);
    std::vector<Record> elements;
    for (const Record& record : archive.records()) {
      if (record.name.starts_with("data/") && record.size != 0) elements.push_back(record);
    }
    ASSERT_GT(elements.size(), 1U);
    const Record& last = elements.back();
    Crc32 crc;
    crc.update(read_range(file, archive.content_range(last)));
    const std::uint32_t value = crc.value();
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    overwrite(path, last.entry_offset + 16, bytes);
    overwrite(path, last.header_offset + 14, bytes);
  }
  std::string first;
  for (const int threads : {1, 2, 7}) {
    Checkpoint checkpoint = Checkpoint::open_any(copy.store, "ckpt/without_checksums.pt");
    HostDevice device("test", 0);
    ThreadTasks tasks(threads);
    NoProgress progress;
    std::vector<SurveyItem> items;
    for (const StoredTensor& tensor : checkpoint.catalog().tensors) add_chunks(tensor, items);
    const Findings found = survey(checkpoint, items, {device, tasks, progress},
                                  [](std::size_t) { return [](const Box&, ByteSpan) {}; });
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().code, Code::kChecksum);
    EXPECT_EQ(found.front().severity, Severity::kError);
    std::string told;
    for (const Finding& one : found) told += one.key + " " + one.message + "\n";
    if (first.empty()) first = told;
    EXPECT_EQ(told, first) << threads;
  }
}

}  // namespace
}  // namespace reprise
