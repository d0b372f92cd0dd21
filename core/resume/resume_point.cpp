#include "core/resume/resume_point.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/checkpoint/stored_tracker.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/safetensors_tables.hpp"
#include "core/format/step_names.hpp"
#include "core/geometry/dtype.hpp"
#include "core/load/candidates.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

constexpr std::string_view kBridgeTracker = "latest_train_state.pt";
constexpr std::string_view kUnfinished = "-unfinished";

/// The directory in which programs look, and what is in it.
struct Root {
  Store& store;
  const std::string& path;
  const std::vector<Entry>& entries;

  std::string path_of(const std::string& name) const { return join_path(path, name); }
  const Entry* find(std::string_view name) const {
    const auto found = std::ranges::find(entries, name, &Entry::name);
    return found == entries.end() ? nullptr : &*found;
  }
};

/// A checkpoint that has a program's name.
struct Candidate {
  std::string name;
  std::int64_t order = 0;  ///< the higher one is preferred: its number, or its time
};
using Candidates = std::vector<Candidate>;

/// Returns the number behind `before`, if the rest of the name is a number.
std::optional<std::int64_t> number_after(std::string_view name, std::string_view before) {
  if (!name.starts_with(before)) return std::nullopt;
  name.remove_prefix(before.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.begin(), name.end(), number);
  if (error != std::errc{} || end != name.end() || number < 0) return std::nullopt;
  return number;
}

/// Returns the directories that are named `before` and a number, the highest first.
Candidates numbered(const Root& root, std::string_view before) {
  Candidates found;
  for (const Entry& entry : root.entries) {
    const auto number = entry.directory ? number_after(entry.name, before) : std::nullopt;
    if (number) found.push_back({entry.name, *number});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Candidate::order);
  return found;
}

/// Passes over all but the chosen one, with the reason that `why` returns.
void pass_over(const Candidates& candidates,
               const std::function<std::string(const Candidate&)>& why, ResumePoint& point) {
  for (const Candidate& candidate : candidates) {
    if (candidate.name != point.name) point.passed.push_back({candidate.name, why(candidate)});
  }
}

/// Returns why a candidate can't be used; nothing if it can.
using Usable = std::function<std::string(const Candidate&)>;
std::string always_usable(const Candidate& /*candidate*/) { return ""; }

/// Chooses the first candidate that can be used.
ResumePoint first_usable(const Candidates& candidates, const std::string& rule,
                         const Usable& usable) {
  ResumePoint point;
  const auto chosen = std::ranges::find_if(
      candidates, [&usable](const Candidate& candidate) { return usable(candidate).empty(); });
  if (chosen != candidates.end()) point.name = chosen->name;
  point.why = chosen == candidates.end() ? "none can be used" : rule;
  pass_over(
      candidates,
      [&usable](const Candidate& candidate) {
        const std::string unusable = usable(candidate);
        return unusable.empty() ? "older" : unusable;
      },
      point);
  return point;
}

std::string usable_if_committed(const Root& root, const Candidate& candidate) {
  return holds_metadata(root.store, root.path_of(candidate.name)) ? "" : "has no .metadata";
}

/// What a tracker names. `named` returns the name, and throws if the tracker can't be read.
ResumePoint by_tracker(const Root& root, std::string_view tracker, const Candidates& candidates,
                       const std::function<std::string()>& named) {
  ResumePoint point;
  const auto pass_over_all = [&](const char* why) {
    pass_over(
        candidates, [why](const Candidate&) { return why; }, point);
  };
  if (root.find(tracker) == nullptr) {
    point.why = "there is no " + std::string(tracker);
    pass_over_all("no tracker names it");
    return point;
  }
  std::string name;
  try {
    name = named();
  } catch (const Error& error) {
    point.why = std::string(tracker) + ": " + error.message();
    point.broken = true;
    return point;
  }
  const Entry* entry = root.find(name);
  const bool there = entry != nullptr && entry->directory;
  if (there) point.name = name;
  point.broken = !there;
  point.why =
      std::string(tracker) + (there ? " names it" : " names " + name + ", which is not there");
  const auto chosen = std::ranges::find(candidates, name, &Candidate::name);
  if (chosen == candidates.end()) {
    pass_over_all("the tracker does not name it");
    return point;
  }
  pass_over(
      candidates,
      [&](const Candidate& candidate) {
        return candidate.order > chosen->order ? "newer than what the tracker names" : "older";
      },
      point);
  return point;
}

std::optional<ResumePoint> of_megatron(const Root& root) {
  const Candidates candidates = numbered(root, "iter_");
  const bool tracked = root.find(kTrackerFile) != nullptr;
  if (candidates.empty() && (!tracked || !numbered(root, "global_step_").empty())) {
    return std::nullopt;
  }
  return by_tracker(root, kTrackerFile, candidates,
                    [&root] { return directory_of(stored_tracker(root.store, root.path)); });
}

/// Returns the step in Megatron-Bridge's tracker: torch.save of a dict with tensors.
std::int64_t bridge_step(const Root& root) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20U;
  const std::string path = root.path_of(std::string(kBridgeTracker));
  const BytesItem item =
      read_bytes_item(read_all(root.store, path, kBytesMax), {.file = root.store.display(path)});
  const Value* step = item.value ? item.value->find("step") : nullptr;
  if (step != nullptr && step->as<std::int64_t>() != nullptr) return *step->as<std::int64_t>();
  const auto* tensor = step != nullptr ? step->as<TensorValue>() : nullptr;
  if (tensor == nullptr || volume(tensor->shape) != 1) {
    throw Error(Code::kTornFile, "it holds no step", {.file = root.store.display(path)});
  }
  return static_cast<std::int64_t>(scalar_at(tensor->dtype, tensor->data.data()).first);
}

std::optional<ResumePoint> of_bridge(const Root& root) {
  if (root.find(kBridgeTracker) == nullptr) return std::nullopt;
  return by_tracker(root, kBridgeTracker, numbered(root, "iter_"),
                    [&root] { return StepNames().directory_of(Step{bridge_step(root)}); });
}

std::optional<ResumePoint> of_torchtitan(const Root& root) {
  const Candidates candidates = numbered(root, "step-");
  if (candidates.empty()) return std::nullopt;
  return first_usable(candidates, "the highest step with .metadata",
                      [&root](const Candidate& candidate) -> std::string {
                        for (const std::string_view name :
                             {std::string_view(".metadata"), kSafetensorsModelIndex}) {
                          const auto path =
                              join_path(root.path_of(candidate.name), std::string(name));
                          const auto entry = root.store.stat(path);
                          if (entry && !entry->directory) return "";
                        }
                        return "has neither .metadata nor " + std::string(kSafetensorsModelIndex);
                      });
}

std::optional<ResumePoint> of_verl(const Root& root) {
  const Candidates candidates = numbered(root, "global_step_");
  if (candidates.empty()) return std::nullopt;
  return by_tracker(root, kTrackerFile, candidates, [&root] {
    const Tracker tracker = stored_tracker(root.store, root.path);
    return "global_step_" + (tracker.step ? std::to_string(tracker.step->value) : "release");
  });
}

/// Returns the entries that `is_one` accepts, the last changed first.
Candidates by_time(const Root& root, const std::function<bool(const Entry&)>& is_one) {
  Candidates found;
  for (const Entry& entry : root.entries) {
    if (is_one(entry)) found.push_back({entry.name, entry.modified_ns.value_or(0)});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &Candidate::order);
  return found;
}

std::optional<ResumePoint> of_nemo(const Root& root) {
  const auto named = [](std::string_view end) {
    return [end](const Entry& entry) {
      return entry.directory ? entry.name.ends_with(end)
                             : entry.name.ends_with(std::string(end) + ".ckpt");
    };
  };
  const auto usable = [&root](const Candidate& candidate) -> std::string {
    std::string base = candidate.name;
    if (base.ends_with(".ckpt")) base.resize(base.size() - 5);
    return root.find(base + std::string(kUnfinished)) == nullptr ? "" : "is marked as unfinished";
  };
  const Candidates last = by_time(root, named("-last"));
  const Candidates end = by_time(root, named("-end"));
  if (last.empty() && end.empty()) return std::nullopt;
  ResumePoint point = first_usable(last, "the last changed one named -last", usable);
  for (const Candidate& candidate : end) {
    if (!usable(candidate).empty()) continue;
    point.passed.insert(point.passed.begin(), {point.name, "the run has ended"});
    if (point.name.empty()) point.passed.erase(point.passed.begin());
    point.name.clear();
    point.why = candidate.name + " says that the run has ended";
    break;
  }
  for (const Candidates& marked : {last, end}) {
    for (const Candidate& candidate : marked) {
      const std::string unusable = usable(candidate);
      if (unusable.empty()) continue;
      point.broken = true;
      point.why += "; " + candidate.name + " " + unusable;
    }
  }
  return point;
}

std::optional<ResumePoint> of_lightning(const Root& root) {
  const Candidates candidates = by_time(root, [](const Entry& entry) {
    return entry.name.starts_with("last") && entry.name.ends_with(".ckpt");
  });
  if (candidates.empty()) return std::nullopt;
  return first_usable(candidates, "the last changed last*.ckpt", always_usable);
}

std::optional<ResumePoint> by_number(const Root& root, std::string_view before) {
  const Candidates candidates = numbered(root, before);
  if (candidates.empty()) return std::nullopt;
  return first_usable(candidates, "the highest number", always_usable);
}
std::optional<ResumePoint> of_transformers(const Root& root) {
  return by_number(root, "checkpoint-");
}
std::optional<ResumePoint> of_accelerate(const Root& root) {
  return by_number(root, "checkpoint_");
}

/// What a load by this engine takes, and in which order it would fall back.
std::optional<ResumePoint> of_reprise(const Root& root) {
  const bool own_names = !numbered(root, "step-").empty();
  const Candidates named = numbered(root, own_names ? "step-" : "iter_");
  if (named.empty()) return std::nullopt;
  ResumePoint point;
  std::vector<std::string> in_order;
  try {
    const StepNames names = own_names ? StepNames("step-%d") : StepNames();
    for (const auto& location :
         candidates(root.store, root.path, Fallback::kNewestWhole, names).locations) {
      in_order.push_back(location.directory.substr(location.directory.rfind('/') + 1));
    }
    point.name = in_order.front();
    point.why =
        own_names ? "the highest step with metadata" : "the tracker names it, or it is the newest";
  } catch (const Error& error) {
    point.why = error.message();
  }
  pass_over(
      named,
      [&](const Candidate& candidate) -> std::string {
        const auto place = std::ranges::find(in_order, candidate.name);
        if (place != in_order.end()) return "loaded if those before it are damaged";
        return usable_if_committed(root, candidate).empty() ? "newer than what the tracker names"
                                                            : "has no .metadata";
      },
      point);
  return point;
}

struct Rule {
  const char* program;
  std::optional<ResumePoint> (*point)(const Root&);
};
constexpr Rule kRules[] = {
    {"Megatron-LM", of_megatron},
    {"Megatron-Bridge", of_bridge},
    {"torchtitan", of_torchtitan},
    {"verl", of_verl},
    {"NeMo", of_nemo},
    {"Lightning", of_lightning},
    {"transformers", of_transformers},
    {"Accelerate", of_accelerate},
    {"Reprise", of_reprise},
};

}  // namespace

std::vector<std::string> programs_that_resume() {
  std::vector<std::string> programs;
  for (const Rule& rule : kRules) programs.emplace_back(rule.program);
  return programs;
}

std::vector<ResumePoint> resume_points(Store& store, const std::string& root) {
  const std::vector<Entry> entries = store.list(root);
  std::vector<ResumePoint> points;
  for (const Rule& rule : kRules) {
    auto point = rule.point({store, root, entries});
    if (!point) continue;
    point->program = rule.program;
    points.push_back(std::move(*point));
  }
  return points;
}

}  // namespace reprise
