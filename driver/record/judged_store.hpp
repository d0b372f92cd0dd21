#pragma once
// The store of a run, as the judges look at it: they open the same few checkpoints again and again,
// and the metadata of files with equal bytes is parsed once.

#include <string>

#include "core/checkpoint/parsed_metadata.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// A store that judges look at, and what was read there before.
struct JudgedStore {
  Store& store;
  ParsedMetadata& parsed;

  Checkpoint open(const std::string& path) const { return parsed.open(store, path); }
};

}  // namespace reprise::driver
