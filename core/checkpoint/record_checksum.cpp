#include "core/checkpoint/record_checksum.hpp"

#include <algorithm>

#include "core/format/zip/archive.hpp"
#include "core/format/zip/crc32.hpp"

namespace reprise {

bool count_record(Checkpoint& checkpoint, const StoredTensor& tensor, const StoredChunk& chunk,
                  ChecksumTally& checksums) {
  constexpr std::uint64_t kStep = std::uint64_t{256} << 10U;
  const SharedRecord& record = *chunk.view->record;
  if (record.checked || record.range.size == 0) return false;
  const auto source = checkpoint.slice(tensor.key, chunk.file, record.range);
  Crc32 crc;
  Bytes block(static_cast<std::size_t>(std::min(record.range.size, kStep)));
  for (std::uint64_t at = 0; at < record.range.size; at += block.size()) {
    block.resize(static_cast<std::size_t>(std::min(record.range.size - at, kStep)));
    source->read_at(at, block);
    crc.update(block);
  }
  const bool matches = crc.value() == record.crc;
  checksums.add(checkpoint.display(chunk.file),
                {.name = record.name, .size = record.range.size, .crc = record.crc}, matches,
                [&] { return source->place_at(0); });
  if (matches) record.checked = true;
  return true;
}

bool is_whole_record(const StoredChunk& chunk) {
  const TensorItem item{.size = chunk.box.extent, .strides = chunk.view->strides};
  const ByteRange& record = chunk.view->record->range;
  return record.size != 0 && record == chunk.range && item.contiguous();
}

std::vector<FileIndex> files_without_small_records(const Checkpoint& checkpoint,
                                                   const ChecksumTally& checksums) {
  std::vector<FileIndex> files;
  if (checksums.mismatches() == 0 || !is_of_torch_save(checkpoint.metadata().form)) return files;
  for (FileIndex file = 0; file < checkpoint.catalog().files.size(); ++file) {
    if (checksums.has_elements_only(checkpoint.display(file))) files.push_back(file);
  }
  return files;
}

void count_small_records(Checkpoint& checkpoint, FileIndex file, ChecksumTally& checksums) {
  const auto whole = checkpoint.slice("", file, {0, checkpoint.file(file).size()});
  Archive archive(*whole, ArchiveOf::kFile);
  for (const Record& record : archive.records()) {
    if (record.size == 0 || record.name.starts_with("data/")) continue;
    checksums.add(checkpoint.display(file), record, archive.checksum_matches(record),
                  [&] { return whole->place_at(archive.content_range(record).offset); });
  }
}

}  // namespace reprise
