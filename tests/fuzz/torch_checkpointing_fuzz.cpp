// The input is a metadata.pkl of torch_checkpointing.

#include <algorithm>

#include "core/format/torch_checkpointing.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

Acceptance run(ByteSpan input) {
  const PickleSource where{.file = kFile, .offset = kBegin};
  const auto read =
      read_or_refuse(input.size(), [&] { return read_torch_checkpointing(input, where); });
  if (!read) return Acceptance::kRefused;
  promise(read->world_size > 0, "no ranks");
  constexpr std::int32_t kRanksTried = 8;
  for (const auto& named : read->items) {
    const auto& key = named.first;
    const auto& item = named.second;
    for (const auto& [rank, path] : item.files) {
      promise(rank >= 0 && rank < read->world_size, "a file of no rank");
    }
    for (const auto& tensor : item.tensors) {
      const std::string& name = tensor.first;
      for (std::int32_t rank = 0; rank < std::min(read->world_size, kRanksTried); ++rank) {
        const auto shards = read_or_refuse(0, [&]() -> std::vector<LocalShard> {
          try {
            return read->shards_of(key, name, rank);
          } catch (const Error& error) {
            throw error.within({.file = kFile});
          }
        });
        if (!shards) continue;
        for (const LocalShard& shard : *shards) {
          promise(
              contains(Box::whole(shard.place.shape), shard.place.box) || shard.place.box.empty(),
              "a part outside of its tensor");
        }
      }
    }
  }
  return Acceptance::kAccepted;
}

/// Few checkpoints have such a file. Copies that name other devices are as good as others.
std::vector<Seed> seeds() {
  const std::vector<Seed> real = files_below("tests/data", "metadata.pkl");
  std::vector<Seed> all = real;
  for (const std::string_view device : {"gpu", "xpu", "npu"}) {
    for (Seed seed : real) {
      const auto at = as_text(seed.bytes).find("cpu");
      if (at == std::string_view::npos) continue;
      std::ranges::copy(as_bytes(device), seed.bytes.begin() + static_cast<std::ptrdiff_t>(at));
      seed.name += " on " + std::string(device);
      all.push_back(std::move(seed));
    }
  }
  return all;
}

const Target kTarget("torch_checkpointing", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
