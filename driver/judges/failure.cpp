#include "driver/judges/failure.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/natural_order.hpp"
#include "driver/judges/life_end.hpp"
#include "driver/judges/life_judge.hpp"
#include "driver/judges/placement.hpp"
#include "driver/record/history.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kConsequencesMax = 12;

/// Adds "tp1" for each of these axes of the mesh that has several ranks.
void add_coordinates(const Mesh& mesh, GroupRank member, const std::vector<std::string_view>& axes,
                     std::string& text) {
  for (const auto axis : axes) {
    if (mesh.axis_size(axis) <= 1) continue;
    text += (text.empty() ? "" : " ") + std::string(axis) +
            std::to_string(mesh.coordinate(member, axis));
  }
}

/// Returns the coordinates in one layout. `ranks` are those of its module.
std::string coordinates_in(const sim::Layout& layout, const std::vector<GlobalRank>& ranks,
                           std::int32_t rank) {
  const Mesh dense = sim::dense_mesh(layout, ranks);
  const auto member = dense.members().rank_of(GlobalRank{rank});
  if (!member) return "";
  const Mesh experts = sim::expert_mesh(layout, ranks);
  std::string text;
  add_coordinates(dense, *member, {"tp", "cp"}, text);
  add_coordinates(experts, *member, {"ep"}, text);
  if (layout.etp != 0 && layout.etp != layout.tp) {
    add_coordinates(experts, *member, {"etp"}, text);
  }
  if (layout.dp_replicate > 1) {
    add_coordinates(dense, *member, {"dp_shard", "dp_replicate"}, text);
  } else if (layout.dp > 1) {
    text += (text.empty() ? "dp" : " dp") + std::to_string(dense.coordinate(*member, "dp_shard"));
  }
  add_coordinates(dense, *member, {"pp"}, text);
  return text;
}

/// Collects consequences. The findings of a life with one code become one, with the first text.
class Follows {
 public:
  explicit Follows(const Finding& cause) : cause_(cause) {}

  void add(std::size_t life, std::optional<GlobalRank> rank, FindingCode code,
           const std::string& own) {
    if (is_cause(life, rank, code, own)) return;
    Group& group = group_of(life, std::string(name_of(code)), own);
    ++group.findings;
    if (!rank) return;
    auto& ranks = group.shown.ranks;
    const auto place = std::lower_bound(ranks.begin(), ranks.end(), rank->value);
    if (place == ranks.end() || *place != rank->value) ranks.insert(place, rank->value);
  }

  void add(const FoundDifference& first) {
    Group& group = group_of(first.life, "", "first difference: " + values_text(*first.difference));
    group.shown.ranks = {first.difference->rank};
    group.findings = 1;
  }

  void move_to(reports::Failure& failure) {
    for (auto& group : groups_) {
      if (failure.consequences.size() == kConsequencesMax) break;
      if (group.findings > 1) {
        group.shown.text += " (and " + std::to_string(group.findings - 1) + " more like it)";
      }
      failure.consequences.push_back(std::move(group.shown));
    }
    failure.consequences_left_out = groups_.size() - failure.consequences.size();
  }

 private:
  /// The cause's own text may begin with its rank.
  bool is_cause(std::size_t life, std::optional<GlobalRank> rank, FindingCode code,
                const std::string& text) const {
    return life == cause_.life && rank == cause_.rank && code == cause_.code &&
           cause_.text.ends_with(text);
  }

  struct Group {
    reports::Consequence shown;
    std::uint64_t findings = 0;
  };

  /// Returns the group of this life and code. If there is none yet, it gets this text.
  Group& group_of(std::size_t life, const std::string& code, const std::string& text) {
    for (auto& group : groups_) {
      if (group.shown.life == life && group.shown.code == code) return group;
    }
    groups_.push_back({{.life = life, .code = code, .text = text}, 0});
    return groups_.back();
  }

  const Finding& cause_;
  std::vector<Group> groups_;
};

/// Adds the errors by which ranks of the life ended. A planned death follows from nothing else.
void add_ends(std::size_t number, const LifeRecord& life, Follows& follows) {
  for (const auto& rank : life.ranks) {
    if (rank.ending == Ending::kReturned || died_as_planned(rank)) continue;
    const FindingCode code = rank.code.value_or(Code::kInternal);
    follows.add(number, GlobalRank{rank.result.rank}, code,
                judged::without_code(rank.message, code));
  }
}

/// Adds the end of a later life if the scenario does not allow it.
void add_unplanned_end(const Scenario& scenario, std::size_t number, const LifeRecord& life,
                       Follows& follows) {
  const auto ended = unplanned_end_of(scenario, number, life);
  if (ended) follows.add(number, ended->rank, ended->code, ended->text);
}

void add_findings(std::size_t number, const LifeRecord& life, Follows& follows) {
  for (const auto& rank : life.ranks) {
    for (const auto& finding : rank.findings) {
      follows.add(number, GlobalRank{rank.result.rank}, finding.code, text_with_place(finding));
    }
  }
  for (const auto& finding : findings_on_all(life)) {
    follows.add(number, finding.rank, finding.code, text_with_place(finding));
  }
}

/// Returns what judges found about keys of single ranks in the life.
reports::WrongKeys wrong_keys_in(std::size_t number, const LifeRecord& life) {
  std::map<std::pair<std::string, std::string>, std::set<std::int32_t>> found;
  const auto add = [&found](const Finding& finding, std::int32_t rank) {
    if (!finding.key.empty()) found[{finding.key, std::string(name_of(finding.code))}].insert(rank);
  };
  for (const auto& rank : life.ranks) {
    for (const auto& finding : rank.findings) add(finding, rank.result.rank);
  }
  for (const auto& finding : findings_on_all(life)) {
    if (finding.rank) add(finding, finding.rank->value);
  }
  reports::WrongKeys wrong{.life = number};
  for (const auto& [name, ranks] : found) {
    wrong.keys.push_back({name.first, name.second, {ranks.begin(), ranks.end()}});
  }
  std::stable_sort(wrong.keys.begin(), wrong.keys.end(),
                   [](const auto& a, const auto& b) { return in_natural_order(a.key, b.key); });
  const std::size_t shown = std::min(wrong.keys.size(), reports::kWrongKeysMax);
  wrong.left_out = wrong.keys.size() - shown;
  wrong.keys.resize(shown);
  return wrong;
}

/// Returns the wrong keys of the first life that has any, from the life `first` on.
std::optional<reports::WrongKeys> wrong_keys_of(std::span<const LifeRecord> lives,
                                                std::size_t first) {
  for (std::size_t i = first; i < lives.size(); ++i) {
    auto wrong = wrong_keys_in(i, lives[i]);
    if (!wrong.keys.empty()) return wrong;
  }
  return std::nullopt;
}

std::optional<std::int32_t> number_of(std::optional<GlobalRank> rank) {
  return rank ? std::optional(rank->value) : std::nullopt;
}

/// True if the difference was found where the cause was, so that it shows the cause's harm itself.
bool is_of_cause(const FoundDifference& first, const Finding& found) {
  return first.difference && found.life == first.life &&
         (!found.rank || found.rank->value == first.difference->rank) &&
         (found.key.empty() || found.key == first.difference->key);
}

/// Returns the tensor of the first difference; without one, the tensor that the cause names.
std::optional<WrongTensor> wrong_tensor_of(const Finding& found, const FoundDifference& first) {
  if (const auto& difference = first.difference) {
    return WrongTensor{.life = first.life,
                       .key = difference->key,
                       .rank = difference->rank,
                       .index = difference->index};
  }
  if (!found.life || found.key.empty()) return std::nullopt;
  return WrongTensor{.life = *found.life,
                     .at_save = found.phase == "save" || found.phase == "store",
                     .key = found.key,
                     .rank = number_of(found.rank)};
}

}  // namespace

std::string coordinates_of(const std::vector<sim::ModuleConfig>& modules, std::int32_t rank) {
  std::string text;
  for (const auto& module : modules) {
    const std::string own = coordinates_in(module.layout, module.ranks, rank);
    if (own.empty()) continue;
    text += (text.empty() ? "" : ", ") + module.name + (module.name.empty() ? "" : " ") + own;
  }
  return text;
}

Findings findings_on_all(const LifeRecord& life) {
  Findings all = judge_life(life);
  all.append(life.findings);
  return all;
}

std::string values_text(const reports::FirstDifference& first) {
  std::string index;
  for (const auto i : first.index) index += (index.empty() ? "" : ", ") + std::to_string(i);
  return first.key + "[" + index + "] saved " + first.saved + ", loaded " + first.loaded +
         ", which comes from " + first.comes_from;
}

reports::Failure failure_from(const Finding& cause) {
  return {.cause = cause.text,
          .life = cause.life,
          .step = cause.step,
          .phase = cause.phase,
          .rank = number_of(cause.rank),
          .key = cause.key,
          .saved = cause.expected,
          .loaded = cause.found};
}

reports::Failure failure_of(const Scenario& scenario, std::span<const LifeRecord> lives,
                            const Finding& found, const FoundDifference& first) {
  reports::Failure failure = failure_from(found);
  const bool shows_values = is_of_cause(first, found);
  if (shows_values) reports::put_values(*first.difference, failure);
  Follows follows(found);
  if (!shows_values && first.difference) follows.add(first);
  if (found.life) {
    const LifeRecord& life = lives[*found.life];
    failure.layout = life.layout;
    const bool is_job = *found.life < scenario.lives.size() && !scenario.lives[*found.life].command;
    if (failure.rank && is_job) {
      failure.coordinates = coordinates_of(modules_of(scenario, *found.life), *failure.rank);
    }
    failure.wrong_keys = wrong_keys_of(lives, *found.life);
    add_ends(*found.life, life, follows);
    for (std::size_t i = *found.life; i < lives.size(); ++i) {
      if (i > *found.life) add_unplanned_end(scenario, i, lives[i], follows);
      add_findings(i, lives[i], follows);
    }
  }
  follows.move_to(failure);
  if (const auto wrong = wrong_tensor_of(found, first)) {
    failure.placement = placement_of(scenario, lives, *wrong);
  }
  return failure;
}

}  // namespace reprise::driver
