#pragma once
// Defines codes for errors that the engine never raises itself but only passes on. These errors are
// thrown by the job that uses the engine, or by an implementation of a port. The public enumeration
// does not contain these codes.

#include <cstdint>
#include <optional>
#include <string_view>

#include "reprise/error.hpp"

namespace reprise {

namespace passed_on {

/// Two parameter groups of an optimizer have the same settings and cannot be told apart.
inline constexpr Code kGroupCollision{28};
/// The state should be nested in an outer level, but that level is missing.
inline constexpr Code kWrapperMissing{29};
/// A process group was taken from the global registry although the job forbids that.
inline constexpr Code kGlobalFallback{30};
/// A state that must never be stored was about to be saved.
inline constexpr Code kIllegalStatePersisted{31};
/// The checkpoint belongs to another run.
inline constexpr Code kForeignCheckpoint{35};
/// All ranks wait for each other and none can proceed.
inline constexpr Code kHang{39};
/// A copy that is derived from other state, such as a rounded weight, does not match that state.
inline constexpr Code kStaleDerived{41};

}  // namespace passed_on

/// True if an Error can have this code, whether the code is public or defined above.
bool is_error(Code code);
/// Returns the code whose printed name is `name`; empty if there is none.
std::optional<Code> code_named(std::string_view name);
/// One more than the largest numeric value of an error code.
inline constexpr std::uint32_t kErrorCodesEnd = static_cast<std::uint32_t>(Code::kInternal) + 1;

}  // namespace reprise
