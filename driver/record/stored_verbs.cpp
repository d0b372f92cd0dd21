#include "driver/record/stored_verbs.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <sstream>
#include <utility>

#include "core/adapters/posix/host_device.hpp"
#include "core/base/codes.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/diff/diff_seamed.hpp"
#include "core/ports/no_progress.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/reshard/reshard_seamed.hpp"
#include "core/save/commit_protocol.hpp"
#include "properties/finding_code.hpp"
#include "reprise/error.hpp"
#include "sim/world/copy_tree.hpp"

namespace reprise::driver {
namespace {

/// Directory of the checkpoints as they were before they were resharded. No job looks there.
constexpr const char* kOriginals = "originals";

std::string original_of(const std::string& directory) {
  return join_path(kOriginals, directory.substr(directory.rfind('/') + 1));
}

void write_anew(Store& store, const std::string& from, const std::string& to,
                const ReshardAction& plan, const ReshardSeams& seams) {
  ReshardOptions options{.writers = static_cast<std::int32_t>(plan.writers),
                         .ranks = {.ranks = plan.ranks}};
  options.rule = [ranks = plan.ranks](const std::string&, const Dims& shape) -> std::optional<Cut> {
    if (ranks == 0 || shape.empty()) return std::nullopt;
    return Cut{0, ranks};
  };
  Checkpoint source = Checkpoint::open(store, from);
  HostDevice device("host", 0);
  TasksAtOnce tasks;
  NoTrace trace;
  NoProgress progress;
  reshard(source, {to}, options, {store, device, tasks, trace, progress}, seams);
}

/// Returns the first difference or damage that the report names; empty if it names none.
std::string first_of(const DiffReport& report) {
  std::ostringstream text;
  if (!report.damage.empty()) {
    text << report.damage.front();
    return text.str();
  }
  const auto name_first = [&text](const auto& items) {
    for (const auto& item : items) {
      if (item.verdict == DiffVerdict::kSame || !text.str().empty()) continue;
      text << item.key << ": " << name_of(item.verdict);
    }
  };
  name_first(report.tensors);
  name_first(report.objects);
  name_first(report.files);
  return text.str();
}

}  // namespace

void reshard_stored(Store& store, const ReshardAction& plan, const ReshardSeams& seams,
                    Findings& findings) {
  const std::string place = locate(store, kCheckpointRoot).directory;
  const std::string original = original_of(place);
  store.remove(original);
  sim::copy_tree({store, place}, {store, original});
  store.sync_directory(kOriginals);
  store.sync_directory("");
  try {
    write_anew(store, original, place, plan, seams);
  } catch (const Error& error) {
    if (plan.fails != error.code()) throw;
    return;
  }
  if (!plan.fails) return;
  findings.push_back({.code = judged::kVerdictDisagreement,
                      .text = "the reshard should have failed with " +
                              std::string(name_of(*plan.fails)) + " but did not fail",
                      .phase = "store"});
}

void diff_stored(Store& store, const DiffAction& plan, const DiffSeams& seams, Findings& findings) {
  const auto directory_of = [](std::int64_t step) {
    return CommitTarget::iteration(kCheckpointRoot, Step{step}).directory;
  };
  const std::string one =
      plan.step ? directory_of(*plan.step) : locate(store, kCheckpointRoot).directory;
  const std::string other = plan.with ? directory_of(*plan.with) : original_of(one);
  Checkpoint left = Checkpoint::open(store, one);
  Checkpoint right = Checkpoint::open(store, other);
  HostDevice device("host", 0);
  NoProgress progress;
  const DiffOptions options{.wanted = [&plan](std::string_view key) {
    return std::none_of(plan.ignore.begin(), plan.ignore.end(),
                        [key](const std::string& begin) { return key.starts_with(begin); });
  }};
  const DiffReport report = diff(left, right, device, options, progress, seams);
  const DiffOutcome outcome = report.outcome();
  if (outcome == plan.says) return;
  const std::string first = first_of(report);
  findings.push_back({.code = judged::kVerdictDisagreement,
                      .text = "the diff of " + one + " and " + other + " should have said '" +
                              std::string(name_of(plan.says)) + "' but said '" +
                              std::string(name_of(outcome)) + "'" +
                              (first.empty() ? "" : ": " + first),
                      .phase = "store"});
}

}  // namespace reprise::driver
