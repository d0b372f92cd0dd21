#include "driver/ranks/recorded_fabric.hpp"

#include <sstream>

#include "core/base/hash.hpp"

namespace reprise::driver {
namespace {

std::string name_of_group(const Group& group) {
  std::ostringstream text;
  text << group;
  return text.str();
}

/// Records the calls of one communicator and counts them.
struct Calls {
  sim::Recorder& recorder;
  GlobalRank rank;
  std::string group;
  std::uint64_t channel = 0;
  std::uint64_t next = 0;

  /// Records one from here to the end of the result's life.
  sim::CollectivePart come(std::string_view operation, std::uint64_t bytes) {
    return {&recorder,
            rank,
            {operation, group, bytes, recorder.now_ns()},
            // Ranks that call something else at this place do not meet.
            sim::Meeting{Hasher().number(channel).text(operation).digest(), next++}};
  }
};

class RecordedCommunicator final : public Communicator {
 public:
  RecordedCommunicator(Calls calls, std::shared_ptr<Communicator> inner)
      : calls_(std::move(calls)), inner_(std::move(inner)) {}

  const Group& group() const override { return inner_->group(); }
  GroupRank rank() const override { return inner_->rank(); }

  void barrier() override {
    const auto part = calls_.come("barrier", 0);
    inner_->barrier();
  }
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    const auto part = calls_.come("all_gather", mine.size());
    return inner_->all_gather(mine);
  }
  const std::byte* all_gather_on_device(std::span<const std::uint64_t> sizes,
                                        ByteSpan mine) override {
    const auto part = calls_.come("all_gather_on_device", mine.size());
    return inner_->all_gather_on_device(sizes, mine);
  }
  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    const auto part = calls_.come("broadcast", rank() == root ? bytes.size() : 0);
    return inner_->broadcast(root, bytes);
  }
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    const auto part = calls_.come("all_reduce", mine.size_bytes());
    return inner_->all_reduce(how, mine);
  }
  void warn() override { inner_->warn(); }
  bool warned() override { return inner_->warned(); }

 private:
  Calls calls_;
  std::shared_ptr<Communicator> inner_;
};

}  // namespace

std::shared_ptr<Communicator> RecordedFabric::communicator(const Group& group) {
  Hasher channel;
  channel.text(name_).number(made_[group.members()]++);
  for (const auto member : group.members()) {
    channel.number(static_cast<std::uint64_t>(member.value));
  }
  Calls calls{recorder_, rank(), name_of_group(group), channel.digest()};
  std::shared_ptr<Communicator> inner;
  {
    const auto part = calls.come("communicator", 0);
    inner = inner_.communicator(group);
  }
  return std::make_shared<RecordedCommunicator>(std::move(calls), std::move(inner));
}

}  // namespace reprise::driver
