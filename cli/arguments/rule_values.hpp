#pragma once
// The values of a file of rules. Its section `set` says of each value what it is, or where in the
// checkpoint it stands; --set says it instead. <name> elsewhere in the file stands for the value.
//
//   set:
//     vocab: 32000                                          a plain value
//     hidden: {size: 'embedding\.weight', dim: 1}           the size of tensors that match
//     layers: {count: 'layers\.(\d+)\.norm'}                how many tensors match
//     tied: {absent: 'output_layer\.weight'}                true if no tensor matches
//     heads: {argument: num_attention_heads}                of Megatron's args, or of config.json
//     act: {argument: fused, means: {true: gelu_new, false: gelu}}
//     head_dim: {quotient: [<hidden>, <heads>]}             without remainder
//     pairs: {difference: [<heads>, 2]}
//     either: [{argument: a}, {argument: b}, 1]             the first that is known

#include <yaml-cpp/yaml.h>

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/arguments/model_facts.hpp"
#include "driver/yaml/yaml_map.hpp"

namespace reprise::cli {

class RuleValues {
 public:
  /// `set` is the file's section, or undefined. `given` are the words of --set, as NAME=VALUE. All
  /// that is passed must outlive this.
  RuleValues(const YAML::Node& set, std::string file, const std::vector<std::string>& given,
             ModelFacts& facts);

  /// Throws USAGE if --set names a value that nothing in `root`, the whole file, uses.
  void refuse_unused(const YAML::Node& root) const;
  /// Puts values in place of each <name> under the node. Throws USAGE for one that is not known,
  /// with the name that --set should give.
  void put_into(YAML::Node node);
  /// Returns the node as JSON, with values in place of each <name>.
  nlohmann::ordered_json filled(const YAML::Node& node);
  /// Returns the values that were used, in the order of their names.
  std::vector<std::pair<std::string, std::string>> used() const;

  /// Returns what the checkpoint says of values of which --set says something else, by name. To be
  /// called after used(), since it may look up further values. Throws USAGE if what differs is a
  /// number of tensors, or whether there is one: other values may be meant to differ, as the rows
  /// of a vocabulary without its padding.
  std::map<std::string, std::string> contradicted();

 private:
  struct Found;
  const Found& named(const std::string& name);
  const Found& needed(const std::string& name);
  Found found(const YAML::Node& node);
  void add_contradicted(const std::string& name, const YAML::Node& said,
                        std::map<std::string, std::string>& all);
  Found found_by_form(driver::YamlMap form);
  Found of_argument(driver::YamlMap& form);
  Found of_numbers(driver::YamlMap& form, const std::string& key);

  std::string file_;
  std::map<std::string, YAML::Node> said_;  ///< by the file
  std::map<std::string, std::string> given_;
  ModelFacts& facts_;
  std::map<std::string, std::shared_ptr<const Found>> known_;
  std::set<std::string> asked_;  ///< names that are being looked up
};

}  // namespace reprise::cli
