#pragma once
// Runs work that nobody waits for. Only this folder's sources include this header.

#include <functional>

namespace reprise {

/// Runs `work`, which does not throw, in a thread of its own.
void run_aside(std::function<void()> work);

}  // namespace reprise
