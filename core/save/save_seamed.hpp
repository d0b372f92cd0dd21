#pragma once
// Saves with some decisions replaced, for mutants and engine tests. All other code uses save.hpp.

#include <memory>

#include "core/save/save.hpp"
#include "core/seams/save_seams.hpp"

namespace reprise {

/// Does the same as Save::begin, with seams.
Save begin_save(const Ports& ports, std::shared_ptr<Communicator> group, const StateDict& state,
                const SaveOptions& options, SaveContext context, const SaveSeams& seams);

}  // namespace reprise
