// The input is a safetensors file, or several files of one checkpoint with kNextFile between; a
// part that begins with '{' is their index.

#include <algorithm>
#include <optional>

#include "core/format/safetensors_tables.hpp"
#include "core/plan/cover.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

std::vector<ByteSpan> parts_of(ByteSpan input) {
  std::vector<ByteSpan> parts;
  const std::string_view text = as_text(input);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(kNextFile, begin), text.size());
    parts.push_back(input.subspan(begin, end - begin));
    begin = end + kNextFile.size();
  }
  return parts;
}

/// Without a finding, the tensors fill the file.
void check_filled(const SafetensorsHeader& header, std::uint64_t size) {
  std::uint64_t reached = header.data_begin;
  for (const SafetensorsEntry& entry : header.entries) {
    promise(entry.range.offset == reached, "a gap or an overlap without a finding");
    reached += entry.range.size;
  }
  promise(reached == size, "the tensors end elsewhere than the file");
}

std::optional<SafetensorsFile> read_file(ByteSpan bytes, const std::string& name) {
  const auto header = read_or_refuse(bytes.size(), [&] {
    const auto first = bytes.first(std::min<std::size_t>(bytes.size(), kSafetensorsLengthBytes));
    const auto length = safetensors_header_bytes(first, bytes.size(), input_place());
    ErrorPlace json = input_place();
    json.offset = kBegin + kSafetensorsLengthBytes;
    return read_safetensors_header(bytes.subspan(kSafetensorsLengthBytes, length), json);
  });
  if (!header) return std::nullopt;
  for (const SafetensorsEntry& entry : header->entries) {
    promise(
        static_cast<std::uint64_t>(volume(entry.shape)) * size_of(entry.dtype) == entry.range.size,
        "a tensor has other bytes than elements");
  }
  const Findings findings = check_safetensors_layout(*header, bytes.size(), input_place());
  for (const Finding& finding : findings) {
    promise(finding.offset && *finding.offset >= kBegin && finding.file == kFile,
            "a finding without its place");
  }
  if (findings.empty()) check_filled(*header, bytes.size());
  return SafetensorsFile{.name = name, .display = kFile, .size = bytes.size(), .header = header};
}

void check_tables(const SafetensorsSet& set) {
  const auto metadata = read_or_refuse(0, [&] { return tables_of(set); });
  if (!metadata) return;
  const auto& tensors = metadata->catalog.tensors;
  promise(std::ranges::adjacent_find(tensors, std::ranges::greater_equal(), &StoredTensor::key) ==
              tensors.end(),
          "keys that are not sorted or not unique");
  for (const StoredTensor& tensor : tensors) {
    std::vector<Box> boxes;
    for (const StoredChunk& chunk : tensor.chunks) {
      promise(chunk.form == ItemForm::kElements && chunk.file < set.files.size(), "no such file");
      promise(contains(Box::whole(tensor.shape), chunk.box), "a piece outside of its tensor");
      boxes.push_back(chunk.box);
    }
    prove_cover(tensor.shape, boxes);
  }
}

Acceptance run(ByteSpan input) {
  SafetensorsSet set;
  for (const ByteSpan part : parts_of(input)) {
    if (as_text(part).starts_with('{')) {
      set.index = read_or_refuse(0, [&] { return read_safetensors_index(part, kFile); });
      continue;
    }
    const std::string name = "model-0000" + std::to_string(set.files.size() + 1) + "-of-00002" +
                             std::string(kSafetensorsEnd);
    if (auto file = read_file(part, name)) set.files.push_back(std::move(*file));
  }
  if (set.files.empty()) return Acceptance::kRefused;
  check_tables(set);
  return Acceptance::kAccepted;
}

std::vector<Seed> seeds() {
  std::vector<Seed> files = files_below("tests/data", kSafetensorsEnd);
  const std::size_t count = files.size();
  const Bytes next = to_bytes(kNextFile);
  for (std::size_t i = 0; i + 1 < count; ++i) {
    Bytes both = files[i].bytes;
    append(both, next);
    append(both, files[i + 1].bytes);
    files.push_back({files[i].name + " and the next", std::move(both)});
  }
  for (Seed& index : files_below("tests/data", kSafetensorsIndexEnd)) {
    append(index.bytes, next);
    append(index.bytes, files.front().bytes);
    files.push_back(std::move(index));
  }
  return files;
}

const Target kTarget("safetensors", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
