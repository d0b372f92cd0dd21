#pragma once
// Checks that all ranks pass the same options to a collective call.

#include <functional>
#include <string>
#include <vector>

#include "reprise/fabric.hpp"

namespace reprise {

/// One option: its name, and its value as text.
struct NamedOption {
  std::string name;
  std::string value;
};

/// Collective. `named` checks this rank's options and returns them. If it throws on one rank, all
/// ranks throw that error. Throws USAGE with the option's name if an option differs between ranks.
void agree_on_options(Communicator& group, const std::function<std::vector<NamedOption>()>& named);

}  // namespace reprise
