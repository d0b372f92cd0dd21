#pragma once
// Lists the 68 opcodes of pickle protocols 0 to 5, with a rule for each.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace reprise::pickle {

enum class OpcodeRule : std::uint8_t {
  kAccepted,
  kTextMode,   ///< used in protocols 0 and 1 only; no writer of these files uses it
  kExtension,  ///< EXT: refers to classes by numbers that a program registers
  kOutside,    ///< refers to objects or buffers outside the pickle
};

struct Opcode {
  std::uint8_t code;
  std::string_view name;
  OpcodeRule rule;
};

/// Returns the opcode with that code; null if there is none.
const Opcode* opcode_of(std::byte code);

}  // namespace reprise::pickle
