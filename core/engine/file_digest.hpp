#pragma once
// The SHA-256 of a stored file, read in bounded steps.

#include <string>

#include "core/format/sha256.hpp"
#include "core/ports/store.hpp"

namespace reprise {

Sha256Digest digest_of_file(Store& store, const std::string& path);

}  // namespace reprise
