#include "core/adapters/local/solo_fabric.hpp"

#include <sstream>

#include "reprise/error.hpp"

namespace reprise {
namespace {

class SoloCommunicator final : public Communicator {
 public:
  const Group& group() const override { return group_; }
  GroupRank rank() const override { return {0}; }
  void barrier() override {}
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  Bytes broadcast(GroupRank /*root*/, ByteSpan bytes) override {
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::int64_t> all_reduce(Reduce /*how*/,
                                       std::span<const std::int64_t> mine) override {
    return {mine.begin(), mine.end()};
  }

 private:
  Group group_ = Group::world(1);
};

}  // namespace

std::shared_ptr<Communicator> SoloFabric::communicator(const Group& group) {
  if (!(group == Group::world(1))) {
    std::ostringstream text;
    text << "a world of one rank does not have the group " << group;
    throw Error(Code::kLayoutMismatch, text.str());
  }
  return std::make_shared<SoloCommunicator>();
}

}  // namespace reprise
