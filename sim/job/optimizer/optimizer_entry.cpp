#include "sim/job/optimizer/optimizer_entry.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/codes.hpp"
#include "core/base/print.hpp"
#include "sim/job/optimizer/dict_reader.hpp"

namespace reprise::sim {
namespace {

// --- writing ------------------------------------------------------------------------------------

Value encode_group(const GroupSettings& group) {
  List params;
  params.reserve(group.params.size());
  for (const auto place : group.params) params.emplace_back(place);
  Dict all;
  all.reserve(9);
  all.emplace_back("params", std::move(params));
  all.emplace_back("lr", group.lr);
  all.emplace_back("weight_decay", group.weight_decay);
  all.emplace_back("betas", Tuple{{group.beta1, group.beta2}});
  all.emplace_back("eps", group.eps);
  all.emplace_back("lr_mult", group.lr_mult);
  all.emplace_back("wd_mult", group.wd_mult);
  all.emplace_back("is_expert_parallel", group.of_experts);
  all.emplace_back("step", group.step);
  return all;
}

// --- reading ------------------------------------------------------------------------------------

GroupSettings decode_group(const DictReader& in) {
  GroupSettings group;
  in.read("lr", group.lr);
  in.read("weight_decay", group.weight_decay);
  in.read("eps", group.eps);
  in.read("lr_mult", group.lr_mult);
  in.read("wd_mult", group.wd_mult);
  in.read("is_expert_parallel", group.of_experts);
  in.read("step", group.step);
  const auto* betas = in.value("betas").as<Tuple>();
  if (betas == nullptr || betas->items.size() != 2 || betas->items[0].as<double>() == nullptr ||
      betas->items[1].as<double>() == nullptr) {
    in.refuse("has no pair of betas");
  }
  group.beta1 = *betas->items[0].as<double>();
  group.beta2 = *betas->items[1].as<double>();
  return group;
}

std::vector<GroupSettings> decode_groups(const DictReader& entry) {
  if (!entry.has(kWrapper)) {
    throw Error(passed_on::kWrapperMissing,
                entry.inner(kWrapper) + " is missing, which should contain the parameter groups",
                {.key = entry.inner(kWrapper)});
  }
  const auto inner = entry.entries(kWrapper);
  const auto* list = inner.value(kParamGroups).as<List>();
  if (list == nullptr) inner.refuse("has no list of param_groups");
  std::vector<GroupSettings> groups;
  for (std::size_t g = 0; g < list->size(); ++g) {
    groups.push_back(
        decode_group({(*list)[g], inner.inner(kParamGroups) + "[" + std::to_string(g) + "]"}));
  }
  return groups;
}

// --- matching -----------------------------------------------------------------------------------

using Identifier = std::tuple<double, double, bool>;

Identifier identifier_of(const GroupSettings& group) {
  return {group.wd_mult, group.lr_mult, group.of_experts};
}

std::string text_of(const GroupSettings& group) {
  return "wd_mult " + join(std::vector{group.wd_mult}, "") + " lr_mult " +
         join(std::vector{group.lr_mult}, "") + (group.of_experts ? " of experts" : "");
}

void refuse_duplicates(const std::vector<GroupSettings>& groups, const std::string& whose) {
  for (std::size_t a = 0; a < groups.size(); ++a) {
    for (std::size_t b = a + 1; b < groups.size(); ++b) {
      if (identifier_of(groups[a]) != identifier_of(groups[b])) continue;
      throw Error(passed_on::kGroupCollision, "two parameter groups of " + whose +
                                                  " are both known by " + text_of(groups[a]) +
                                                  ": which is which can't be told");
    }
  }
}

}  // namespace

Value encode(const OptimizerEntry& entry) {
  // Not made from lists in braces, whose elements can only be copied.
  List groups;
  groups.reserve(entry.settings.groups.size());
  for (const auto& group : entry.settings.groups) groups.push_back(encode_group(group));
  Dict wrapped;
  wrapped.emplace_back(kParamGroups, std::move(groups));
  const LossScale& scale = entry.settings.loss_scale;
  Dict all;
  all.reserve(3);
  all.emplace_back(kWrapper, std::move(wrapped));
  all.emplace_back(kGradScaler, Dict{{"scale", scale.scale},
                                     {"growth_tracker", scale.growth_tracker},
                                     {"growth_interval", scale.growth_interval}});
  all.emplace_back(kShardingType, std::string(name_of(entry.sharding)));
  return all;
}

OptimizerEntry decode_optimizer(const Value& value, const std::string& path) {
  OptimizerEntry entry;
  const DictReader in(value, path);
  entry.settings.groups = decode_groups(in);
  const auto scaler = in.entries(kGradScaler);
  scaler.read("scale", entry.settings.loss_scale.scale);
  scaler.read("growth_tracker", entry.settings.loss_scale.growth_tracker);
  scaler.read("growth_interval", entry.settings.loss_scale.growth_interval);
  std::string sharding;
  in.read(kShardingType, sharding);
  entry.sharding = sharding_named(sharding);
  return entry;
}

std::vector<GroupSettings> without_params(std::vector<GroupSettings> groups) {
  for (auto& group : groups) group.params.clear();
  return groups;
}

void put_in_order(std::vector<GroupSettings>& groups) {
  std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return identifier_of(a) < identifier_of(b);
  });
}

std::vector<GroupSettings> matched_by_identifier(const GroupMatch& match) {
  if (match.stored.size() != match.own.size()) {
    throw Error(Code::kUnsupported, "the checkpoint has " + std::to_string(match.stored.size()) +
                                        " parameter groups of " + match.who + " and this job " +
                                        std::to_string(match.own.size()));
  }
  refuse_duplicates(match.stored, match.who + " in the checkpoint");
  refuse_duplicates(match.own, match.who + " in this job");
  std::vector<GroupSettings> groups;
  for (const auto& own : match.own) {
    const auto stored = std::find_if(
        match.stored.begin(), match.stored.end(),
        [&](const GroupSettings& group) { return identifier_of(group) == identifier_of(own); });
    if (stored == match.stored.end()) {
      throw Error(Code::kUnsupported, "the checkpoint has no parameter group of " + match.who +
                                          " that is known by " + text_of(own));
    }
    groups.push_back(*stored);
    groups.back().params = own.params;
  }
  return groups;
}

}  // namespace reprise::sim
