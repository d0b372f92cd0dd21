#include "cli/arguments/mapping_rules.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "cli/keys/key_pattern.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

using driver::YamlMap;

/// Tensors that belong together, as far as a rule has changed them.
struct Row {
  std::vector<std::string> groups;    ///< what the expression's groups matched
  std::vector<std::int64_t> numbers;  ///< of unstack, in the order of the steps
  std::vector<MappedTensor> tensors;
  std::vector<bool> there;  ///< of each expression of the rule, true once it matched
};

using Step = std::function<std::vector<Row>(std::vector<Row>)>;

struct Rule {
  std::vector<KeyPattern> from;
  std::vector<Step> steps;
  std::vector<std::string> to;
  bool leave_out = false;
  std::string place;  ///< for messages
};

/// Returns a step that does the same with each tensor.
template <class Work>
Step each(const Work& work) {
  return [work](std::vector<Row> rows) {
    for (Row& row : rows) {
      for (auto& tensor : row.tensors) tensor = work(tensor);
    }
    return rows;
  };
}

std::vector<Row> unstacked(const std::vector<Row>& rows, std::size_t dim) {
  std::vector<Row> result;
  for (const Row& row : rows) {
    const auto& first = row.tensors.front();
    const std::int64_t count = dim < first.shape.size() ? first.shape[dim] : 1;
    if (count == 0) {
      throw Error(Code::kUsage,
                  "dimension " + std::to_string(dim) + " has no index of which to make a tensor",
                  {.key = first.key});
    }
    for (std::int64_t i = 0; i < count; ++i) {
      Row one{row.groups, row.numbers, {}, {}};
      one.numbers.push_back(i);
      for (const auto& tensor : row.tensors) {
        one.tensors.push_back(without_dim(narrowed(tensor, dim, {i, i + 1}), dim));
      }
      result.push_back(std::move(one));
    }
  }
  return result;
}

std::optional<std::int64_t> number_in(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Stacks rows that differ in group `by` alone, in the order of the numbers that it matched.
std::vector<Row> stacked(const std::vector<Row>& rows, std::size_t dim, std::size_t by) {
  using Others = std::pair<std::vector<std::string>, std::vector<std::int64_t>>;
  std::map<Others, std::map<std::int64_t, const Row*>> stacks;
  for (const Row& row : rows) {
    const std::string& key = row.tensors.front().key;
    if (by == 0 || by > row.groups.size()) {
      throw Error(Code::kUsage,
                  "the expression has no group " + std::to_string(by) + " to stack by",
                  {.key = key});
    }
    const auto number = number_in(row.groups[by - 1]);
    if (!number) {
      throw Error(Code::kUsage,
                  "group " + std::to_string(by) + " matched '" + row.groups[by - 1] +
                      "', which is no number to stack by",
                  {.key = key});
    }
    std::vector<std::string> others = row.groups;
    others[by - 1].clear();
    if (!stacks[{others, row.numbers}].emplace(*number, &row).second) {
      throw Error(Code::kUsage,
                  "two tensors have number " + std::to_string(*number) + " in a stack",
                  {.key = key});
    }
  }
  std::vector<Row> result;
  for (const auto& [others, stack] : stacks) {
    const Row& first = *stack.begin()->second;
    if (stack.begin()->first != 0 ||
        stack.rbegin()->first != static_cast<std::int64_t>(stack.size()) - 1) {
      throw Error(Code::kUsage,
                  "the numbers to stack by are not 0 to " + std::to_string(stack.size() - 1),
                  {.key = first.tensors.front().key});
    }
    Row row{others.first, first.numbers, {}, {}};
    for (std::size_t t = 0; t < first.tensors.size(); ++t) {
      std::vector<MappedTensor> layers;
      for (const auto& [number, one] : stack) layers.push_back(with_dim(one->tensors[t], dim));
      row.tensors.push_back(joined(layers, dim));
    }
    result.push_back(std::move(row));
  }
  return result;
}

std::size_t dim_of(YamlMap& step, std::string_view key) {
  const auto last = static_cast<std::int64_t>(kMaxNdim) - 1;
  return static_cast<std::size_t>(step.needed(key, step.integer_in(key, 0, last)));
}

constexpr std::int64_t kCountMax = std::int64_t{1} << 40U;

Step read_split(YamlMap split) {
  const std::size_t dim = dim_of(split, "dim");
  const std::int64_t blocks = split.integer_in("blocks", 1, kCountMax).value_or(1);
  const auto shares = split.integers("shares");
  if (shares.empty()) split.required("shares");
  split.refuse_unknown();
  return [dim, blocks, shares](std::vector<Row> rows) {
    for (Row& row : rows) {
      std::vector<MappedTensor> parts;
      for (const auto& tensor : row.tensors) {
        for (auto& part : reprise::split(tensor, dim, blocks, shares))
          parts.push_back(std::move(part));
      }
      row.tensors = std::move(parts);
    }
    return rows;
  };
}

Step read_join(YamlMap join) {
  const std::size_t dim = dim_of(join, "dim");
  const std::int64_t blocks = join.integer_in("blocks", 1, kCountMax).value_or(1);
  join.refuse_unknown();
  return [dim, blocks](std::vector<Row> rows) {
    for (Row& row : rows) row.tensors = {interleaved(row.tensors, dim, blocks)};
    return rows;
  };
}

Step read_stack(YamlMap stack) {
  const std::size_t dim = dim_of(stack, "dim");
  const auto by = static_cast<std::size_t>(stack.integer_in("by", 1, 9).value_or(1));
  stack.refuse_unknown();
  return [dim, by](const std::vector<Row>& rows) { return stacked(rows, dim, by); };
}

/// Reads `narrow` or `pad`: a dimension, and its new size.
template <class Work>
Step read_size(YamlMap sizes, const Work& work) {
  const std::size_t dim = dim_of(sizes, "dim");
  const std::int64_t size = sizes.needed("size", sizes.integer_in("size", 0, kCountMax));
  sizes.refuse_unknown();
  return each([dim, size, work](const MappedTensor& tensor) { return work(tensor, dim, size); });
}

Step read_cast(YamlMap& step) {
  const std::string name = step.required("cast");
  const auto dtype = dtype_named(name);
  if (!dtype) step.fail(step.node("cast"), "has the unknown type " + name);
  return each([dtype](MappedTensor tensor) {
    tensor.dtype = *dtype;
    return tensor;
  });
}

Step read_step(YamlMap step) {
  const auto read = [&]() -> Step {
    if (step.has("unstack")) {
      const std::size_t dim = dim_of(step, "unstack");
      return [dim](const std::vector<Row>& rows) { return unstacked(rows, dim); };
    }
    if (step.has("split")) return read_split(step.map("split"));
    if (step.has("join")) return read_join(step.map("join"));
    if (step.has("stack")) return read_stack(step.map("stack"));
    if (step.has("transpose")) {
      const auto order = step.integers("transpose");
      if (order.size() > kMaxNdim) step.fail(step.node("transpose"), "has too many dimensions");
      return each([order](const MappedTensor& tensor) { return transposed(tensor, Dims(order)); });
    }
    if (step.has("narrow")) {
      return read_size(step.map("narrow"), [](const auto& tensor, std::size_t dim, auto size) {
        return narrowed(tensor, dim, {0, size});
      });
    }
    if (step.has("pad")) {
      return read_size(step.map("pad"), [](const auto& tensor, std::size_t dim, auto size) {
        return padded(tensor, dim, size);
      });
    }
    if (step.has("cast")) return read_cast(step);
    for (const auto* known :
         {"unstack", "split", "join", "stack", "transpose", "narrow", "pad", "cast"}) {
      step.know(known);
    }
    step.refuse_unknown();
    step.required("unstack, split, join, stack, transpose, narrow, pad or cast");
    return {};
  };
  Step result = read();
  step.refuse_unknown();
  return result;
}

Rule read_rule(YamlMap map) {
  Rule rule;
  for (const auto& text : map.texts("from")) rule.from.emplace_back(text, "from");
  if (rule.from.empty()) map.required("from");
  rule.leave_out = map.flag("leave_out").value_or(false);
  rule.to = map.texts("to");
  if (map.has("steps")) {
    for (const auto& item : map.items("steps")) {
      rule.steps.push_back(read_step(YamlMap(item, map.file(), "the step")));
    }
  }
  map.know("steps");
  if (rule.to.empty() && !rule.leave_out) map.required("to");
  map.refuse_unknown();
  return rule;
}

/// Puts the values of --set, or else those of the file, in place of <name>, and notes which names
/// there are.
void put_values(YAML::Node node, const std::map<std::string, std::string>& values,
                std::set<std::string>& used) {
  if (node.IsScalar()) {
    const std::string& text = node.Scalar();
    if (text.size() < 3 || text.front() != '<' || text.back() != '>') return;
    const auto found = values.find(text.substr(1, text.size() - 2));
    if (found == values.end()) {
      throw Error(Code::kUsage, "the rules need a value for " + text + ": give it with --set " +
                                    text.substr(1, text.size() - 2) + "=VALUE");
    }
    used.insert(found->first);
    node = found->second;
    return;
  }
  if (node.IsMap()) {
    for (const auto& entry : node) put_values(entry.second, values, used);
  } else if (node.IsSequence()) {
    for (const auto& item : node) put_values(item, values, used);
  }
}

std::map<std::string, std::string> values_for(const YAML::Node& root,
                                              const std::vector<std::string>& given,
                                              const std::string& file) {
  std::map<std::string, std::string> values;
  if (root.IsMap() && root["set"]) {
    YamlMap map(root["set"], file, "set");
    for (const auto& name : map.keys()) values[name] = map.required(name);
  }
  for (const auto& word : given) {
    const auto equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(Code::kUsage, "--set '" + word + "' is not of the form NAME=VALUE");
    }
    values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return values;
}

std::vector<Rule> read_rules(const std::string& file, const std::vector<std::string>& given) {
  const YAML::Node root = driver::load_yaml(driver::read_yaml_text(file), file);
  std::set<std::string> used;
  put_values(root, values_for(root, given, file), used);
  for (const auto& word : given) {
    const std::string name = word.substr(0, word.find('='));
    if (used.contains(name)) continue;
    throw Error(Code::kUsage, "--set '" + word + "': the rules have no <" + name + ">",
                {.file = file});
  }
  YamlMap map(root, file, "the mapping");
  map.know("set");
  std::vector<Rule> rules;
  for (const auto& item : map.items("rules")) {
    rules.push_back(read_rule(YamlMap(item, file, "the rule")));
    rules.back().place = file + ", rule " + std::to_string(rules.size());
  }
  map.refuse_unknown();
  return rules;
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

}  // namespace

Mapping mapping_by(const std::string& file, const std::vector<std::string>& values,
                   const Catalog& catalog) {
  const std::vector<Rule> rules = read_rules(file, values);
  std::vector<std::map<std::vector<std::string>, Row>> rows(rules.size());
  Mapping mapping;
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) {
    const std::string key(name_of(catalog.tensors[t]));
    bool known = false;
    for (std::size_t r = 0; r < rules.size() && !known; ++r) {
      for (std::size_t f = 0; f < rules[r].from.size() && !known; ++f) {
        const auto groups = rules[r].from[f].groups_of(key);
        if (!groups) continue;
        known = true;
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
