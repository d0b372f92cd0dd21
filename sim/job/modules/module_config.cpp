#include "sim/job/modules/module_config.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

using Modules = std::span<const ModuleConfig>;

bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
}

/// Throws if a name would make keys ambiguous: a dot or a slash would end the name within a key,
/// and a number would look like an index in a chain.
void check_name(const std::string& name) {
  const bool word = !name.empty() && std::all_of(name.begin(), name.end(), is_word);
  if (word && !(name.front() >= '0' && name.front() <= '9')) return;
  throw Error(Code::kUsage, "'" + name +
                                "' can't be the name of a module: the name is used in keys and has "
                                "to be of the letters a-z, of digits and of _, a letter first");
}

void check_names(Modules modules) {
  std::set<std::string_view> names;
  for (const auto& module : modules) {
    check_name(module.name);
    if (names.insert(module.name).second) continue;
    throw Error(Code::kUsage, "two modules have the name " + module.name);
  }
}

std::vector<GlobalRank> sorted_ranks(const ModuleConfig& module) {
  auto ranks = members_of(module.layout, module.ranks).members();
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

void check_apart(Modules modules) {
  for (std::size_t a = 0; a < modules.size(); ++a) {
    for (std::size_t b = a + 1; b < modules.size(); ++b) {
      const auto of_a = sorted_ranks(modules[a]);
      const auto of_b = sorted_ranks(modules[b]);
      std::vector<GlobalRank> shared;
      std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                            std::back_inserter(shared));
      if (shared.empty()) continue;
      throw Error(Code::kLayoutMismatch, "the modules " + modules[a].name + " and " +
                                             modules[b].name + " share the ranks " +
                                             join(shared, " ") +
                                             " and not all: give each its own, or all ranks to all "
                                             "modules");
    }
  }
}

void check_tiling(Modules modules, std::int32_t world_size) {
  const Group members = job_members(modules);
  std::vector<std::int32_t> idle;
  for (std::int32_t rank = 0; rank < world_size; ++rank) {
    if (!members.rank_of({rank})) idle.push_back(rank);
  }
  if (!idle.empty()) {
    throw Error(Code::kLayoutMismatch, "no module is placed on the ranks " + join(idle, " ") +
                                           ": there are " + to_string(modules) + " in a world of " +
                                           std::to_string(world_size));
  }
  if (members.size() > world_size) {
    throw Error(Code::kLayoutMismatch, "the modules " + to_string(modules) + " need " +
                                           std::to_string(members.size()) +
                                           " ranks, and there are " + std::to_string(world_size));
  }
}

}  // namespace

std::string module_prefix(std::string_view name) {
  return name.empty() ? std::string() : "mimo." + std::string(name) + ".";
}

std::vector<ModuleConfig> side_by_side(std::vector<ModuleConfig> modules) {
  std::int32_t next = 0;
  for (auto& module : modules) {
    if (!module.ranks.empty()) continue;
    for (std::int32_t i = 0; i < module.layout.world_size(); ++i) module.ranks.push_back({next++});
  }
  return modules;
}

void check_modules(Modules modules, std::int32_t world_size) {
  if (modules.size() == 1 && modules.front().name.empty()) return;
  check_names(modules);
  const auto ranks = sorted_ranks(modules.front());
  const bool shared = std::all_of(modules.begin(), modules.end(), [&](const ModuleConfig& module) {
    return sorted_ranks(module) == ranks;
  });
  if (!shared) check_apart(modules);
  check_tiling(modules, world_size);
}

Group job_members(Modules modules) {
  if (modules.size() == 1) return members_of(modules.front().layout, modules.front().ranks);
  std::set<GlobalRank> all;
  for (const auto& module : modules) {
    for (const auto rank : sorted_ranks(module)) all.insert(rank);
  }
  return Group({all.begin(), all.end()});
}

bool same_grids(Modules a, Modules b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [b](const ModuleConfig& one) {
           const ModuleConfig* other = module_named(b, one.name);
           if (other == nullptr || !(one.layout == other->layout)) return false;
           return one.name.empty() ||
                  members_of(one.layout, one.ranks) == members_of(other->layout, other->ranks);
         });
}

const ModuleConfig* module_named(Modules modules, std::string_view name) {
  const auto found = std::find_if(modules.begin(), modules.end(),
                                  [name](const auto& module) { return module.name == name; });
  return found == modules.end() ? nullptr : &*found;
}

std::ostream& operator<<(std::ostream& out, const ModuleConfig& module) {
  if (module.name.empty()) return out << module.layout;
  return out << module.name << ": " << module.layout << " on "
             << join(members_of(module.layout, module.ranks).members(), " ");
}

std::string to_string(Modules modules) {
  std::ostringstream text;
  const char* gap = "";
  for (const auto& module : modules) {
    text << gap << module;
    gap = ", ";
  }
  return text.str();
}

}  // namespace reprise::sim
