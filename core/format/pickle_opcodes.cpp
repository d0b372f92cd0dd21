#include "core/format/pickle_opcodes.hpp"

#include <algorithm>
#include <array>

namespace reprise::pickle {
namespace {

// BINPERSID is accepted here and refused by the machine outside of archives.
constexpr std::array<Opcode, 68> kOpcodes{{
    {0x28, "MARK", Verdict::kAccepted},
    {0x29, "EMPTY_TUPLE", Verdict::kAccepted},
    {0x2e, "STOP", Verdict::kAccepted},
    {0x30, "POP", Verdict::kAccepted},
    {0x31, "POP_MARK", Verdict::kAccepted},
    {0x32, "DUP", Verdict::kTextMode},
    {0x42, "BINBYTES", Verdict::kAccepted},
    {0x43, "SHORT_BINBYTES", Verdict::kAccepted},
    {0x46, "FLOAT", Verdict::kTextMode},
    {0x47, "BINFLOAT", Verdict::kAccepted},
    {0x49, "INT", Verdict::kTextMode},
    {0x4a, "BININT", Verdict::kAccepted},
    {0x4b, "BININT1", Verdict::kAccepted},
    {0x4c, "LONG", Verdict::kTextMode},
    {0x4d, "BININT2", Verdict::kAccepted},
    {0x4e, "NONE", Verdict::kAccepted},
    {0x50, "PERSID", Verdict::kOutside},
    {0x51, "BINPERSID", Verdict::kAccepted},
    {0x52, "REDUCE", Verdict::kAccepted},
    {0x53, "STRING", Verdict::kTextMode},
    {0x54, "BINSTRING", Verdict::kAccepted},
    {0x55, "SHORT_BINSTRING", Verdict::kAccepted},
    {0x56, "UNICODE", Verdict::kTextMode},
    {0x58, "BINUNICODE", Verdict::kAccepted},
    {0x5d, "EMPTY_LIST", Verdict::kAccepted},
    {0x61, "APPEND", Verdict::kAccepted},
    {0x62, "BUILD", Verdict::kAccepted},
    {0x63, "GLOBAL", Verdict::kAccepted},
    {0x64, "DICT", Verdict::kTextMode},
    {0x65, "APPENDS", Verdict::kAccepted},
    {0x67, "GET", Verdict::kTextMode},
    {0x68, "BINGET", Verdict::kAccepted},
    {0x69, "INST", Verdict::kNames},
    {0x6a, "LONG_BINGET", Verdict::kAccepted},
    {0x6c, "LIST", Verdict::kTextMode},
    {0x6f, "OBJ", Verdict::kNames},
    {0x70, "PUT", Verdict::kTextMode},
    {0x71, "BINPUT", Verdict::kAccepted},
    {0x72, "LONG_BINPUT", Verdict::kAccepted},
    {0x73, "SETITEM", Verdict::kAccepted},
    {0x74, "TUPLE", Verdict::kAccepted},
    {0x75, "SETITEMS", Verdict::kAccepted},
    {0x7d, "EMPTY_DICT", Verdict::kAccepted},
    {0x80, "PROTO", Verdict::kAccepted},
    {0x81, "NEWOBJ", Verdict::kAccepted},
    {0x82, "EXT1", Verdict::kNames},
    {0x83, "EXT2", Verdict::kNames},
    {0x84, "EXT4", Verdict::kNames},
    {0x85, "TUPLE1", Verdict::kAccepted},
    {0x86, "TUPLE2", Verdict::kAccepted},
    {0x87, "TUPLE3", Verdict::kAccepted},
    {0x88, "NEWTRUE", Verdict::kAccepted},
    {0x89, "NEWFALSE", Verdict::kAccepted},
    {0x8a, "LONG1", Verdict::kAccepted},
    {0x8b, "LONG4", Verdict::kAccepted},
    {0x8c, "SHORT_BINUNICODE", Verdict::kAccepted},
    {0x8d, "BINUNICODE8", Verdict::kAccepted},
    {0x8e, "BINBYTES8", Verdict::kAccepted},
    {0x8f, "EMPTY_SET", Verdict::kAccepted},
    {0x90, "ADDITEMS", Verdict::kAccepted},
    {0x91, "FROZENSET", Verdict::kAccepted},
    {0x92, "NEWOBJ_EX", Verdict::kAccepted},
    {0x93, "STACK_GLOBAL", Verdict::kAccepted},
    {0x94, "MEMOIZE", Verdict::kAccepted},
    {0x95, "FRAME", Verdict::kAccepted},
    {0x96, "BYTEARRAY8", Verdict::kAccepted},
    {0x97, "NEXT_BUFFER", Verdict::kOutside},
    {0x98, "READONLY_BUFFER", Verdict::kOutside},
}};
static_assert(std::is_sorted(kOpcodes.begin(), kOpcodes.end(),
                             [](const Opcode& a, const Opcode& b) { return a.code < b.code; }));

// Position in kOpcodes by code; kOpcodes.size() where there is none.
constexpr auto kByCode = [] {
  std::array<std::uint8_t, 256> table{};
  table.fill(kOpcodes.size());
  for (std::size_t i = 0; i < kOpcodes.size(); ++i) {
    table[kOpcodes[i].code] = static_cast<std::uint8_t>(i);
  }
  return table;
}();

}  // namespace

std::span<const Opcode> all_opcodes() { return kOpcodes; }

const Opcode* opcode_of(std::byte code) {
  const std::size_t index = kByCode[static_cast<std::uint8_t>(code)];
  return index < kOpcodes.size() ? &kOpcodes[index] : nullptr;
}

}  // namespace reprise::pickle
