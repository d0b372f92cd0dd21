#include "sim/mutants/seam_watch.hpp"

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/diff/diff_seamed.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/load/checksum_vote.hpp"
#include "core/reshard/reshard_seamed.hpp"
#include "core/save/leaf_source.hpp"

namespace reprise::sim {
namespace {

/// One decision: the way to it through the members of Policies.
template <auto... Path>
struct Seam {
  template <class Any>
  static auto& in(Any& policies) {
    return (policies.*....*Path);
  }
  using Function = std::remove_cvref_t<decltype(in(std::declval<Policies&>()))>;
};

template <auto... Path>
using InSave = Seam<&Policies::save, Path...>;
template <auto... Path>
using InLoad = Seam<&Policies::load, Path...>;
template <auto Member>
using InReshard = Seam<&Policies::reshard, Member>;
template <auto Member>
using InDiff = Seam<&Policies::diff, Member>;
template <auto Member>
using InJob = Seam<&Policies::job, Member>;
template <auto Member>
using InMetadata = Seam<&Policies::job, &JobPolicy::metadata, Member>;
template <auto Member>
using InModule = Seam<&Policies::job, &JobPolicy::module, Member>;
template <auto Member>
using InSettings = Seam<&Policies::job, &JobPolicy::settings, Member>;
template <auto Member>
using InStep = Seam<&Policies::job, &JobPolicy::step, Member>;
template <auto Member>
using InRerun = Seam<&Policies::job, &JobPolicy::rerun, Member>;

using AllSeams = std::tuple<
    // saves
    InSave<&SaveSeams::plan, &PlanSeams::describe>, InSave<&SaveSeams::plan, &PlanSeams::cover>,
    InSave<&SaveSeams::plan, &PlanSeams::elect>, InSave<&SaveSeams::plan, &PlanSeams::gathered>,
    InSave<&SaveSeams::prepare>, InSave<&SaveSeams::commit>, InSave<&SaveSeams::retention>,
    InSave<&SaveSeams::cache, &CacheSeams::claims>, InSave<&SaveSeams::cache, &CacheSeams::fits>,
    InSave<&SaveSeams::cache, &CacheSeams::unplanned>,
    InSave<&SaveSeams::cache, &CacheSeams::distribution_key>,
    InSave<&SaveSeams::cache, &CacheSeams::verify_distribution>, InSave<&SaveSeams::source>,
    InSave<&SaveSeams::stage, &StageSeams::order>,
    InSave<&SaveSeams::stage, &StageSeams::free_again>,
    InSave<&SaveSeams::stage, &StageSeams::confirm>,
    InSave<&SaveSeams::leader, &LeaderSeams::leader>,
    // loads
    InLoad<&LoadSeams::judge_strictness>, InLoad<&LoadSeams::tracked>,
    InLoad<&LoadSeams::choose_candidate>, InLoad<&LoadSeams::checksums>,
    InLoad<&LoadSeams::own_metadata>, InLoad<&LoadSeams::leader, &LeaderSeams::leader>,
    InLoad<&LoadSeams::staging>, InLoad<&LoadSeams::share>,
    // reshard and diff
    InReshard<&ReshardSeams::divide>, InReshard<&ReshardSeams::read_from>,
    InReshard<&ReshardSeams::per_rank>, InReshard<&ReshardSeams::carried>,
    InReshard<&ReshardSeams::compares_checksums>, InDiff<&DiffSeams::tensors>,
    InDiff<&DiffSeams::objects>, InDiff<&DiffSeams::form>, InDiff<&DiffSeams::compared>,
    InDiff<&DiffSeams::values>, InDiff<&DiffSeams::unread>, InDiff<&DiffSeams::is_damage>,
    // the job
    InJob<&JobPolicy::slice>, InJob<&JobPolicy::names>, InJob<&JobPolicy::replica>,
    InJob<&JobPolicy::described_save>, InJob<&JobPolicy::described_load>,
    InJob<&JobPolicy::buckets>, InJob<&JobPolicy::random>, InJob<&JobPolicy::sync>,
    InJob<&JobPolicy::start>, InJob<&JobPolicy::saved>, InJob<&JobPolicy::requested>,
    InJob<&JobPolicy::save_groups>, InJob<&JobPolicy::load_groups>, InJob<&JobPolicy::groups>,
    InJob<&JobPolicy::storage>, InJob<&JobPolicy::refresh>, InMetadata<&MetadataPolicy::built>,
    InMetadata<&MetadataPolicy::written>, InMetadata<&MetadataPolicy::loaded>,
    InModule<&ModulePolicy::prefix>, InModule<&ModulePolicy::copy>,
    InModule<&ModulePolicy::extracted>, InModule<&ModulePolicy::restored>,
    InModule<&ModulePolicy::leaf_layer>, InModule<&ModulePolicy::sharding>,
    InModule<&ModulePolicy::streams>, InModule<&ModulePolicy::form>, InModule<&ModulePolicy::owner>,
    InSettings<&SettingsPolicy::saved>, InSettings<&SettingsPolicy::matched>,
    InSettings<&SettingsPolicy::schedule>, InStep<&StepPolicy::agree>, InStep<&StepPolicy::success>,
    // the rerun machine
    InRerun<&RerunPolicy::fatal>, InRerun<&RerunPolicy::end>, InRerun<&RerunPolicy::judged>,
    InRerun<&RerunPolicy::leaving>, InRerun<&RerunPolicy::rewind>, InRerun<&RerunPolicy::persisted>,
    InRerun<&RerunPolicy::emitted>, InRerun<&RerunPolicy::batches>, InRerun<&RerunPolicy::reported>,
    InRerun<&RerunPolicy::forced>, InRerun<&RerunPolicy::placed>, InRerun<&RerunPolicy::asked>,
    InRerun<&RerunPolicy::concerned>, InRerun<&RerunPolicy::restored>, InRerun<&RerunPolicy::data>,
    InRerun<&RerunPolicy::guard>,
    // what joins them
    Seam<&Policies::cache_of>, Seam<&Policies::tracker_step>, Seam<&Policies::before_save>,
    Seam<&Policies::save_failed>, Seam<&Policies::iterated>, Seam<&Policies::before_update>,
    Seam<&Policies::shutdown>>;

constexpr std::size_t kSeams = std::tuple_size_v<AllSeams>;
using SeamNumbers = std::make_index_sequence<kSeams>;
template <std::size_t Number>
using SeamAt = std::tuple_element_t<Number, AllSeams>;

static_assert(kSeams <= kSeamsMax);

// A decision that is missing above would make seams_replaced_by() too small.
template <std::size_t... Number>
constexpr std::size_t bytes_of(std::index_sequence<Number...>) {
  return (sizeof(typename SeamAt<Number>::Function) + ...);
}
// libc++ aligns std::function to more than a pointer. Then there is padding between members, and
// sizes say nothing.
static_assert(bytes_of(SeamNumbers()) == sizeof(Policies) ||
                  alignof(std::function<void()>) > alignof(void*),
              "the list must hold each member once");

const Policies& right_policies() {
  static const Policies right;
  return right;
}

SeamSet& asked_here() {
  static thread_local SeamSet asked;
  return asked;
}

template <class Function>
struct CallOf;
template <class Result, class... Arguments>
struct CallOf<Result (*)(Arguments...)> {
  using Type = Result(Arguments...);
};
template <class Call>
struct CallOf<std::function<Call>> {
  using Type = Call;
};

template <std::size_t Number, class Call>
struct Watched;
template <std::size_t Number, class Result, class... Arguments>
struct Watched<Number, Result(Arguments...)> {
  static Result call(Arguments... arguments) {
    asked_here().set(Number);
    return SeamAt<Number>::in(right_policies())(std::forward<Arguments>(arguments)...);
  }
};

template <class Function>
bool is_same(Function* left, Function* right) {
  return left == right;
}
template <class Call>
bool is_same(const std::function<Call>& left, const std::function<Call>& right) {
  if (left.target_type() != right.target_type()) return false;
  const auto* pointer = left.template target<Call*>();
  return pointer == nullptr || *pointer == *right.template target<Call*>();
}

template <std::size_t Number>
bool is_replaced(const Policies& policies) {
  return !is_same(SeamAt<Number>::in(policies), SeamAt<Number>::in(right_policies()));
}

/// True if there is no function to watch.
template <std::size_t Number>
bool is_null() {
  return SeamAt<Number>::in(right_policies()) == nullptr;
}

template <std::size_t Number>
void watch(Policies& policies) {
  using Call = typename CallOf<typename SeamAt<Number>::Function>::Type;
  if (!is_null<Number>()) SeamAt<Number>::in(policies) = &Watched<Number, Call>::call;
}

template <std::size_t... Number>
SeamSet replaced_in(const Policies& policies, std::index_sequence<Number...>) {
  SeamSet replaced;
  (replaced.set(Number, is_replaced<Number>(policies)), ...);
  return replaced;
}

template <std::size_t... Number>
void watch_all(Policies& policies, std::index_sequence<Number...>) {
  (watch<Number>(policies), ...);
}

template <std::size_t... Number>
SeamSet null_seams(std::index_sequence<Number...>) {
  SeamSet null;
  (null.set(Number, is_null<Number>()), ...);
  return null;
}

}  // namespace

SeamSet seams_replaced_by(const Mutant& mutant) {
  Policies policies;
  mutant.apply(policies);
  return replaced_in(policies, SeamNumbers());
}

bool has_replaced_seams(const Policies& policies) {
  return replaced_in(policies, SeamNumbers()).any();
}

void watch_seams(Policies& policies) { watch_all(policies, SeamNumbers()); }

SeamSet take_asked_seams() {
  return std::exchange(asked_here(), SeamSet()) | null_seams(SeamNumbers());
}

}  // namespace reprise::sim
