#include "core/save/save.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <thread>
#include <utility>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/caught.hpp"
#include "core/base/codes.hpp"
#include "core/ports/interruption.hpp"
#include "core/ports/leaf_reach.hpp"
#include "core/ports/mixed_device.hpp"
#include "core/ports/store_path.hpp"
#include "core/save/plan_fit.hpp"
#include "core/save/planning.hpp"
#include "core/save/rank_write.hpp"
#include "core/save/save_commit.hpp"
#include "core/save/save_seamed.hpp"
#include "core/save/unequal_copies.hpp"

namespace reprise {
namespace {

/// True if a collective call itself failed. In that case, other ranks might not take part in the
/// next collective call.
bool is_of_fabric(Code code) {
  return code == Code::kPeerFailed || code == Code::kDeadline || code == passed_on::kHang ||
         code == Code::kCollectiveMismatch;
}

/// How long a rank that can be interrupted waits for its own writes before it asks again.
constexpr auto kAsksEvery = std::chrono::milliseconds(2);

/// What each rank says of itself when its part is staged.
struct Staged {
  std::int32_t keep = 0;
  std::uint64_t copies = 0;  ///< see part_of_copies()
};

std::vector<Staged> staged_of(const std::vector<Bytes>& wires) {
  std::vector<Staged> all;
  for (const Bytes& bytes : wires) {
    PeerWire wire(bytes, "a report of staging");
    Staged& one = all.emplace_back();
    one.keep = wire.number<std::int32_t>();
    one.copies = wire.number<std::uint64_t>();
    wire.end();
  }
  return all;
}

/// Throws if the ranks have different values of `keep`, because some of them might then run
/// retention without the others.
void require_one_keep(const std::vector<Staged>& all) {
  if (std::all_of(all.begin(), all.end(),
                  [&](const Staged& one) { return one.keep == all.front().keep; })) {
    return;
  }
  throw Error(Code::kUsage, "ranks disagree on `keep`");
}

CommitTarget target_of(const SaveOptions& options, SaveContext context) {
  CommitTarget target{.directory = options.directory, .step = {}};
  if (options.step) {
    target = CommitTarget::iteration(options.directory, Step{*options.step},
                                     StepNames(options.step_names));
  }
  target.keep = options.keep;
  target.damaged = std::move(context.damaged);
  target.replace = options.replace;
  target.claim.root = std::move(context.root);
  return target;
}

/// No state is larger than this.
constexpr std::uint64_t kAsMuchAsItTakes = std::uint64_t{1} << 60U;

ImageOptions image_of(const SaveOptions& options) {
  const std::uint64_t staging = options.staging_bytes.value_or(kAsMuchAsItTakes);
  return {.staging_bytes_max = staging,
          .batch_bytes = std::min(options.batch_bytes, staging),
          .checksums = options.checksums,
          .returns = options.returns,
          .read_back = options.read_back};
}

void require_possible(const CommitTarget& target) {
  if (target.keep.value_or(1) >= 1) return;
  throw Error(Code::kUsage,
              "keep: it must be at least 1, because the new checkpoint is always kept");
}

}  // namespace

/// Runs a save in this order: plan, prepare, stage, and then votes that are repeated until the
/// commit.
struct Save::State {
  std::unique_ptr<MixedDevice> mixed;  ///< null if one device has all that is saved
  Ports ports;
  std::shared_ptr<Communicator> group;
  SaveSeams seams;
  ImageOptions image;
  PlanSlot* slot;
  SavePlan planned = {};
  std::vector<std::string> log = {};  ///< messages of the commit and of retention
  SaveCommit end;
  RankWrite write;  ///< destroyed before `end`, because `end` holds the locks
  bool committed = false;
  bool refuses_unequal = false;
  bool compares_tensors = false;
  std::vector<UnequalCopy> unequal = {};
  std::optional<Error> failed = {};  ///< error of a failed save; never cleared, same on all ranks

  const GlobalPlan& plan() const { return *planned.plan; }

  void make_plan(const StateDict& state, const std::optional<std::vector<WriteItem>>& writes) {
    begin_phase(ports.trace, phase::kPlan);
    const PlanningRules rules{.plan = seams.plan, .cache = seams.cache};
    planned = writes ? plan_by_writes(ports, *group, state, rules, *writes)
                     : plan_save(ports, *group, state, rules, slot);
    end_phase(ports.trace, phase::kPlan, {.items = plan().tensors.size() + plan().objects.size()});
  }

  /// Checks that a reused plan covers the whole state. A plan that was made for this save always
  /// covers it.
  void require_planned(const StateDict& state) const {
    if (planned.planned != Planned::kReused) return;
    const auto keys = unplanned_keys(plan(), state);
    if (!keys.empty()) seams.cache.unplanned(keys);
  }

  void snapshot(const StateDict& state) {
    require_planned(state);
    require_reach(ports.device, state);
    const GroupRank own = group->rank();
    ImageOptions options = image;
    if (options.read_back == ReadBack::kBeforeOlderGoes && end.older_goes()) {
      options.read_back = ReadBack::kAlways;
    }
    write.snapshot(share_of(plan(), own, state), end.target().saving(), own, options);
  }

  void stage(const StateDict& state) {
    begin_phase(ports.trace, phase::kStage);
    const auto all = staged_of(agree_on(*group, [&] {
      require_uninterrupted(ports);
      require_possible(end.target());
      snapshot(state);
      Bytes wire;
      append_le(wire, end.target().keep.value_or(0));
      append_le(wire, part_of_copies(plan(), group->rank(), state));
      return wire;
    }));
    require_one_keep(all);
    compare_copies(all, state);
    end_phase(ports.trace, phase::kStage);
  }

  void compare_copies(const std::vector<Staged>& all, const StateDict& state) {
    std::uint64_t sum = 0;
    for (const Staged& one : all) sum += one.copies;
    if (sum != 0) unequal = unequal_copies(*group, plan(), state);
    if (compares_tensors) {
      auto more = unequal_tensors(ports, *group, plan(), state);
      std::move(more.begin(), more.end(), std::back_inserter(unequal));
    }
    for (const UnequalCopy& copy : unequal) {
      if (refuses_unequal) {
        throw Error(Code::kCommonStateDiverges, line_of(copy),
                    {.rank = GlobalRank{copy.holders.front()}, .key = copy.key});
      }
      log.push_back(line_of(copy));
    }
  }

  /// Runs `work` and remembers its error. If the save has failed before, throws that error instead;
  /// if it has been committed, does nothing.
  void settle(const std::function<void()>& work) {
    if (failed) throw *failed;
    if (committed) return;
    try {
      work();
    } catch (const std::exception& caught) {
      failed = error_from(caught);
      abandon();
      throw Error(*failed);
    }
  }

  /// Waits until no rank is still writing. Then releases the failed save's claim on the target and
  /// removes its files if possible. Collective, unless a collective call itself failed.
  void abandon() {
    write.stop();
    if (!committed && !is_of_fabric(failed->code())) {
      try {
        // Other ranks may be waiting in another collective; this call passes the error to them.
        gather_contributions(*group, {{}, failed});
      } catch (const std::exception&) {
        // The call failed because a rank is lost. A lost rank writes nothing more. Even if it did,
        // the mark shows that the directory is unfinished.
      }
    }
    end.abandon();
  }

  void poll() {
    begin_phase(ports.trace, phase::kVote);
    const auto votes = poll_votes(*group, write);
    end_phase(ports.trace, phase::kVote);
    if (!votes.empty()) commit(votes);
  }

  void finish() {
    agree_on(*group, [this] {
      while (ports.interrupted != nullptr && !write.through()) {
        require_uninterrupted(ports);
        std::this_thread::sleep_for(kAsksEvery);
      }
      write.wait();
      return Bytes{};
    });
    begin_phase(ports.trace, phase::kVote);
    const auto votes = take_votes(*group, write);
    end_phase(ports.trace, phase::kVote);
    commit(votes);
  }

  void commit(const std::vector<Bytes>& votes) {
    trace_notes(end.commit(plan(), votes, image.checksums == Checksums::kCrc32AndSha256));
    committed = true;
    if (slot != nullptr) keep(*slot, planned);
    trace_notes(end.retain());
    end.release();
  }

  void trace_notes(const std::vector<std::string>& notes) {
    log.insert(log.end(), notes.begin(), notes.end());
  }

  SaveResult result() const {
    const WriteCosts& costs = write.costs();
    SaveResult result{.directory = end.target().directory,
                      .bytes = costs.bytes,
                      .tensors = plan().tensors.size(),
                      .objects = plan().objects.size(),
                      .planned = planned.planned,
                      .staging_bytes = costs.peak_staging,
                      .waited_for_staging = costs.waited_for_staging,
                      .bound_staging = costs.bound_staging,
                      .bound_empty = costs.bound_empty,
                      .plan_signature = plan().signature,
                      .unequal = unequal,
                      .log = planned.log};
    result.log.insert(result.log.end(), log.begin(), log.end());
    return result;
  }
};

Save::Save(std::unique_ptr<State> state) : state_(std::move(state)) {}
Save::Save(Save&&) noexcept = default;
Save& Save::operator=(Save&&) noexcept = default;
Save::~Save() = default;

Save Save::begin(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                 const SaveOptions& options, SaveContext context) {
  return begin_save(ports, std::move(group), state, options, std::move(context), {});
}

Save begin_save(const Ports& given, std::shared_ptr<Communicator> group, const StateDict& state,
                const SaveOptions& options, SaveContext context, const SaveSeams& seams) {
  auto mixed = needs_mixed_device(given.device, state)
                   ? std::make_unique<MixedDevice>(given.device, state)
                   : nullptr;
  Device& device = mixed ? *mixed : given.device;
  const Ports ports{given.store, given.fabric, device,           given.tasks,
                    given.trace, given.data,   given.interrupted};
  const auto writes = std::move(context.writes);
  auto started = std::make_unique<Save::State>(
      Save::State{.mixed = std::move(mixed),
                  .ports = ports,
                  .group = group,
                  .seams = seams,
                  .image = image_of(options),
                  .slot = context.plan,
                  .end = SaveCommit(ports, group, seams, target_of(options, std::move(context))),
                  .write = RankWrite(ports, seams),
                  .refuses_unequal = options.unequal == UnequalCopies::kRefused,
                  .compares_tensors = options.compare_tensors});
  Save::State& own = *started;
  own.make_plan(state, writes);
  own.settle([&] {
    own.end.prepare(state);
    own.stage(state);
  });
  begin_phase(ports.trace, phase::kWrite);
  return Save(std::move(started));
}

void Save::wait_for_staging() { state_->write.wait_for_staging(); }

bool Save::poll() {
  State& own = *state_;
  own.settle([&] { own.poll(); });
  return own.committed;
}

std::uint64_t Save::bound_staging() const { return state_->write.costs().bound_staging; }

std::shared_ptr<StoreLock> Save::root_lock() const { return state_->end.target().claim.root; }

SaveResult Save::finish() {
  State& own = *state_;
  own.settle([&] { own.finish(); });
  return own.result();
}

}  // namespace reprise
