#pragma once
// Finds where the elements of tensors come from that differ, or that only one side has: rows in
// another order, another tensor, transposed, rounded, scaled. Digests of lines (line_digests.hpp)
// suggest a source; it is told once its elements were read and compared.

#include "core/checkpoint/tensor_survey.hpp"
#include "core/diff/diff.hpp"

namespace reprise {

/// Sets TensorDiff::source where one is found. Reads again only tensors that differ or that one
/// side lacks, and those of the other side that have their type and number of elements. Tensors
/// whose elements are all the same are no source. Uses about 64 MiB, and 5 MiB for each thread.
/// Tensors of more than 2^22 rows are not looked at. What can't be read gets no source. Throws
/// STALE_METADATA if a checkpoint was replaced meanwhile.
void find_sources(Checkpoint& left, Checkpoint& right, const SurveyPorts& ports,
                  DiffReport& report);

}  // namespace reprise
