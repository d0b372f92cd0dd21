#pragma once
// Tells which optimizer wrote a state, as far as the state shows it. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/state/catalog.hpp"
#include "reprise/value.hpp"

namespace reprise {

/// Returns the part of a key that names what an optimizer keeps for each parameter, such as
/// "exp_avg"; empty if there is none.
std::string_view slot_in_key(std::string_view key);

/// Param groups that have the same settings.
struct ParamGroups {
  std::uint64_t count = 0;
  std::vector<std::pair<std::string, Value>> settings;  ///< such as lr, in a fixed order
};

struct OptimizerSummary {
  std::vector<std::string> slots;  ///< what it keeps for each parameter, sorted
  std::string kind;                ///< by the slots, such as "Adam or AdamW"; empty if unknown
  std::vector<ParamGroups> groups;

  bool empty() const { return slots.empty() && groups.empty(); }
};

/// Returns the slots and the kind.
OptimizerSummary optimizer_in(const Catalog& catalog);

/// Collects the settings of param groups: learning rates and the like.
class ParamGroupSettings {
 public:
  /// Takes one value that is stored by its own key, such as "optim.param_groups.0.lr". Returns
  /// false if the key is none of a param group.
  bool add(std::string_view key, const Value& value);
  /// Takes all lists named param_groups within a value.
  void add_within(const Value& value, int depth = 0);

  std::vector<ParamGroups> take();

 private:
  using Settings = std::map<std::size_t, Value>;  ///< by position among the settings shown

  void add_group(const Value& group);

  std::map<std::string, Settings, std::less<>> by_key_;
  std::vector<Settings> listed_;
};

}  // namespace reprise
