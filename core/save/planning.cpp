#include "core/save/planning.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/ports/interruption.hpp"
#include "core/save/given_writes.hpp"
#include "core/save/plan_fit.hpp"
#include "core/save/seed_plan.hpp"
#include "core/state/garbled_text.hpp"
#include "core/state/module_key.hpp"

namespace reprise {
namespace {

using Memory = PlanCache::Memory;
using PlanPointer = std::shared_ptr<const GlobalPlan>;

constexpr std::size_t kNamed = 8;  ///< limit on the keys that the log lists, per kind of change

std::uint64_t hash_of_memory(const Memory& memory) {
  std::uint64_t hash = 0;
  for (const CacheKind kind : memory.kinds) hash = mix64(hash, static_cast<std::uint64_t>(kind));
  if (memory.offered) hash = mix64(hash, signature(memory.offered->scope));
  if (memory.plan) {
    hash = mix64(mix64(hash, memory.plan->plan->signature), signature(memory.plan->scope));
    hash = mix64(hash, static_cast<std::uint64_t>(memory.plan->confirmed));
  }
  if (memory.distribution) hash = mix64(hash, memory.distribution->key);
  if (memory.read) hash = mix64(hash, signature(memory.read->identity));
  return hash;
}

/// Checks that all remembered data comes from the same committed save.
void require_sound(const Memory& memory) {
  const bool both = memory.offered.has_value() == memory.plan.has_value();
  const bool one_save = both && (!memory.offered || memory.offered->scope == memory.plan->scope);
  if (one_save) return;
  throw Error(Code::kCachePoisoned,
              "the cache remembers what ranks offered for a save and not the plan that was made of "
              "it: that save failed, and should have left the cache as it was");
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
      lines.push_back("key " + told_key(key) + verb + " on " + names_of(ranks, group));
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
          const PlanningRules& rules, PlanCache* cache)
      : ports_(ports), group_(group), state_(state), rules_(rules), cache_(cache) {}

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
    tell();
    return std::move(save_);
  }

  SavePlan run() {
    if (cache_ == nullptr) {
      save_.plan = plan_of_all(gather_offers());
    } else {
      plan_with_cache();
    }
    tell();
    return std::move(save_);
  }

 private:
  bool keeps(CacheKind kind) const { return cache_ != nullptr && cache_->keeps(kind); }
  bool keeps_plans() const { return keeps(CacheKind::kLocal) || keeps(CacheKind::kGlobal); }
  Memory& memory() { return cache_->memory(); }
  GlobalRank self() const { return group_.group().member(group_.rank()); }

  void plan_with_cache() {
    exchange_claims();
    const bool fits =
        in_step_ && memory().offered && rules_.cache.fits(memory().offered->scope, scope());
    if (fits) {
      plan_by_memory();
    } else if (!in_step_ || memory().offered) {
      compare_with_memory();
      save_.plan = plan_of_all(gather_offers());
    } else if (!plan_by_seed()) {
      save_.plan = plan_of_all(gather_offers());
    }
  }

  const SaveScope& scope() const { return save_.offered.scope; }

  /// Exchanges hashes of what each rank saves and remembers. Sets the scope of this save.
  /// `in_step_` stays true only if all ranks remember the same data and have the same common state.
  /// Ranks whose common states differ must plan again, because only planning reports the
  /// difference.
  void exchange_claims() {
    const auto all = agree_on(group_, [this] {
      require_uninterrupted(ports_);
      require_sound(memory());
      require_utf8(state_);
      save_.offered.structure = structure_of(state_, self());
      Bytes wire;
      append_le(wire, save_.offered.structure.signature);
      append_le(wire, mix64(hash_of_memory(memory()), hash_of(state_.common)));
      return wire;
    });
    std::vector<CacheClaim> claims;
    for (const Bytes& bytes : all) {
      PeerWire wire(bytes, "a claim of what is remembered");
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
    save_.offered.scope = {.structure = combined(structures),
                           .world_size = ports_.fabric.world_size(),
                           .savers = group_.group().members()};
  }

  void plan_by_memory() {
    const Memory::Plan& known = *memory().plan;
    if (keeps(CacheKind::kGlobal) && known.confirmed) {
      save_.plan = known.plan;
      save_.confirmed = true;
      save_.offered.local = memory().offered->local;
      reuse(CacheKind::kLocal);
      reuse(CacheKind::kGlobal);
      return;
    }
    const bool local = keeps(CacheKind::kLocal) && !memory().offered->local.empty();
    if (local) reuse(CacheKind::kLocal);
    save_.plan = plan_of_all(local ? gather_remembered() : gather_offers());
    save_.confirmed = same_plan(*save_.plan, *known.plan);
    if (!save_.confirmed) save_.log.emplace_back("the same structure was planned in another way");
  }

  void reuse(CacheKind kind) {
    if (!keeps(kind)) return;
    save_.reused.push_back(kind);
    if (kind == CacheKind::kDistribution) return;
    save_.planned = Planned::kReused;
  }

  // --- the seed ---------------------------------------------------------------------------------

  /// Uses the plan of the loaded checkpoint if it fits this save. Returns false if it does not fit.
  bool plan_by_seed() {
    if (!keeps(CacheKind::kLoaded) || !memory().read) return false;
    std::optional<GlobalPlan> seed;
    const auto all = agree_on(group_, [&] {
      const LocalPlan local = offer();
      seed = plan_of(memory().read->metadata->catalog, group_.group().size());
      const bool mine = seed && stands_in_group(local) && serves(*seed, state_, group_.rank());
      Bytes wire;
      append_le(wire, signature(local));
      append_le(wire, main_copies(state_));
      append_le(wire, std::uint64_t{mine});
      return wire;
    });
    std::vector<std::uint64_t> offers;
    std::uint64_t mains = 0;
    bool served = true;
    for (const Bytes& bytes : all) {
      PeerWire wire(bytes, "a claim on the loaded plan");
      offers.push_back(wire.number<std::uint64_t>());
      mains += wire.number<std::uint64_t>();
      const bool serves_it = wire.number<std::uint64_t>() != 0;
      served = served && serves_it;
      wire.end();
    }
    if (!served || mains != main_copies(*seed)) {
      save_.log.push_back("the plan of the loaded checkpoint " + memory().read->identity.directory +
                          " does not fit this job");
      return false;
    }
    seed->signature = combined(offers);
    save_.plan = std::make_shared<const GlobalPlan>(std::move(*seed));
    save_.confirmed = true;
    reuse(CacheKind::kLoaded);
    return true;
  }

  /// A seeded save skips global_plan(). This function performs those checks of global_plan() that
  /// need only this rank's offer.
  bool stands_in_group(const LocalPlan& local) const {
    for (std::size_t i = 0; i < local.given.size(); ++i) {
      if (local.given.denied(i) != nullptr) return false;
    }
    const auto is_saver = [this](GlobalRank rank) {
      return group_.group().rank_of(rank).has_value();
    };
    return std::all_of(local.placed->placements.begin(), local.placed->placements.end(),
                       [&](const Placed& placed) {
                         const auto& members = placed.mesh->members().members();
                         return std::all_of(members.begin(), members.end(), is_saver);
                       });
  }

  // --- planning ---------------------------------------------------------------------------------

  LocalPlan offer() {
    LocalPlan local = local_plan(state_, self(), rules_.plan.describe);
    if (keeps(CacheKind::kLocal)) save_.offered.local = encode(local);
    return local;
  }

  std::vector<Bytes> gather_offers() {
    return agree_on(group_, [this] {
      require_uninterrupted(ports_);
      if (cache_ == nullptr) require_utf8(state_);  // otherwise the claims have done that
      return encode(offer());
    });
  }

  std::vector<Bytes> gather_remembered() {
    save_.offered.local = memory().offered->local;
    return agree_on(group_, [this] { return save_.offered.local; });
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
    const bool remembered = save_.planned == Planned::kReused;
    try {
      return global_plan(rules_.plan.heard(decode_local_plans(offers)), group_.group(), known,
                         rules_.plan.describe, rules_.plan.cover, rules_.plan.elect);
    } catch (const Error& error) {
      if (!remembered) throw;
      throw Error(
          Code::kCachePoisoned,
          std::string("what ranks remember to have offered cannot be planned: ") + error.what(),
          error.place());
    }
  }

  /// Returns the remembered plan whose owners this save reuses; null if owners must be elected.
  const GlobalPlan* owners() {
    if (!keeps(CacheKind::kDistribution) || !in_step_ || !memory().distribution) return nullptr;
    const Memory::Distribution& known = *memory().distribution;
    if (known.key != rules_.cache.distribution_key(scope())) return nullptr;
    rules_.cache.verify_distribution(known.scope, scope());
    reuse(CacheKind::kDistribution);
    return known.plan.get();
  }

  static void require_owners(const GlobalPlan& plan) {
    for (const auto& tensor : plan.tensors) {
      const auto at = std::find(tensor.owners.begin(), tensor.owners.end(), kNobody);
      if (at == tensor.owners.end()) continue;
      const auto box = static_cast<std::size_t>(at - tensor.owners.begin());
      throw Error(Code::kNoWriter, "nobody is to write " + to_string((*tensor.boxes)[box]),
                  {.key = tensor.key});
    }
  }

  // --- reports ----------------------------------------------------------------------------------

  /// Logs how the structure of each rank's state differs from the structure that the rank
  /// remembers. The log lines are the same on all ranks.
  void compare_with_memory() {
    const auto changes = agree_on(group_, [this] {
      return memory().offered
                 ? encode(change_between(memory().offered->structure, save_.offered.structure))
                 : Bytes{};
    });
    const bool known = std::any_of(changes.begin(), changes.end(),
                                   [](const Bytes& wire) { return !wire.empty(); });
    if (known && keeps_plans()) {
      save_.planned = Planned::kReplanned;
      ++memory().replans;
      save_.log.emplace_back("plans are made again");
    }
    for (auto& line : lines_of(changes, group_.group())) save_.log.push_back(std::move(line));
    if (!in_step_) {
      save_.log.emplace_back(
          "ranks do not remember the same saves, or do not share one common state");
    } else if (memory().offered->scope.savers != scope().savers) {
      save_.log.push_back("the last save was made by ranks " +
                          join(memory().offered->scope.savers, " "));
    }
  }

  void tell() {
    ports_.trace.event({.phase = "signature", .detail = hex(save_.plan->signature)});
    if (!save_.reused.empty()) save_.log.push_back(line_of(save_.reused));
    for (const auto& line : save_.log) ports_.trace.event({.phase = "cache", .detail = line});
  }

  const Ports& ports_;
  Communicator& group_;
  const StateDict& state_;
  const PlanningRules& rules_;
  PlanCache* cache_;
  bool in_step_ = true;
  SavePlan save_;
};

}  // namespace

std::vector<LocalPlan> as_offered(std::vector<LocalPlan> offers) { return offers; }
std::vector<CacheClaim> as_claimed(std::vector<CacheClaim> claims) { return claims; }

SavePlan plan_save(const Ports& ports, Communicator& group, const StateDict& state,
                   const PlanningRules& rules, PlanCache* cache) {
  return Planner(ports, group, state, rules, cache).run();
}

SavePlan plan_by_writes(const Ports& ports, Communicator& group, const StateDict& state,
                        const PlanningRules& rules, std::span<const WriteItem> writes) {
  return Planner(ports, group, state, rules, nullptr).run(writes);
}

void remember(PlanCache& cache, const SavePlan& save, const CacheSeams& seams) {
  Memory& memory = cache.memory();
  memory.offered = save.offered;
  memory.plan = {save.offered.scope, save.plan, save.confirmed};
  if (cache.keeps(CacheKind::kDistribution)) {
    memory.distribution = {seams.distribution_key(save.offered.scope), save.offered.scope,
                           save.plan};
  }
  if (save.planned == Planned::kReused) ++memory.reuses;
}

}  // namespace reprise
