#pragma once
// Variants of the functions of this folder in which some decisions are replaced, for mutants and
// engine tests. All other code uses reshard.hpp.

#include "core/reshard/reshard.hpp"
#include "core/seams/reshard_seams.hpp"

namespace reprise {

/// The same as reshard() in reshard.hpp, except that `seams` provides the functions that make the
/// decisions.
ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports, const ReshardSeams& seams);
std::vector<WriterShare> plan_reshard(const Catalog& catalog, const CutRule& rule,
                                      std::int32_t writers, const ReshardSeams& seams);
ChosenValues choose_values(Checkpoint& checkpoint, const RankChoice& choice, Device& device,
                           const ReshardSeams& seams);

}  // namespace reprise
