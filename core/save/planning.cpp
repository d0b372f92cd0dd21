#include "core/save/planning.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/megatron/module_key.hpp"
#include "core/ports/interruption.hpp"
#include "core/save/given_writes.hpp"
#include "core/state/garbled_text.hpp"

namespace reprise {
namespace {

using PlanPointer = std::shared_ptr<const GlobalPlan>;

constexpr std::size_t kNamed = 8;  ///< limit on the keys that the log lists, per kind of change

/// Returns a hash of what a rank keeps, which is equal on all ranks that kept the same save.
std::uint64_t hash_of_kept(const std::optional<KeptPlan>& kept) {
  if (!kept) return 0;
  return mix64(signature(kept->scope), mix64(signature(kept->made_for), kept->plan->signature));
}

/// Throws unless plan and scope come from the same committed save.
void require_sound(const std::optional<KeptPlan>& kept) {
  if (!kept || kept->scope == kept->made_for) return;
  throw Error(
      Code::kCachePoisoned,
      "the kept plan is not the plan of the save that it was kept for: that save failed and "
      "should have left the kept plan unchanged");
}

// --- reasons for planning again -----------------------------------------------------------------

Bytes encode(const StructureChange& change) {
  Bytes wire;
  for (const auto* keys : {&change.appeared, &change.vanished, &change.changed}) {
    put_texts(wire, *keys);
  }
  return wire;
}

std::string names_of(const std::vector<GlobalRank>& ranks, const Group& group) {
  if (ranks.size() == group.members().size()) return "all ranks";
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(ranks, " ");
}

/// Returns one line per key that changed on any rank, such as "key a appeared on ranks 0 2".
std::vector<std::string> lines_of(const std::vector<Bytes>& changes, const Group& group) {
  using RanksByKey = std::map<std::string, std::vector<GlobalRank>>;
  constexpr std::array<std::string_view, 3> kVerbs = {"appeared", "vanished", "changed"};
  std::array<RanksByKey, 3> happened;
  for (std::size_t r = 0; r < changes.size(); ++r) {
    PeerWire wire(changes[r], "a list of changes");
    if (wire.empty()) continue;  // this rank remembers nothing
    for (auto& ranks : happened) {
      for (const auto& key : wire.texts()) {
        ranks[key].push_back(group.member({static_cast<std::int32_t>(r)}));
      }
    }
  }
  std::vector<std::string> lines;
  for (std::size_t v = 0; v < kVerbs.size(); ++v) {
    const std::string verb = " " + std::string(kVerbs[v]);
    std::size_t named = 0;
    for (const auto& [key, ranks] : happened[v]) {
      if (named++ == kNamed) break;
      lines.push_back("key " + readable_key(key) + verb + " on " + names_of(ranks, group));
    }
    if (happened[v].size() > kNamed) {
      lines.push_back(std::to_string(happened[v].size() - kNamed) + " more keys" + verb);
    }
  }
  return lines;
}

// --- the planning of one save -------------------------------------------------------------------

class Planner {
 public:
  Planner(const Ports& ports, Communicator& group, const StateDict& state,
          const PlanningRules& rules, PlanSlot* slot)
      : ports_(ports), group_(group), state_(state), rules_(rules), slot_(slot) {}

  SavePlan run(std::span<const WriteItem> writes) {
    const auto offers = gather_offers();
    const auto shares = agree_on(group_, [&] { return encode_writes(writes, state_); });
    agree_on(group_, [&] {
      const GlobalPlan owners = owners_by_writes(shares, group_.group());
      GlobalPlan plan = plan_of_offers(offers, &owners);
      require_owners(plan);
      take_object_owners(owners, plan);
      save_.plan = std::make_shared<const GlobalPlan>(std::move(plan));
      return Bytes{};
    });
    trace_log();
    return std::move(save_);
  }

  SavePlan run() {
    if (slot_ == nullptr || !plan_as_kept()) save_.plan = plan_of_all(gather_offers());
    trace_log();
    return std::move(save_);
  }

 private:
  GlobalRank self() const { return group_.group().member(group_.rank()); }
  const std::optional<KeptPlan>& kept() const { return slot_->kept; }

  /// Uses the kept plan if it fits on all ranks. Otherwise says what changed, and returns false.
  bool plan_as_kept() {
    exchange_claims();
    if (in_step_ && kept() && rules_.cache.fits(kept()->scope, scope())) {
      save_.plan = kept()->plan;
      save_.planned = Planned::kReused;
      save_.log.emplace_back("the plan of an earlier save is used again");
      return true;
    }
    if (!in_step_ || kept()) compare_with_kept();
    return false;
  }

  const SaveScope& scope() const { return save_.scope; }

  /// Exchanges hashes of what each rank saves and keeps. Sets the scope of this save.
  /// `in_step_` stays true only if all ranks keep the same plan and have the same common state.
  /// Ranks whose common states differ must plan again, because only planning reports the
  /// difference.
  void exchange_claims() {
    const auto all = agree_on(group_, [this] {
      require_uninterrupted(ports_);
      require_sound(kept());
      require_utf8(state_);
      save_.structure = structure_of(state_, self());
      Bytes wire;
      append_le(wire, save_.structure.signature);
      append_le(wire, mix64(hash_of_kept(kept()), hash_of(state_.common)));
      return wire;
    });
    std::vector<CacheClaim> claims;
    for (const Bytes& bytes : all) {
      PeerWire wire(bytes, "a claim of what is kept");
      CacheClaim& claim = claims.emplace_back();
      claim.structure = wire.number<std::uint64_t>();
      claim.remembered = wire.number<std::uint64_t>();
      wire.end();
    }
    claims = rules_.cache.claims(std::move(claims));
    std::vector<std::uint64_t> structures;
    for (const CacheClaim& claim : claims) {
      structures.push_back(claim.structure);
      in_step_ = in_step_ && claim.remembered == claims.front().remembered;
    }
    save_.scope = {.structure = combined(structures),
                   .world_size = ports_.fabric.world_size(),
                   .savers = group_.group().members()};
  }

  // --- planning ---------------------------------------------------------------------------------

  std::vector<Bytes> gather_offers() {
    return agree_on(group_, [this] {
      require_uninterrupted(ports_);
      if (slot_ == nullptr) require_utf8(state_);  // otherwise the claims have done that
      return encode(local_plan(state_, self(), rules_.plan.describe));
    });
  }

  PlanPointer plan_of_all(const std::vector<Bytes>& offers) {
    PlanPointer plan;
    agree_on(group_, [&] {
      const GlobalPlan* known = owners();
      plan = std::make_shared<const GlobalPlan>(plan_of_offers(offers, known));
      if (known != nullptr) require_owners(*plan);
      return Bytes{};
    });
    return plan;
  }

  GlobalPlan plan_of_offers(const std::vector<Bytes>& offers, const GlobalPlan* known) const {
    return global_plan(rules_.plan.gathered(decode_local_plans(offers)), group_.group(), known,
                       rules_.plan.describe, rules_.plan.cover, rules_.plan.elect);
  }

  /// Returns the plan whose owners a new plan takes over; null if they are elected. A kept plan is
  /// found by the signature of its scope, and what is planned anew has another one: only a seam
  /// finds owners here.
  const GlobalPlan* owners() const {
    if (slot_ == nullptr || !in_step_ || !kept()) return nullptr;
    if (rules_.cache.distribution_key(kept()->scope) != rules_.cache.distribution_key(scope())) {
      return nullptr;
    }
    rules_.cache.verify_distribution(kept()->scope, scope());
    return kept()->plan.get();
  }

  static void require_owners(const GlobalPlan& plan) {
    for (const auto& tensor : plan.tensors) {
      const auto at = std::find(tensor.owners.begin(), tensor.owners.end(), kNobody);
      if (at == tensor.owners.end()) continue;
      const auto box = static_cast<std::size_t>(at - tensor.owners.begin());
      throw Error(Code::kNoWriter, "no rank is chosen to write " + to_string((*tensor.boxes)[box]),
                  {.key = tensor.key});
    }
  }

  // --- reports ----------------------------------------------------------------------------------

  /// Logs how the structure of each rank's state differs from the structure that it keeps a plan
  /// for. The log lines are the same on all ranks.
  void compare_with_kept() {
    const auto changes = agree_on(group_, [this] {
      return kept() ? encode(change_between(kept()->structure, save_.structure)) : Bytes{};
    });
    const bool known = std::any_of(changes.begin(), changes.end(),
                                   [](const Bytes& wire) { return !wire.empty(); });
    if (known) {
      save_.planned = Planned::kReplanned;
      ++slot_->replans;
      save_.log.emplace_back("the save is planned again");
    }
    for (auto& line : lines_of(changes, group_.group())) save_.log.push_back(std::move(line));
    if (!in_step_) {
      save_.log.emplace_back("ranks keep different plans, or their common states differ");
    } else if (kept()->scope.savers != scope().savers) {
      save_.log.push_back("the last save was made by ranks " + join(kept()->scope.savers, " "));
    }
  }

  void trace_log() {
    ports_.trace.event({.phase = "signature", .detail = hex(save_.plan->signature)});
    for (const auto& line : save_.log) ports_.trace.event({.phase = "cache", .detail = line});
  }

  const Ports& ports_;
  Communicator& group_;
  const StateDict& state_;
  const PlanningRules& rules_;
  PlanSlot* slot_;
  bool in_step_ = true;
  SavePlan save_;
};

}  // namespace

std::vector<LocalPlan> as_offered(std::vector<LocalPlan> offers) { return offers; }
std::vector<CacheClaim> as_claimed(std::vector<CacheClaim> claims) { return claims; }

bool same_scope(const SaveScope& kept, const SaveScope& live) { return kept == live; }

void refuse_unplanned(std::span<const std::string> keys) {
  throw Error(Code::kStalePlan,
              "the kept plan was made for another structure; it has no place for what this rank "
              "saves: " +
                  join(keys.first(std::min<std::size_t>(keys.size(), kNamed)), ", "),
              {.key = keys.front()});
}

void require_same_scope(const SaveScope& made_for, const SaveScope& live) {
  if (made_for == live) return;
  const auto ranks_of = [](const SaveScope& scope) { return "ranks " + join(scope.savers, " "); };
  throw Error(Code::kStaleDistribution, "the reused owners were chosen for " + ranks_of(made_for) +
                                            ", structure " + hex(made_for.structure) +
                                            ", but this save is of " + ranks_of(live) +
                                            ", structure " + hex(live.structure));
}

std::string_view name_of(Planned planned) {
  constexpr std::array<std::string_view, 3> kNames = {"fresh", "replanned", "reused"};
  return kNames[static_cast<std::size_t>(planned)];
}

SavePlan plan_save(const Ports& ports, Communicator& group, const StateDict& state,
                   const PlanningRules& rules, PlanSlot* slot) {
  return Planner(ports, group, state, rules, slot).run();
}

SavePlan plan_by_writes(const Ports& ports, Communicator& group, const StateDict& state,
                        const PlanningRules& rules, std::span<const WriteItem> writes) {
  return Planner(ports, group, state, rules, nullptr).run(writes);
}

void keep(PlanSlot& slot, const SavePlan& save) {
  slot.kept = {save.scope, save.structure, save.plan, save.scope};
}

}  // namespace reprise
