#pragma once
// A lie: one rank tells the others something wrong about what it saves or asks for. What is wrong
// on one rank alone must end the save, or the load, on all of them.

#include <cstdint>
#include <string_view>

#include "core/state/state_dict.hpp"
#include "sim/job/groups/groups.hpp"

namespace reprise::driver {

/// Names the fact that the rank is wrong about.
enum class LieAbout : std::uint8_t {
  kCommon,   ///< an entry of the common state
  kKey,      ///< the key of its first tensor
  kMissing,  ///< its first tensor, which it does not have
  kObject,   ///< the key of its first object
  kShape,    ///< the global shape of its first tensor
  kDtype,    ///< the element type of its first tensor
  kBox,      ///< the place of its first tensor's boxes, which leave the tensor
  kReplica,  ///< whether it has the main copy of its first tensor
  kGroup,    ///< the members of its first group
  kKeep,     ///< how many checkpoints stay
};
std::string_view name_of(LieAbout about);

struct Lie {
  std::int32_t rank = 0;
  LieAbout about = LieAbout::kCommon;

  friend bool operator==(const Lie&, const Lie&) = default;
};

/// Makes a rank's state, or its groups, wrong. Each does nothing if the lie is about something
/// else. The bytes of the state stay where they are.
void apply_lie(LieAbout about, StateDict& state);
void apply_lie(LieAbout about, sim::JobGroups& groups);

}  // namespace reprise::driver
