#include "driver/ranks/recorded_fabric.hpp"

#include <sstream>

#include "core/base/hash.hpp"
#include "core/ports/observed_ports.hpp"

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

class RecordedCommunicator final : public ObservedCommunicator {
 public:
  RecordedCommunicator(Calls calls, std::shared_ptr<Communicator> inner)
      : ObservedCommunicator(std::move(inner)), calls_(std::move(calls)) {}

 private:
  void around(const Call& call, const Rest& rest) override {
    const auto part = calls_.come(call.operation, call.bytes);
    rest();
  }

  Calls calls_;
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
