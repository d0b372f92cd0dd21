#pragma once
// Holds one rank's share of Adam's state for a list of parameters: fp32 masters and moments in
// arenas. Also converts masters to compute copies.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/model/parameter.hpp"
#include "sim/job/optimizer/share.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::sim {

/// Inputs of an update.
struct UpdateInputs {
  const TrainingProgress& progress;
  const OptimizerSettings& settings;
  std::int64_t loss = 0;
  double clip = 1;  ///< factor by which gradients are multiplied
};

/// Statistics of this rank's share of the gradients that an update would use.
struct GradientStatistics {
  std::int64_t squares = 0;  ///< sum of squares of all gradients, in units of 2^-20
  std::int64_t counted = 0;  ///< the same sum, only over gradients that this copy contributes
  std::int64_t zeros = 0;    ///< number of zeros among the gradients that this copy contributes
  std::int64_t infinite = 0;
  std::int64_t nans = 0;

  GradientStatistics& operator+=(const GradientStatistics& other);
  /// Returns the norm of all gradients; infinite or NaN if one of them is.
  double norm() const;
};

class OptimizerShard {
 public:
  /// `own` is this rank's index in `group`. Fills the arenas with a NaN pattern, so that padding
  /// never looks like content. The arenas are in the memory of `processor`, like the parameters'
  /// arrays. Borrows `processor`.
  OptimizerShard(std::span<const LocalParameter> parameters, const Mesh& group, GroupRank own,
                 std::int32_t instances, const ShareRule& rule, Processor& processor);

  const ShareRule& rule() const { return rule_; }
  const ShareTable& table() const { return table_; }
  GroupRank own() const { return own_; }
  const Share& share(std::size_t parameter) const;

  /// Returns this rank's arena of a slot; a parameter's share begins at share(parameter).begin.
  Array<float>& slot(Slot slot) { return slots_[static_cast<std::size_t>(slot)]; }
  /// Returns the array into which a load puts this rank's share of the stored weights.
  Array<std::uint16_t>& stored() { return stored_; }

  /// Returns the address of a parameter's share in `slot`.
  std::byte* slot_data(Slot slot, std::size_t parameter) const {
    return slots_[static_cast<std::size_t>(slot)].address_of(begin(parameter));
  }
  std::byte* stored_data(std::size_t parameter) const {
    return stored_.address_of(begin(parameter));
  }

  /// Sets the masters to start values, and the moments to zero.
  void initialise(std::span<const LocalParameter> parameters, std::uint64_t seed);
  /// Sets only the masters of one parameter.
  void start_masters(const ParameterSpec& spec, std::size_t parameter, std::uint64_t seed);
  /// Makes one Adam step on this rank's share, with the settings of each parameter's group.
  /// Computes the gradients from the compute copy, and writes the new weights to this rank's share
  /// of the compute copy.
  void step(std::span<LocalParameter> parameters, const UpdateInputs& inputs);
  GradientStatistics statistics(std::span<const LocalParameter> parameters,
                                const UpdateInputs& inputs) const;
  /// Copies this rank's share of the compute copies to stored(), for a save that shards the weights
  /// like the optimizer's state.
  void pack_stored(std::span<const LocalParameter> parameters);
  /// Sets the masters to the stored weights, and the moments to zero. Used by a load without
  /// optimizer state.
  void rebuild_slots();
  /// Compares a parameter's stored weights with its masters rounded to bf16. Returns the global
  /// index of the first weight that differs; nothing if none does.
  std::optional<Dims> first_stale(const ParameterSpec& spec, std::size_t parameter) const;
  /// Copies the stored weights to this rank's share of the compute copies.
  void install_stored(std::span<LocalParameter> parameters);
  /// Collective over the group: gathers all shares of the compute copies in one message.
  void gather_weights(std::span<LocalParameter> parameters, Communicator& group) const;
  /// Collective over the group: copies the slots from `other`, which shards the same parameters
  /// over the same group by a different rule.
  void take_slots(std::span<const LocalParameter> parameters, OptimizerShard& other,
                  Communicator& group);

 private:
  void update(LocalParameter& parameter, std::size_t p, const GroupSettings& group,
              const UpdateInputs& inputs);
  std::size_t begin(std::size_t parameter) const {
    return static_cast<std::size_t>(share(parameter).begin);
  }
  float* slot_of(Slot slot, std::size_t parameter) const {
    return reinterpret_cast<float*>(slot_data(slot, parameter));
  }
  /// Gathers all shares of one slot into whole local arrays, one per parameter.
  std::vector<Array<float>> whole_slot(std::span<const LocalParameter> parameters, Slot which,
                                       Communicator& group) const;

  Processor* processor_;
  ShareRule rule_;
  ShareTable table_;
  GroupRank own_;
  std::vector<std::vector<Piece>> packed_;
  std::vector<std::vector<Piece>> in_place_;
  std::array<Array<float>, kSlots.size()> slots_;
  Array<std::uint16_t> stored_;
};

}  // namespace reprise::sim
