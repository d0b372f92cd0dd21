#pragma once
// The SHA-256 of a stored file, read in bounded steps.

#include <functional>
#include <string>

#include "core/format/sha256.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// `at_step` is called after each step; what it throws ends the reading.
Sha256Digest digest_of_file(Store& store, const std::string& path,
                            const std::function<void()>& at_step = {});

}  // namespace reprise
