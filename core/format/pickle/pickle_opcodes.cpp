#include "core/format/pickle/pickle_opcodes.hpp"

#include <algorithm>
#include <array>

namespace reprise::pickle {
namespace {

// The opcode BINPERSID is accepted here, but the machine refuses it outside archives.
constexpr std::array<Opcode, 68> kOpcodes{{
    {0x28, "MARK", OpcodeRule::kAccepted},
    {0x29, "EMPTY_TUPLE", OpcodeRule::kAccepted},
    {0x2e, "STOP", OpcodeRule::kAccepted},
    {0x30, "POP", OpcodeRule::kAccepted},
    {0x31, "POP_MARK", OpcodeRule::kAccepted},
    {0x32, "DUP", OpcodeRule::kTextMode},
    {0x42, "BINBYTES", OpcodeRule::kAccepted},
    {0x43, "SHORT_BINBYTES", OpcodeRule::kAccepted},
    {0x46, "FLOAT", OpcodeRule::kTextMode},
    {0x47, "BINFLOAT", OpcodeRule::kAccepted},
    {0x49, "INT", OpcodeRule::kTextMode},
    {0x4a, "BININT", OpcodeRule::kAccepted},
    {0x4b, "BININT1", OpcodeRule::kAccepted},
    {0x4c, "LONG", OpcodeRule::kTextMode},
    {0x4d, "BININT2", OpcodeRule::kAccepted},
    {0x4e, "NONE", OpcodeRule::kAccepted},
    {0x50, "PERSID", OpcodeRule::kOutside},
    {0x51, "BINPERSID", OpcodeRule::kAccepted},
    {0x52, "REDUCE", OpcodeRule::kAccepted},
    {0x53, "STRING", OpcodeRule::kTextMode},
    {0x54, "BINSTRING", OpcodeRule::kAccepted},
    {0x55, "SHORT_BINSTRING", OpcodeRule::kAccepted},
    {0x56, "UNICODE", OpcodeRule::kTextMode},
    {0x58, "BINUNICODE", OpcodeRule::kAccepted},
    {0x5d, "EMPTY_LIST", OpcodeRule::kAccepted},
    {0x61, "APPEND", OpcodeRule::kAccepted},
    {0x62, "BUILD", OpcodeRule::kAccepted},
    {0x63, "GLOBAL", OpcodeRule::kAccepted},
    {0x64, "DICT", OpcodeRule::kTextMode},
    {0x65, "APPENDS", OpcodeRule::kAccepted},
    {0x67, "GET", OpcodeRule::kTextMode},
    {0x68, "BINGET", OpcodeRule::kAccepted},
    {0x69, "INST", OpcodeRule::kAccepted},
    {0x6a, "LONG_BINGET", OpcodeRule::kAccepted},
    {0x6c, "LIST", OpcodeRule::kTextMode},
    {0x6f, "OBJ", OpcodeRule::kAccepted},
    {0x70, "PUT", OpcodeRule::kTextMode},
    {0x71, "BINPUT", OpcodeRule::kAccepted},
    {0x72, "LONG_BINPUT", OpcodeRule::kAccepted},
    {0x73, "SETITEM", OpcodeRule::kAccepted},
    {0x74, "TUPLE", OpcodeRule::kAccepted},
    {0x75, "SETITEMS", OpcodeRule::kAccepted},
    {0x7d, "EMPTY_DICT", OpcodeRule::kAccepted},
    {0x80, "PROTO", OpcodeRule::kAccepted},
    {0x81, "NEWOBJ", OpcodeRule::kAccepted},
    {0x82, "EXT1", OpcodeRule::kExtension},
    {0x83, "EXT2", OpcodeRule::kExtension},
    {0x84, "EXT4", OpcodeRule::kExtension},
    {0x85, "TUPLE1", OpcodeRule::kAccepted},
    {0x86, "TUPLE2", OpcodeRule::kAccepted},
    {0x87, "TUPLE3", OpcodeRule::kAccepted},
    {0x88, "NEWTRUE", OpcodeRule::kAccepted},
    {0x89, "NEWFALSE", OpcodeRule::kAccepted},
    {0x8a, "LONG1", OpcodeRule::kAccepted},
    {0x8b, "LONG4", OpcodeRule::kAccepted},
    {0x8c, "SHORT_BINUNICODE", OpcodeRule::kAccepted},
    {0x8d, "BINUNICODE8", OpcodeRule::kAccepted},
    {0x8e, "BINBYTES8", OpcodeRule::kAccepted},
    {0x8f, "EMPTY_SET", OpcodeRule::kAccepted},
    {0x90, "ADDITEMS", OpcodeRule::kAccepted},
    {0x91, "FROZENSET", OpcodeRule::kAccepted},
    {0x92, "NEWOBJ_EX", OpcodeRule::kAccepted},
    {0x93, "STACK_GLOBAL", OpcodeRule::kAccepted},
    {0x94, "MEMOIZE", OpcodeRule::kAccepted},
    {0x95, "FRAME", OpcodeRule::kAccepted},
    {0x96, "BYTEARRAY8", OpcodeRule::kAccepted},
    {0x97, "NEXT_BUFFER", OpcodeRule::kOutside},
    {0x98, "READONLY_BUFFER", OpcodeRule::kOutside},
}};
static_assert(std::is_sorted(kOpcodes.begin(), kOpcodes.end(),
                             [](const Opcode& a, const Opcode& b) { return a.code < b.code; }));

// Maps each code to its position in kOpcodes, or to kOpcodes.size() if no opcode has that code.
constexpr auto kByCode = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(kOpcodes.size());
  for (std::size_t i = 0; i < kOpcodes.size(); ++i) {
    table[kOpcodes[i].code] = static_cast<std::uint8_t>(i);
  }
  return table;
}();

}  // namespace

const Opcode* opcode_of(std::byte code) {
  const std::size_t index = kByCode[static_cast<std::uint8_t>(code)];
  return index < kOpcodes.size() ? &kOpcodes[index] : nullptr;
}

}  // namespace reprise::pickle
