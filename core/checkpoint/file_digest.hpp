#pragma once
// Computes the SHA-256 of a stored file in bounded steps.

#include <functional>
#include <string>

#include "core/base/sha256.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// Calls `at_step` after each step; an exception from it stops the reading.
Sha256Digest digest_of_file(Store& store, const std::string& path,
                            const std::function<void()>& at_step = {});

}  // namespace reprise
