#include "driver/exhaust/exhaust.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "driver/exhaust/loading_world.hpp"
#include "driver/runs/run_jobs.hpp"
#include "sim/mutants/asked.hpp"

namespace reprise::driver {
namespace {

using SteadyTime = std::chrono::steady_clock;

double seconds_since(SteadyTime::time_point start) {
  return std::chrono::duration<double>(SteadyTime::now() - start).count();
}

/// Collects results from several threads.
class Collector {
 public:
  Collector(const ExhaustRequest& request, const std::vector<sim::Layout>& layouts,
            ExhaustResult& result)
      : request_(request), layouts_(layouts), result_(result) {}

  void saved(const SavedLayout& one) {
    const std::lock_guard lock(mutex_);
    result_.saved_bytes += one.bytes;
    result_.tensors = one.model.tensors.size();
    const std::uint64_t objects = one.stored.objects.size();
    result_.objects_least = saves_ == 0 ? objects : std::min(result_.objects_least, objects);
    request_.progress("saving " + to_string(one.layout), ++saves_, layouts_.size());
  }

  void save_failed(std::size_t layout, const Error& error) {
    const std::lock_guard lock(mutex_);
    fail({layout, layout, "saving " + to_string(layouts_[layout]),
          std::string(name_of(error.code())), error.what()});
  }

  bool found_wrong() {
    const std::lock_guard lock(mutex_);
    return result_.wrong > 0;
  }

  void ended(std::size_t saved, std::size_t loading, const PairResult& pair) {
    const std::lock_guard lock(mutex_);
    result_.elements += pair.elements;
    result_.objects += pair.objects;
    result_.left += pair.left;
    const std::string name = to_string(layouts_[saved]) + " -> " + to_string(layouts_[loading]);
    if (pair.outcome == PairOutcome::kSame) ++result_.same;
    if (pair.outcome == PairOutcome::kRefused) ++result_.refused[pair.code];
    if (pair.outcome == PairOutcome::kWrong) fail({saved, loading, name, pair.code, pair.what});
    request_.progress(name, result_.passed() + result_.wrong, result_.planned);
  }

 private:
  void fail(ExhaustFailure failure) {
    ++result_.wrong;
    auto& kept = result_.failures;
    kept.insert(std::upper_bound(kept.begin(), kept.end(), failure), std::move(failure));
    if (kept.size() > ExhaustResult::kFailuresKept) kept.pop_back();
  }

  const ExhaustRequest& request_;
  const std::vector<sim::Layout>& layouts_;
  ExhaustResult& result_;
  std::mutex mutex_;
  std::uint64_t saves_ = 0;
};

/// Saves once under each layout. Returns fewer checkpoints if a save failed or the run was
/// interrupted.
std::vector<SavedLayout> save_all(const std::vector<sim::Layout>& layouts,
                                  const ExhaustRequest& request, const sim::Policies& policies,
                                  Collector& collector) {
  std::vector<SavedLayout> saved(layouts.size());
  run_jobs(layouts.size(), request.jobs, [&](std::size_t i) {
    if (request.interrupted()) return;
    try {
      saved[i] = save_under(layouts[i], request.subject, policies);
      collector.saved(saved[i]);
    } catch (const Error& error) {
      collector.save_failed(i, error);
    }
  });
  std::erase_if(saved, [](const SavedLayout& one) { return one.metadata.metadata == nullptr; });
  return saved;
}

}  // namespace

std::uint64_t ExhaustResult::refusals() const {
  std::uint64_t sum = 0;
  for (const auto& [code, pairs] : refused) sum += pairs;
  return sum;
}

ExhaustResult exhaust(const ExhaustRequest& request) {
  const auto start = SteadyTime::now();
  const auto asked_before = sim::AskedCount::in_this_process();
  sim::Policies policies;
  if (!request.mutant.empty()) sim::mutant_named(request.mutant).apply(policies);
  const std::vector<sim::Layout> layouts = layouts_up_to(request.world_max, request.cuts);
  std::vector<std::size_t> loading;
  for (std::size_t i = request.part - 1; i < layouts.size(); i += request.parts) {
    loading.push_back(i);
  }
  ExhaustResult result;
  result.layouts = layouts.size();
  result.planned = loading.size() * layouts.size();
  Collector collector(request, layouts, result);
  const auto saved = save_all(layouts, request, policies, collector);
  result.save_seconds = seconds_since(start);
  const auto stop = [&] {
    return request.interrupted() || (request.until_wrong && collector.found_wrong());
  };
  if (saved.size() == layouts.size()) {
    run_jobs(loading.size(), request.jobs, [&](std::size_t i) {
      load_under(
          layouts[loading[i]], saved, request.subject, policies,
          [&](std::size_t s, const PairResult& pair) { collector.ended(s, loading[i], pair); },
          stop);
    });
  }
  result.interrupted = request.interrupted();
  result.unasked = !request.mutant.empty() && sim::AskedCount::in_this_process() == asked_before;
  result.seconds = seconds_since(start);
  return result;
}

reports::Exhaustive reported(const ExhaustRequest& request, const ExhaustResult& result) {
  reports::ExhaustivePart part{.part = request.part,
                               .pairs = result.planned,
                               .passed = result.passed(),
                               .refused = result.refused,
                               .wrong = result.wrong,
                               .elements = result.elements,
                               .objects = result.objects,
                               .seconds = result.seconds};
  if (!result.failures.empty()) {
    const ExhaustFailure& first = result.failures.front();
    part.first_wrong = first.pair + ": " + first.code + ": " + first.what;
  }
  return {.model = request.subject.model,
          .sharding = std::string(name_of(request.subject.sharding)),
          .hsdp = request.cuts == DpCuts::kCopiesAndShards,
          .max_world = static_cast<std::uint64_t>(request.world_max),
          .layouts = result.layouts,
          .pairs = result.layouts * result.layouts,
          .of = request.parts,
          .parts = {part}};
}

reports::Verdict verdict_of(const ExhaustResult& result) {
  if (result.wrong > 0) return reports::Verdict::kFail;
  const bool all = result.planned > 0 && result.passed() == result.planned;
  return all && !result.unasked ? reports::Verdict::kPass : reports::Verdict::kInconclusive;
}

}  // namespace reprise::driver
