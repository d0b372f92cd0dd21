#pragma once
// Locks of a PosixStore.

#include <memory>
#include <string>

#include "reprise/store.hpp"

namespace reprise::posix {

/// Holds the lock file `file`, which is made, and removed when the lock ends; `held` is what it
/// stands for, in messages. The system drops the lock with the process (flock), on network file
/// systems for all hosts unless they are mounted with local locks. Where there are no locks it has
/// a warning. LOCKED, naming host, process and time, if another has it, or naming the user if a
/// file that this one may not write is in the way and can be neither read nor removed; USAGE if
/// `file` is somebody's own.
std::unique_ptr<StoreLock> take_lock(const std::string& file, const std::string& held);

}  // namespace reprise::posix
