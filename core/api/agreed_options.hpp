#pragma once
// Options of a collective call, which all ranks have to give alike.

#include <functional>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"

namespace reprise {

/// One option by its name, and its value as text.
struct NamedOption {
  std::string name;
  std::string value;
};

/// Collective. Runs `named` on each rank. Throws on all ranks what it threw on one, or USAGE with
/// the option's name if an option differs between ranks.
void agree_on_options(Communicator& group, const std::function<std::vector<NamedOption>()>& named);

}  // namespace reprise
