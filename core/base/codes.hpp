#pragma once
// Codes of errors that the engine passes on but never raises itself. The job that uses the engine
// throws them, or an implementation of a port does. The public enumeration leaves out their
// numbers.

#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise {

namespace passed_on {

/// Two groups have the same name.
inline constexpr Code kGroupCollision{28};
/// An outer level of a nested state is missing.
inline constexpr Code kWrapperMissing{29};
/// Groups came from the global registry where that is forbidden.
inline constexpr Code kGlobalFallback{30};
/// A state that must never be stored was about to be saved.
inline constexpr Code kIllegalStatePersisted{31};
/// The checkpoint belongs to another run.
inline constexpr Code kForeignCheckpoint{35};
/// All ranks wait for each other and none can proceed.
inline constexpr Code kHang{39};
/// A derived copy does not match its source.
inline constexpr Code kStaleDerived{41};

}  // namespace passed_on

/// True if an Error may carry the code, be it public or passed on.
bool is_error(Code code);
/// Returns the code whose printed name is `name`; empty if there is none.
std::optional<Code> code_named(std::string_view name);
/// One more than the largest number of a code that an Error may carry.
inline constexpr std::uint32_t kErrorCodesEnd = static_cast<std::uint32_t>(Code::kInternal) + 1;

}  // namespace reprise
