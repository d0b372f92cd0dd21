#include "sim/faults/faulty_fabric.hpp"

#include <optional>
#include <utility>

namespace reprise::sim {
namespace {

/// Applies a delay, loss or failure before the call is made.
void come_to(FaultSeat& seat, std::string_view operation) {
  const PortCall call{CallKind::kCollective, operation, {}};
  const FaultSpec* fault = seat.strikes(call);
  if (fault == nullptr) return;
  if (fault->kind == FaultKind::kFails) seat.fail(Code::kPeerFailed, call);
  seat.sleep(fault->delay_ns);
  if (fault->kind == FaultKind::kLost) seat.die();
}

class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(FaultSeat& seat, std::shared_ptr<Communicator> inner)
      : seat_(seat), inner_(std::move(inner)) {}

  const Group& group() const override { return inner_->group(); }
  GroupRank rank() const override { return inner_->rank(); }

  void barrier() override {
    come("barrier");
    inner_->barrier();
  }
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    come("all_gather");
    return inner_->all_gather(mine);
  }
  const std::byte* all_gather_on_device(std::span<const std::uint64_t> sizes,
                                        ByteSpan mine) override {
    come("all_gather_on_device");
    return inner_->all_gather_on_device(sizes, mine);
  }
  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    come("broadcast");
    return inner_->broadcast(root, bytes);
  }
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    come("all_reduce");
    return inner_->all_reduce(how, mine);
  }
  void warn() override { inner_->warn(); }
  bool warned() override { return inner_->warned(); }

 private:
  /// Applies the faults of a call. Once a communicator has failed, every further call throws the
  /// same error, as on every lane.
  void come(std::string_view operation) {
    if (broken_) throw *broken_;
    try {
      come_to(seat_, operation);
    } catch (const Error& error) {
      broken_ = error;
      throw;
    }
  }

  FaultSeat& seat_;
  std::shared_ptr<Communicator> inner_;
  std::optional<Error> broken_;
};

}  // namespace

std::shared_ptr<Communicator> FaultyFabric::communicator(const Group& group) {
  come_to(seat_, "communicator");
  return std::make_shared<FaultyCommunicator>(seat_, inner_.communicator(group));
}

}  // namespace reprise::sim
