#include "tests/hostile/small_checkpoint.hpp"

#include <algorithm>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/common_state.hpp"
#include "core/format/zip/archive.hpp"
#include "core/save/save.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/contracts/thread_world.hpp"
#include "tests/fixtures/round_trip.hpp"

namespace reprise::test {
namespace {

using testing_job::mesh_of;
using testing_job::RankState;

/// Two numbers that are adjusted until the checkpoint has the required size: the number of elements
/// of a tensor of bytes, and the number of characters of a key.
struct Size {
  std::int64_t filler = 1;
  std::size_t characters = 0;
};

MemoryTree saved(Checksums checksums, const Size& size) {
  const Placement rows({{"tp", 0}});
  const Placement columns({{"tp", 1}});
  const std::vector<testing_job::TensorSpec> specs = {
      {"layers.0.weight", DType::kFloat32, {7, 5}, rows},
      {"layers.1.weight", DType::kBFloat16, {4, 6}, columns},
      {"step", DType::kInt64, {}, {}},
      {"filler" + std::string(size.characters, '_'), DType::kUInt8, {2, size.filler}, rows},
  };
  const contracts::TemporaryDirectory directory;
  const auto mesh = mesh_of({{"tp", 2}});
  contracts::run_ranks(2, directory.path(), [&](const Ports& ports) {
    RankState rank(specs, mesh, ports.fabric.rank());
    testing_job::fill(rank.state);
    const auto number = ports.fabric.rank().value;
    rank.state.objects = {{"rng", {2}, {number}, 0, Dict{{"tracker", Value(number * 1000)}}}};
    rank.state.common = Dict{{"iteration", 3}, {"args", Dict{{"lr", 0.25}, {"seed", 1234}}}};
    SaveOptions options;
    options.directory = kSmallCheckpoint;
    options.step = 3;
    options.checksums = checksums;
    Save::begin(ports, ports.fabric.communicator(Group::world(2)), rank.state, options).finish();
  });
  return MemoryTree::of_directory(directory.path());
}

void add(std::vector<Region>& regions, std::uint64_t end, const char* name) {
  const std::uint64_t begin = regions.empty() ? 0 : regions.back().end;
  if (end > begin) regions.push_back({end, name});
}

const char* name_of_content(const Record& record) {
  if (record.name.starts_with("data/")) return "elements";
  return record.name == "data.pkl" ? "data.pkl" : "small records";
}

/// Adds the regions of the archive that begins at `begin`.
void add_archive(ItemSource& item, std::uint64_t begin, std::vector<Region>& regions) {
  Archive archive(item);
  for (const Record& record : archive.records()) {
    constexpr std::uint64_t kFixedHeader = 30;
    const ByteRange content = archive.content_range(record);
    const std::uint64_t header =
        record.header_offset + kFixedHeader + archive.prefix().size() + 1 + record.name.size();
    add(regions, begin + header, "local headers");
    add(regions, begin + content.offset, "padding");
    add(regions, begin + content.offset + content.size, name_of_content(record));
    add(regions, begin + record.limit, "descriptors");
  }
  add(regions, begin + item.size(), "directory and end records");
}

}  // namespace

MemoryTree small_checkpoint(Checksums checksums) {
  // Reaches the required size in two ways. More filler elements lengthen the file in steps of the
  // alignment; each additional character of the key lengthens it by a few bytes.
  Size size;
  constexpr std::uint64_t kAlignment = 64;
  const auto missing = kSmallCheckpointBytes - saved(checksums, size).bytes();
  size.filler = static_cast<std::int64_t>((missing - 2 * kAlignment) / 2);
  for (int tries = 0; tries < 40; ++tries) {
    MemoryTree tree = saved(checksums, size);
    if (tree.bytes() == kSmallCheckpointBytes) return tree;
    if (tree.bytes() > kSmallCheckpointBytes) break;
    constexpr std::uint64_t kBytesPerCharacterMax = 4;
    size.characters +=
        std::max<std::uint64_t>(1, (kSmallCheckpointBytes - tree.bytes()) / kBytesPerCharacterMax);
  }
  throw Error(Code::kUsage, "no key makes the checkpoint 64 KiB long");
}

MemoryTree without_checksums(MemoryTree tree) {
  constexpr std::string_view kCentralHeader = "PK\x01\x02";
  constexpr std::size_t kChecksumAt = 16;
  for (auto& [file, content] : tree.files) {
    const std::string_view text = as_text(content);
    for (auto at = text.find(kCentralHeader); at != std::string_view::npos;
         at = text.find(kCentralHeader, at + 1)) {
      std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(at + kChecksumAt), 4, std::byte{0});
    }
  }
  return tree;
}

std::map<std::string, std::vector<Region>> regions_of(MemoryTree& tree, const std::string& path) {
  std::map<std::string, std::vector<Region>> all;
  Checkpoint checkpoint = Checkpoint::open(tree, path);
  // Maps the file and the offset of each item to its size.
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> items;
  const auto take = [&](FileIndex file, ByteRange range) {
    items[{checkpoint.path_of(file), range.offset}] = range.size;
  };
  for (const auto& tensor : checkpoint.catalog().tensors) {
    for (const auto& chunk : tensor.chunks) take(chunk.file, chunk.range);
  }
  for (const auto& object : checkpoint.catalog().objects) take(object.file, object.range);
  for (const auto& [file, content] : tree.files) {
    if (file.ends_with(kCommonFile)) items[{file, 0}] = content.size();
  }
  for (const auto& [place, bytes] : items) {
    SpanSource item(ByteSpan(tree.files.at(place.first)).subspan(place.second, bytes));
    add_archive(item, place.second, all[place.first]);
  }
  for (const auto& [file, content] : tree.files) add(all[file], content.size(), "all of it");
  return all;
}

}  // namespace reprise::test
