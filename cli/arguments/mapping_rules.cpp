#include "cli/arguments/mapping_rules.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/arguments/mapping_steps.hpp"
#include "cli/arguments/model_facts.hpp"
#include "cli/arguments/rule_text.hpp"
#include "cli/arguments/rule_values.hpp"
#include "cli/keys/key_pattern.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

using driver::YamlMap;

struct Rule {
  std::vector<KeyPattern> from;
  std::vector<Step> steps;
  std::vector<std::string> to;
  bool leave_out = false;
  std::string refuse;  ///< if not empty, why the rules do not hold for what matches
  std::string place;   ///< for messages
};

Rule read_rule(YamlMap map) {
  Rule rule;
  for (const auto& text : map.texts("from")) rule.from.emplace_back(text, "from");
  if (rule.from.empty()) map.required("from");
  rule.leave_out = map.flag("leave_out").value_or(false);
  rule.refuse = map.text("refuse").value_or("");
  rule.to = map.texts("to");
  if (map.has("steps")) {
    for (const auto& item : map.items("steps")) {
      rule.steps.push_back(read_step(YamlMap(item, map.file(), "the step")));
    }
  }
  map.know("steps");
  if (rule.to.empty() && !rule.leave_out && rule.refuse.empty()) map.required("to");
  map.refuse_unknown();
  return rule;
}

/// Returns the first argument that is stored, of names such as "new_name or old_name".
std::optional<nlohmann::json> argument_of(const std::string& names, ModelFacts& facts) {
  constexpr std::string_view kOr = " or ";
  for (std::size_t begin = 0;;) {
    const std::size_t end = names.find(kOr, begin);
    auto said = facts.argument(names.substr(begin, end - begin));
    if (said || end == std::string::npos) return said;
    begin = end + kOr.size();
  }
}

/// Among the values of an argument: a checkpoint of a release that does not have the argument yet.
constexpr const char* kUnsaid = "unsaid";

/// Compares the arguments that the checkpoint states with those for which the rules hold. Returns
/// those that it does not state.
std::vector<std::string> check_expected(const YAML::Node& node, const std::string& file,
                                        RuleValues& values, ModelFacts& facts) {
  YamlMap expected(node, file, "expects");
  std::vector<std::string> unsaid;
  for (const auto& name : expected.keys()) {
    const auto wanted = values.filled(expected.node(name));
    const auto accepts = [&wanted](const nlohmann::ordered_json& value) {
      return wanted.is_array() ? std::find(wanted.begin(), wanted.end(), value) != wanted.end()
                               : wanted == value;
    };
    const auto said = argument_of(name, facts);
    if (!said) {
      if (!(facts.has_arguments() && accepts(kUnsaid))) unsaid.push_back(name);
      continue;
    }
    const nlohmann::ordered_json is = *said;
    if (accepts(is)) continue;
    throw Error(Code::kUsage,
                "the rules hold for a model of which the argument " + name + " is " +
                    wanted.dump() + "; the checkpoint says " + is.dump(),
                {.file = file});
  }
  return unsaid;
}

/// Returns the text with "$1" to "$9" replaced by groups and "{1}" to "{9}" by numbers.
std::string named(const std::string& text, const Row& row) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&text](std::size_t at) -> std::size_t {
      return at < text.size() && text[at] >= '1' && text[at] <= '9'
                 ? static_cast<std::size_t>(text[at] - '0')
                 : 0;
    };
    const std::size_t number = digit(i + 1);
    const bool group = text[i] == '$' && number != 0;
    const bool index = text[i] == '{' && number != 0 && i + 2 < text.size() && text[i + 2] == '}';
    if ((group && number > row.groups.size()) || (index && number > row.numbers.size())) {
      throw Error(Code::kUsage,
                  "'" + text + "' names " + (group ? "group " : "number ") +
                      std::to_string(number) + ", and there are only " +
                      std::to_string(group ? row.groups.size() : row.numbers.size()),
                  {.key = row.tensors.front().key});
    }
    if (group) {
      name += row.groups[number - 1];
      ++i;
    } else if (index) {
      name += std::to_string(row.numbers[number - 1]);
      i += 2;
    } else {
      name += text[i];
    }
  }
  return name;
}

/// Applies a rule to the tensors whose keys its expressions matched.
std::vector<MappedTensor> apply(const Rule& rule, std::vector<Row> rows) {
  for (const auto& row : rows) {
    const auto lacking = std::find(row.there.begin(), row.there.end(), false);
    if (lacking == row.there.end()) continue;
    const auto known = std::find(row.there.begin(), row.there.end(), true) - row.there.begin();
    throw Error(Code::kUsage,
                "expression " + std::to_string(lacking - row.there.begin() + 1) +
                    " matches no tensor that belongs to this one",
                {.key = row.tensors[static_cast<std::size_t>(known)].key});
  }
  for (const auto& step : rule.steps) rows = step(std::move(rows));
  std::vector<MappedTensor> result;
  for (Row& row : rows) {
    if (row.tensors.size() != rule.to.size()) {
      throw Error(Code::kUsage,
                  "the steps make " + std::to_string(row.tensors.size()) +
                      " tensors, and 'to' has " + std::to_string(rule.to.size()) + " names",
                  {.key = row.tensors.front().key});
    }
    for (std::size_t t = 0; t < row.tensors.size(); ++t) {
      row.tensors[t].key = named(rule.to[t], row);
      result.push_back(std::move(row.tensors[t]));
    }
  }
  return result;
}

bool goes_before(const MappedTensor& a, const MappedTensor& b) {
  return in_natural_order(a.key, b.key);
}

/// Applies the rules to all tensors, which have these names.
void apply_all(const std::vector<Rule>& rules, const Catalog& catalog,
               const std::vector<std::string>& names, Mapping& mapping) {
  std::vector<std::map<std::vector<std::string>, Row>> rows(rules.size());
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    const std::string key(name_of(catalog.tensors[t]));
    bool known = false;
    for (std::size_t r = 0; r < rules.size() && !known; ++r) {
      for (std::size_t f = 0; f < rules[r].from.size() && !known; ++f) {
        const auto groups = rules[r].from[f].groups_of(names[t]);
        if (!groups) continue;
        known = true;
        if (!rules[r].refuse.empty()) {
          throw Error(Code::kUsage, rules[r].place + ": " + rules[r].refuse, {.key = key});
        }
        // Tensors belong together by what the groups matched; a tensor alone has a row of its own.
        const bool alone = rules[r].from.size() == 1;
        Row& row = rows[r][alone ? std::vector{key} : *groups];
        row.groups = *groups;
        row.tensors.resize(rules[r].from.size());
        row.there.resize(rules[r].from.size());
        if (row.there[f]) {
          throw Error(Code::kUsage,
                      rules[r].place + ": expression " + std::to_string(f + 1) + " matches " +
                          row.tensors[f].key + ", too, with the same groups",
                      {.key = key});
        }
        row.there[f] = true;
        row.tensors[f] = mapped(catalog.tensors[t], t);
        if (rules[r].leave_out) mapping.left_out.push_back(key);
      }
    }
    if (!known) mapping.unmatched.push_back(key);
  }
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (rows[r].empty()) mapping.idle.push_back(r + 1);
    if (rules[r].leave_out) continue;
    try {
      std::vector<Row> matched;
      for (auto& [groups, row] : rows[r]) matched.push_back(std::move(row));
      for (auto& tensor : apply(rules[r], std::move(matched))) {
        mapping.tensors.push_back(std::move(tensor));
      }
    } catch (const Error& error) {
      throw Error(error.code(), rules[r].place + ": " + error.message(), error.place());
    }
  }
  std::sort(mapping.tensors.begin(), mapping.tensors.end(), goes_before);
}

}  // namespace

Mapping mapping_by(const MapArgument& map, Checkpoint& source) {
  const RuleText text = rule_text(map.name);
  const YAML::Node root = driver::load_yaml(text.text, text.place);
  YamlMap file(root, text.place, "the mapping");
  ModelFacts facts(source, file.text("prefix").value_or(""));
  RuleValues values(file.node("set"), text.place, map.values, facts);
  values.refuse_unused(root);
  Mapping mapping;
  if (file.has("expects")) {
    mapping.unsaid = check_expected(file.node("expects"), text.place, values, facts);
  }
  if (file.has("rules")) values.put_into(file.node("rules"));
  std::vector<Rule> rules;
  for (const auto& item : file.items("rules")) {
    rules.push_back(read_rule(YamlMap(item, text.place, "the rule")));
    rules.back().place = text.place + ", rule " + std::to_string(rules.size());
  }
  file.know("config");
  file.refuse_unknown();
  apply_all(rules, source.catalog(), facts.names(), mapping);
  if (map.config == WithConfig::kYes && file.has("config")) {
    mapping.config = values.filled(file.node("config")).dump(2) + "\n";
  }
  mapping.values = values.used();
  mapping.contradicted = values.contradicted();
  if (text.shipped) mapping.idle.clear();
  return mapping;
}

Mapping mapping_of_all(const Catalog& catalog) {
  Mapping mapping;
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    mapping.tensors.push_back(mapped(catalog.tensors[t], t));
  }
  std::sort(mapping.tensors.begin(), mapping.tensors.end(), goes_before);
  return mapping;
}

}  // namespace reprise::cli
