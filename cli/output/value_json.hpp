#pragma once
// Writes a value as JSON without loss. Types that JSON lacks become objects with a single key.
//
//   None, bool, int64, str, list   as JSON has them
//   larger int       {"int": "<two's complement, little-endian, hexadecimal>"}
//   float            {"float": "<IEEE bits, hexadecimal>"}
//   bytes            {"bytes": "<hexadecimal>"}
//   tuple            {"tuple": [...]}
//   set, frozenset   {"set": [...]} {"frozenset": [...]}
//   dict             {"dict": [[key, value], ...]}, in written order
//   class, function  {"name": "module.name"}
//   tensor           {"tensor": {"dtype": ..., "shape": [...], "sha256": ...}}
//   instance         {"object": {"type": ..., "new": ..., "args": [...], "state": [] or [state],
//                                "items": [...], "entries": [[key, value], ...]}}
//                    "new": true if made by __new__, false if made by a call

#include <nlohmann/json_fwd.hpp>

#include "reprise/value.hpp"

namespace reprise::cli {

nlohmann::json value_json(const Value& value);

}  // namespace reprise::cli
