#include "tests/hostile/damage_effect.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "core/adapters/posix/host_device.hpp"
#include "core/base/check.hpp"
#include "core/load/load_seamed.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/verify/verify.hpp"
#include "core/verify/verify_directory.hpp"

namespace reprise::test {
namespace {

struct SilentTrace final : Trace, Progress {
  void event(const TraceEvent&) override {}
  void advance(std::string_view, std::uint64_t, std::uint64_t) override {}
};

/// Aborts if a task is started, since a load needs no background work.
struct NoTasks final : Tasks {
  std::unique_ptr<Task> start(std::function<void()>) override {
    CHECK(false);
    return nullptr;
  }
};

/// Simulates a group as seen by its first rank. Every other rank sends the same bytes as the first.
class MirrorCommunicator final : public Communicator {
 public:
  explicit MirrorCommunicator(std::int32_t ranks) : group_(Group::world(ranks)) {}
  /// Simulates a group in which only the leader answers: in the next all_gather, this rank sends
  /// its message and all other ranks send empty messages.
  void lead() const { leads_ = true; }
  const Group& group() const override { return group_; }
  GroupRank rank() const override { return {0}; }
  void barrier() override {}
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    constexpr std::byte kBytesTag{0};  // the last byte of every message that is not an error
    std::vector<Bytes> all(static_cast<std::size_t>(group_.size()),
                           Bytes(mine.begin(), mine.end()));
    if (std::exchange(leads_, false) && mine.back() == kBytesTag) {
      std::fill(all.begin() + 1, all.end(), Bytes{kBytesTag});
    }
    return all;
  }
  Bytes broadcast(GroupRank, ByteSpan bytes) override { return {bytes.begin(), bytes.end()}; }
  std::vector<std::int64_t> all_reduce(Reduce reduce, std::span<const std::int64_t> mine) override {
    std::vector<std::int64_t> all(mine.begin(), mine.end());
    if (reduce == Reduce::kSum) {
      for (auto& number : all) number *= group_.size();
    }
    return all;
  }

 private:
  Group group_;
  mutable bool leads_ = false;
};

struct MirrorFabric final : Fabric {
  explicit MirrorFabric(std::int32_t world) : ranks(world) {}
  GlobalRank rank() const override { return {0}; }
  std::int32_t world_size() const override { return ranks; }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    return std::make_shared<MirrorCommunicator>(group.size());
  }
  std::int32_t ranks;
};

GroupRank first_leads(const Communicator& group) {
  dynamic_cast<const MirrorCommunicator&>(group).lead();
  return {0};
}

void load_first(std::int32_t ranks, Store& store, const std::string& path, StateDict& into,
                std::vector<std::string> excused) {
  MirrorFabric fabric(ranks);
  HostDevice device("node", 0);
  NoTasks tasks;
  SilentTrace silent;
  LoadOptions options;
  options.directory = path;
  options.excused = std::move(excused);
  options.staging_bytes = 4096;
  LoadSeams seams;
  seams.leader.leader = first_leads;
  const auto group = fabric.communicator(Group::world(ranks));
  reprise::load({store, fabric, device, tasks, silent}, *group, into, options, seams);
}

}  // namespace

void load_alone(Store& store, const std::string& path, StateDict& into) {
  load_first(1, store, path, into, {});
}

Judge::Judge(Store& store, std::string path) : path_(std::move(path)) {
  const Checkpoint checkpoint = Checkpoint::open(store, path_);
  location_ = checkpoint.location();
  metadata_ = checkpoint.metadata();
  const Metadata seen = metadata_.ranks.empty() ? metadata_ : seen_by(metadata_, 0);
  ranks_ = std::max(1, static_cast<std::int32_t>(metadata_.ranks.size()));
  for (const auto& tensor : seen.catalog.tensors) {
    TensorLeaf leaf;
    leaf.key = tensor.key;
    leaf.dtype = tensor.dtype;
    leaf.shape = logical_shape(tensor);
    leaf.pieces = {contiguous_piece(Box::whole(leaf.shape))};
    starts_.push_back(bytes_);
    bytes_ += static_cast<std::size_t>(volume(leaf.shape)) * size_of(leaf.dtype);
    wanted_.tensors.push_back(std::move(leaf));
  }
  for (const auto& object : seen.catalog.objects) {
    if (const auto parsed = parse_object_key(object.key); parsed) {
      wanted_.objects.push_back({parsed->key, parsed->grid, parsed->coordinate, 0, {}});
    } else {
      excused_.push_back(object.key);
    }
  }
  for (const auto& object : checkpoint.catalog().objects) {
    if (!parse_object_key(object.key)) plain_.push_back(object.key);
  }
  CHECK(whole(store), words_of(store));
  content_ = load(store);
}

std::size_t Judge::elements() const {
  std::size_t total = 0;
  for (const auto& leaf : wanted_.tensors) total += static_cast<std::size_t>(volume(leaf.shape));
  return total;
}

std::size_t Judge::objects() const { return wanted_.objects.size() + plain_.size(); }

bool Judge::whole(Store& store) const {
  SilentTrace silent;
  const VerifyReport report = verify(store, path_, PayloadCheck::kRead, silent);
  return report.whole() && !report.vacuous();
}

std::string Judge::words_of(Store& store) const {
  SilentTrace silent;
  std::ostringstream words;
  for (const auto& finding : verify(store, path_, PayloadCheck::kRead, silent).findings) {
    if (finding.severity == Severity::kError) words << finding << '\n';
  }
  return words.str();
}

Judge::Content Judge::load(Store& store) const {
  Content content;
  content.tensors.assign(bytes_, std::byte{0x5a});
  StateDict into = wanted_;
  for (std::size_t i = 0; i < into.tensors.size(); ++i) {
    into.tensors[i].data = content.tensors.data() + starts_[i];
  }
  load_first(ranks_, store, path_, into, excused_);
  for (auto& object : into.objects) content.objects.push_back(std::move(object.value));
  Checkpoint checkpoint = Checkpoint::open(store, path_);
  for (const auto& key : plain_) {
    const StoredObject* object = checkpoint.catalog().object(key);
    if (object == nullptr) throw Error(Code::kNotStored, "an object is gone", {.key = key});
    const auto slice = checkpoint.slice(key, object->file, object->range);
    const auto item = read_bytes_item(*slice);
    content.objects.push_back(item.value ? *item.value
                                         : Value(read_range(*slice, {0, slice->size()})));
  }
  content.common = std::move(into.common);
  return content;
}

bool Judge::refused_by_manifest(Store& store) const {
  SilentTrace silent;
  TasksAtOnce tasks;
  Checkpoint checkpoint(store, location_, metadata_);
  return count_of(check_manifest(checkpoint, {tasks, silent}), Severity::kError) != 0;
}

DamageEffect Judge::of(Store& store) const {
  try {
    if (!whole(store)) return DamageEffect::kRefused;
    return load(store) == content_ ? DamageEffect::kSame : DamageEffect::kChanged;
  } catch (const Error& error) {
    if (error.code() == Code::kInternal) throw;
    return DamageEffect::kRefused;
  }
}

}  // namespace reprise::test
