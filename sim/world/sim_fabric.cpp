#include "sim/world/sim_fabric.hpp"

#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/base/check.hpp"
#include "core/ports/reduced.hpp"

namespace reprise::sim {
namespace {

std::vector<std::int64_t> numbers_of(const Bytes& bytes) {
  std::vector<std::int64_t> numbers(bytes.size() / sizeof(std::int64_t));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// A copy from memory of the device that comes after the next call finds this there.
constexpr std::byte kOverwritten{0xC5};

class SimCommunicator final : public Communicator {
 public:
  SimCommunicator(RankContext& life, SimNetwork& network, std::shared_ptr<Channel> channel,
                  SimDevice* device)
      : life_(life), network_(network), channel_(std::move(channel)), device_(device) {}

  const Group& group() const override { return channel_->group; }
  GroupRank rank() const override { return *channel_->group.rank_of(life_.rank()); }

  void barrier() override { meet({.operation = "barrier"}, {}); }

  std::vector<Bytes> all_gather(ByteSpan mine) override {
    return meet({.operation = "all_gather"}, mine);
  }

  const std::byte* all_gather_on_device(std::uint64_t share, ByteSpan mine) override {
    if (device_ == nullptr) return nullptr;
    std::ranges::fill(on_device_, kOverwritten);
    device_->upload(mine.size());
    const auto parts = meet({.operation = "all_gather_on_device", .length = share}, mine);
    Bytes all;
    for (const auto& part : parts) {
      CHECK(part.size() <= share, part.size(), share);
      append(all, part);
      all.resize(all.size() + share - part.size(), kOverwritten);
    }
    on_device_ = device_->hold(std::move(all));
    return on_device_.data();
  }

  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    CHECK(root.value >= 0 && root.value < group().size(), root, group());
    auto parts = meet({.operation = "broadcast", .root = static_cast<std::uint64_t>(root.value)},
                      rank() == root ? bytes : ByteSpan{});
    return std::move(parts[static_cast<std::size_t>(root.value)]);
  }

  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    const auto parts = meet({.operation = "all_reduce",
                             .reduction = static_cast<std::uint64_t>(how),
                             .length = mine.size()},
                            std::as_bytes(mine));
    auto result = numbers_of(parts.front());
    for (std::size_t member = 1; member < parts.size(); ++member) {
      const auto part = numbers_of(parts[member]);
      for (std::size_t i = 0; i < part.size(); ++i) result[i] = reduced(how, result[i], part[i]);
    }
    return result;
  }

  void warn() override { channel_->warners.insert(rank()); }
  bool warned() override {
    return channel_->warners.size() > (channel_->warners.contains(rank()) ? 1U : 0U);
  }

 private:
  std::vector<Bytes> meet(const CollectiveCall& call, ByteSpan mine) {
    return network_.meet(life_, *channel_, call, mine);
  }

  RankContext& life_;
  SimNetwork& network_;
  std::shared_ptr<Channel> channel_;
  SimDevice* device_;
  MutableByteSpan on_device_;  ///< memory of the device that the latest call filled
};

}  // namespace

std::shared_ptr<Communicator> SimFabric::communicator(const Group& group) {
  if (!group.rank_of(life_.rank())) {
    std::ostringstream message;
    message << "rank " << life_.rank() << " asks for a communicator of group " << group
            << ", of which it is not a member";
    throw Error(Code::kUsage, message.str(), {.rank = life_.rank()});
  }
  auto channel = network_.channel(group, life_.rank());
  network_.meet(life_, *channel, {.operation = "communicator"}, {});
  return std::make_shared<SimCommunicator>(life_, network_, std::move(channel), device_);
}

}  // namespace reprise::sim
