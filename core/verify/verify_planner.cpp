#include "core/verify/verify_planner.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/print.hpp"

namespace reprise {
namespace {

std::string text_of(const PathStep& step) {
  const auto* name = std::get_if<std::string>(&step);
  return name != nullptr ? *name : std::to_string(std::get<std::int64_t>(step));
}

/// Joins the steps of a path into a flat key, as torch does.
std::string spelt(const std::vector<PathStep>& path) {
  std::string text;
  for (const PathStep& step : path) text += (text.empty() ? "" : ".") + text_of(step);
  return text;
}

bool begins_with(const std::vector<PathStep>& path, const std::vector<PathStep>& first) {
  return path.size() >= first.size() && std::equal(first.begin(), first.end(), path.begin());
}

/// Counts the keys that have one kind of problem, and remembers the first few of these keys.
class Named {
 public:
  void add(std::string_view name) {
    constexpr std::size_t kNamed = 3;
    constexpr std::size_t kShown = 200;
    if (count_++ < kNamed) first_.emplace_back(name.substr(0, kShown));
  }
  void report(const std::string& what, Findings& findings) const {
    if (count_ == 0) return;
    const std::size_t others = count_ - first_.size();
    findings.push_back({Severity::kWarning, Code::kNotRequested,
                        what + ": " + join(first_, ", ") +
                            (others == 0 ? "" : " and " + with_commas(others) + " more") +
                            "; dcp_to_torch_save loses or misplaces them"});
  }

 private:
  std::size_t count_ = 0;
  std::vector<std::string> first_;
};

std::vector<std::string_view> keys_of(const Catalog& catalog) {
  std::vector<std::string_view> keys;
  for (const auto& tensor : catalog.tensors) keys.push_back(tensor.key);
  for (const auto& object : catalog.objects) keys.push_back(object.key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

void check_keys(const Metadata& metadata, Findings& findings) {
  const std::vector<std::string_view> keys = keys_of(metadata.catalog);
  std::vector<std::string_view> planned;
  for (const auto& entry : metadata.planner_data) planned.emplace_back(entry.key);
  std::sort(planned.begin(), planned.end());
  const auto only = [](const auto& in, const auto& and_not_in) {
    std::vector<std::string_view> found;
    std::set_difference(in.begin(), in.end(), and_not_in.begin(), and_not_in.end(),
                        std::back_inserter(found));
    Named named;
    for (const auto key : found) named.add(key);
    return named;
  };
  only(keys, planned).report("planner_data has no path for keys", findings);
  only(planned, keys).report("planner_data has paths for keys that do not exist", findings);
}

void check_paths(const Metadata& metadata, Findings& findings) {
  Named misspelt;
  std::vector<const PlannerEntry*> by_path;
  for (const auto& entry : metadata.planner_data) {
    if (spelt(entry.path) != entry.key) misspelt.add(entry.key + " as " + spelt(entry.path));
    by_path.push_back(&entry);
  }
  misspelt.report("planner_data gives keys paths with other names", findings);
  std::sort(by_path.begin(), by_path.end(),
            [](const PlannerEntry* a, const PlannerEntry* b) { return a->path < b->path; });
  Named shared;
  for (std::size_t i = 1; i < by_path.size(); ++i) {
    const PlannerEntry& first = *by_path[i - 1];
    if (begins_with(by_path[i]->path, first.path)) {
      shared.add(first.key + " and " + by_path[i]->key);
    }
  }
  shared.report("planner_data gives two keys one path, or a path within the other's", findings);
}

}  // namespace

Findings check_planner(const Metadata& metadata) {
  if (metadata.planner_data.empty()) return {};
  Findings findings;
  check_keys(metadata, findings);
  check_paths(metadata, findings);
  return findings;
}

}  // namespace reprise
