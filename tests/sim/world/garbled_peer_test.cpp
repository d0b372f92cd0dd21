// Truncates or changes a message from one rank to the others. The save or load must then end with a
// named error, or continue if the change is harmless. No rank may read beyond the end of the
// message, and no rank may wait forever.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "sim/world/copy_tree.hpp"
#include "sim/world/world.hpp"
#include "tests/sim/world/tiny_job.hpp"

namespace reprise::sim {
namespace {

constexpr std::int32_t kWorldSize = 2;
constexpr std::size_t kPlaces = 24;  // number of positions at which each message is garbled

/// Changes the message that a rank sends in the call with the index `nth`.
using Garble = std::function<void(std::size_t nth, Bytes& wire)>;

class GarbledCommunicator final : public Communicator {
 public:
  GarbledCommunicator(std::shared_ptr<Communicator> inner, const Garble& garble, std::size_t& calls)
      : inner_(std::move(inner)), garble_(garble), calls_(calls) {}
  const Group& group() const override { return inner_->group(); }
  GroupRank rank() const override { return inner_->rank(); }
  void barrier() override { inner_->barrier(); }
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    Bytes wire(mine.begin(), mine.end());
    garble_(calls_++, wire);
    return inner_->all_gather(wire);
  }
  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    return inner_->broadcast(root, bytes);
  }
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    return inner_->all_reduce(how, mine);
  }

 private:
  std::shared_ptr<Communicator> inner_;
  const Garble& garble_;
  std::size_t& calls_;
};

class GarbledFabric final : public Fabric {
 public:
  GarbledFabric(Fabric& inner, const Garble& garble) : inner_(inner), garble_(garble) {}
  GlobalRank rank() const override { return inner_.rank(); }
  std::int32_t world_size() const override { return inner_.world_size(); }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    return std::make_shared<GarbledCommunicator>(inner_.communicator(group), garble_, calls_);
  }

 private:
  Fabric& inner_;
  const Garble& garble_;
  std::size_t calls_ = 0;
};

void save_once(const Ports& ports) {
  const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), 2);
  SaveOptions options;
  options.directory = "run";
  options.step = 2;
  Save::begin(ports, all_ranks(ports), job.state, options).finish();
}

void load(const Ports& ports, Reads reads) {
  TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), 0);
  LoadOptions options;
  options.directory = "run";
  options.reads = reads;
  options.checksums = LoadChecksums::kVerified;
  reprise::load(ports, *all_ranks(ports), job.state, options);
}

using Program = std::function<void(const Ports&)>;

class GarbledPeer : public testing::Test {
 protected:
  GarbledPeer() {
    World world({.seed = 3, .world_size = kWorldSize}, before_);
    world.run([](Ports& ports, GlobalRank) {
      const TinyJob job(ports.fabric.rank(), ports.fabric.world_size(), 1);
      SaveOptions options;
      options.directory = "run";
      options.step = 1;
      Save::begin(ports, all_ranks(ports), job.state, options).finish();
    });
  }

  /// Runs the program while `garble` changes the messages of rank 1. Returns how each rank ended.
  RunResult run(const Program& program, const Garble& garble) {
    SimStore store("sim:");
    copy_tree({before_}, {store});
    World world({.seed = 3, .world_size = kWorldSize}, store);
    const Garble nothing = [](std::size_t, Bytes&) {};
    return world.run([&](Ports& ports, GlobalRank rank) {
      GarbledFabric fabric(ports.fabric, rank.value == 1 ? garble : nothing);
      program({ports.store, fabric, ports.device, ports.tasks, ports.trace});
    });
  }

  /// Runs the program for each message of rank 1 and each of kPlaces positions in it: once with the
  /// byte there changed, and once with the message truncated there. Counts the resulting errors.
  std::map<std::string, int> run_all(const Program& program) {
    std::vector<std::size_t> sizes;
    run(program, [&](std::size_t, Bytes& wire) { sizes.push_back(wire.size()); });
    std::map<std::string, int> answers;
    for (std::size_t message = 0; message < sizes.size(); ++message) {
      const std::size_t step = std::max<std::size_t>(1, sizes[message] / kPlaces);
      for (std::size_t at = 0; at < sizes[message]; at += step) {
        for (const bool cut : {false, true}) {
          const auto result = run(program, [&](std::size_t nth, Bytes& wire) {
            if (nth != message || at >= wire.size()) return;
            const auto place = wire.begin() + static_cast<std::ptrdiff_t>(at);
            // A truncated message keeps its last byte, which tells the kind of the message.
            if (cut) wire.erase(place, wire.end() - 1);
            if (!cut) *place ^= std::byte{0xff};
          });
          SCOPED_TRACE(testing::Message() << "message " << message << (cut ? " cut" : " changed")
                                          << " at " << at << " of " << sizes[message]);
          for (const RankOutcome& rank : result.ranks) count(rank, answers);
        }
      }
    }
    return answers;
  }

 private:
  static void count(const RankOutcome& rank, std::map<std::string, int>& answers) {
    if (rank.end == RankEnd::kReturned) return;
    ASSERT_EQ(rank.end, RankEnd::kFailed) << name_of(rank.end);
    EXPECT_NE(rank.error->code(), Code::kInternal) << rank.error->what();
    ++answers[std::string(name_of(rank.error->code()))];
  }

  SimStore before_ = SimStore("sim:");
};

TEST_F(GarbledPeer, in_a_save_is_refused_by_name) {
  const auto answers = run_all(save_once);
  EXPECT_GT(answers.at("COLLECTIVE_MISMATCH"), 20);
}

TEST_F(GarbledPeer, in_a_load_is_refused_by_name) {
  for (const Reads reads : {Reads::kByEach, Reads::kOncePerJob}) {
    const auto answers = run_all([reads](const Ports& ports) { load(ports, reads); });
    EXPECT_GT(answers.at("COLLECTIVE_MISMATCH"), 20);
  }
}

}  // namespace
}  // namespace reprise::sim
