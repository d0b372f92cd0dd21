#include "cli/arguments/rule_values.hpp"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

using driver::YamlMap;
using nlohmann::json;
using nlohmann::ordered_json;

/// Bound of whole numbers, so that a difference of two has room.
constexpr std::int64_t kNumberMax = std::int64_t{1} << 60U;

/// Returns the name in "<name>".
std::optional<std::string> name_in(const YAML::Node& node) {
  if (!node.IsScalar()) return std::nullopt;
  const std::string& text = node.Scalar();
  if (text.size() < 3 || text.front() != '<' || text.back() != '>') return std::nullopt;
  return text.substr(1, text.size() - 2);
}

template <class T>
std::optional<T> parsed(const std::string& text) {
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Returns what a plain word stands for: true, false, null, a number, or the word itself.
json scalar_in(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (text == "null") return nullptr;
  if (const auto integer = parsed<std::int64_t>(text)) return *integer;
  const auto number = parsed<double>(text);
  if (number && std::isfinite(*number)) return *number;
  return text;
}

/// Returns a scalar of the file. In quotes it is text, whatever it looks like.
json scalar_in(const YAML::Node& node) {
  if (node.IsNull()) return nullptr;
  return node.Tag() == "!" ? json(node.Scalar()) : scalar_in(node.Scalar());
}

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void add_names(const YAML::Node& node, std::set<std::string>& names) {
  if (const auto name = name_in(node)) names.insert(*name);
  for (const auto& entry : node) add_names(node.IsMap() ? entry.second : entry, names);
}

}  // namespace

/// A value, or why it is not known.
struct RuleValues::Found {
  json value;
  std::string why = {};    ///< empty if the value is known
  std::string lacks = {};  ///< the value that --set should give
};

RuleValues::RuleValues(const YAML::Node& set, std::string file,
                       const std::vector<std::string>& given, ModelFacts& facts)
    : file_(std::move(file)), facts_(facts) {
  if (set.IsDefined()) {
    YamlMap map(set, file_, "set");
    for (const auto& name : map.keys()) said_.emplace(name, map.node(name));
  }
  for (const auto& word : given) {
    const auto equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw Error(Code::kUsage, "--set '" + word + "' is not of the form NAME=VALUE");
    }
    given_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

void RuleValues::refuse_unused(const YAML::Node& root) const {
  std::set<std::string> names;
  add_names(root, names);
  for (const auto& [name, value] : given_) {
    if (names.contains(name)) continue;
    throw Error(Code::kUsage,
                "--set '" + name + "=" + value + "': the rules have no <" + name + ">",
                {.file = file_});
  }
}

const RuleValues::Found& RuleValues::named(const std::string& name) {
  const auto known = known_.find(name);
  if (known != known_.end()) return *known->second;
  if (!asked_.insert(name).second) {
    throw Error(Code::kUsage, "the value <" + name + "> is made from itself", {.file = file_});
  }
  Found result{.why = "the rules do not say it"};
  const auto given = given_.find(name);
  const auto said = said_.find(name);
  if (given != given_.end()) {
    result = {.value = scalar_in(given->second)};
  } else if (said != said_.end()) {
    result = found(said->second);
  }
  if (!result.why.empty() && result.lacks.empty()) result.lacks = name;
  asked_.erase(name);
  return *known_.emplace(name, std::make_shared<const Found>(std::move(result))).first->second;
}

const RuleValues::Found& RuleValues::needed(const std::string& name) {
  const Found& result = named(name);
  if (result.why.empty()) return result;
  throw Error(Code::kUsage,
              "the rules need a value for <" + result.lacks + ">: " + result.why +
                  "; give it with --set " + result.lacks + "=VALUE",
              {.file = file_});
}

RuleValues::Found RuleValues::found(const YAML::Node& node) {
  if (const auto name = name_in(node)) return named(*name);
  if (node.IsScalar() || node.IsNull()) return {.value = scalar_in(node)};
  if (node.IsMap()) return found_by_form(YamlMap(node, file_, "the value"));
  Found result{.why = "the list is empty"};
  for (const auto& item : node) {
    result = found(item);
    if (result.why.empty()) return result;
  }
  result.lacks.clear();
  return result;
}

RuleValues::Found RuleValues::found_by_form(YamlMap form) {
  const auto read = [&]() -> Found {
    if (form.has("size")) {
      const KeyPattern pattern(form.required("size"), "size");
      const std::int64_t last = static_cast<std::int64_t>(kMaxNdim) - 1;
      const std::int64_t dim = form.needed("dim", form.integer_in("dim", -last - 1, last));
      const auto size = facts_.size(pattern, dim);
      if (size) return {.value = *size};
      return {.why =
                  "no tensor " + form.required("size") + " has such a dimension, or sizes differ"};
    }
    if (form.has("count")) {
      const auto matching = facts_.matching(KeyPattern(form.required("count"), "count"));
      if (!matching.empty()) return {.value = static_cast<std::int64_t>(matching.size())};
      return {.why = "there is no tensor " + form.required("count")};
    }
    if (form.has("absent")) {
      return {.value = facts_.matching(KeyPattern(form.required("absent"), "absent")).empty()};
    }
    if (form.has("argument")) return of_argument(form);
    for (const auto* key : {"quotient", "difference"}) {
      if (form.has(key)) return of_numbers(form, key);
    }
    for (const auto* key : {"size", "count", "absent", "argument", "quotient", "difference"}) {
      form.know(key);
    }
    form.refuse_unknown();
    form.required("size, count, absent, argument, quotient or difference");
    return {};
  };
  Found result = read();
  form.refuse_unknown();
  return result;
}

RuleValues::Found RuleValues::of_argument(YamlMap& form) {
  const std::string name = form.required("argument");
  form.know("means");
  const auto argument = facts_.argument(name);
  const std::string lacking = "the checkpoint does not say the argument " + name;
  if (!form.has("means")) {
    if (!argument || argument->is_null() || argument->is_structured()) return {.why = lacking};
    return {.value = *argument};
  }
  YamlMap means = form.map("means");
  const std::string text = argument ? text_of(*argument) : "";
  if (!argument) return {.why = lacking};
  if (!means.has(text)) {
    return {.why = "the argument " + name + " is " + text + ", of which the rules say nothing"};
  }
  return found(means.node(text));
}

RuleValues::Found RuleValues::of_numbers(YamlMap& form, const std::string& key) {
  std::vector<std::int64_t> numbers;
  for (const auto& item : form.items(key)) {
    Found one = found(item);
    if (!one.why.empty()) return one;
    if (!one.value.is_number_integer() || one.value > kNumberMax || one.value < -kNumberMax) {
      return {.why = text_of(one.value) + " is no whole number"};
    }
    numbers.push_back(one.value.get<std::int64_t>());
  }
  if (numbers.size() != 2) form.fail(form.node(key), "needs two numbers");
  if (key == "difference") return {.value = numbers[0] - numbers[1]};
  if (numbers[1] == 0 || numbers[0] % numbers[1] != 0) {
    return {.why = std::to_string(numbers[0]) + " can't be divided by " +
                   std::to_string(numbers[1]) + " without remainder"};
  }
  return {.value = numbers[0] / numbers[1]};
}

void RuleValues::put_into(YAML::Node node) {
  if (const auto name = name_in(node)) {
    node = text_of(needed(*name).value);
  } else if (!node.IsScalar()) {
    for (const auto& entry : node) put_into(node.IsMap() ? entry.second : entry);
  }
}

ordered_json RuleValues::filled(const YAML::Node& node) {
  if (const auto name = name_in(node)) return needed(*name).value;
  if (node.IsMap()) {
    ordered_json object = ordered_json::object();
    YamlMap map(node, file_, "config");
    for (const auto& key : map.keys()) object[key] = filled(map.node(key));
    return object;
  }
  if (!node.IsSequence()) return scalar_in(node);
  ordered_json list = ordered_json::array();
  for (const auto& item : node) list.push_back(filled(item));
  return list;
}

std::vector<std::pair<std::string, std::string>> RuleValues::used() const {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, found] : known_) {
    if (found->why.empty()) values.emplace_back(name, text_of(found->value));
  }
  return values;
}

std::map<std::string, std::string> RuleValues::contradicted() {
  std::map<std::string, std::string> stored;
  for (const auto& [name, word] : given_) {
    const auto said = said_.find(name);
    if (said != said_.end() && known_.contains(name)) add_contradicted(name, said->second, stored);
  }
  return stored;
}

void RuleValues::add_contradicted(const std::string& name, const YAML::Node& said,
                                  std::map<std::string, std::string>& all) {
  if (said.IsSequence()) {
    for (const auto& item : said) {
      if (found(item).why.empty()) return add_contradicted(name, item, all);
    }
  }
  if (!said.IsMap()) return;  // a default of the file
  const Found stored = found(said);
  const json& given = known_.at(name)->value;
  if (!stored.why.empty() || stored.value == given) return;
  if (said["count"].IsDefined() || said["absent"].IsDefined()) {
    throw Error(Code::kUsage,
                "--set " + name + "=" + text_of(given) + ": the checkpoint's tensors say " +
                    text_of(stored.value),
                {.file = file_});
  }
  all[name] = text_of(stored.value);
}

}  // namespace reprise::cli
