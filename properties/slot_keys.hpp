#pragma once
// The law of an optimizer's keys: the optimizer's tensors of a checkpoint are its model's tensors
// times the slots. A job that names its optimizer state wrongly in a save and in a load alike reads
// back what it wrote, so no comparison of a load with its save shows it. This law looks at the
// stored keys alone.
//
//   weight                       one tensor for each slot
//   decoder.norm.weight          optimizer.state.exp_avg.decoder.norm.weight
//                                optimizer.state.decoder.norm.weight.exp_avg      (fsdp_dtensor)
//   mimo.vision.norm.weight      mimo.vision.optimizer.state.exp_avg.norm.weight

#include <span>
#include <string>

#include "properties/finding.hpp"

namespace reprise {

/// Judges the keys of all tensors of one checkpoint. Returns KEYSET_ASYMMETRY for
///
///   - a slot of a tensor that is not stored,
///   - a weight that lacks a slot that another weight of its module has.
///
/// A slot that no weight of a module has is no error: an optimizer without main parameters of its
/// own stores no "fp32_param".
///
/// State in flat buckets names no weights, so nothing is ruled on it.
judged::Findings judge_slot_keys(std::span<const std::string> keys);

}  // namespace reprise
