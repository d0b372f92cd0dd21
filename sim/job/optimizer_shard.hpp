#pragma once
// One rank's share of Adam's state over a list of parameters: fp32 masters and moments in arenas,
// and how the compute copies are made from them.

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/parameter.hpp"
#include "sim/job/share.hpp"

namespace reprise::sim {

/// What an update goes by.
struct UpdateInputs {
  const Progress& progress;
  const OptimizerSettings& settings;
  std::int64_t loss = 0;
  double clip = 1;  ///< gradients are multiplied by it
};

/// Of this rank's share of the gradients that an update would use.
struct GradientStatistics {
  std::int64_t squares = 0;  ///< of all of them, in units of 2^-20
  std::int64_t counted = 0;  ///< of those whose turn it is here, likewise
  std::int64_t zeros = 0;    ///< of the latter, how many are zero
  std::int64_t infinite = 0;
  std::int64_t nans = 0;

  GradientStatistics& operator+=(const GradientStatistics& other);
  /// Of all of them; as with numbers of any size, infinite or NaN if one is.
  double norm() const;
};

class OptimizerShard {
 public:
  /// `own` is this rank in `group`; arenas are filled with a pattern that is no number, so that
  /// padding can't pass for content.
  /// They live where the parameters' arrays do: on `processor`, which is borrowed.
  OptimizerShard(std::span<const LocalParameter> parameters, const Mesh& group, GroupRank own,
                 std::int32_t instances, const ShareRule& rule, Processor& processor);

  const ShareRule& rule() const { return rule_; }
  const ShareTable& table() const { return table_; }
  GroupRank own() const { return own_; }
  const Share& share(std::size_t parameter) const;

  /// This rank's arena of a slot; a parameter's share begins at share(parameter).begin.
  Array<float>& slot(Slot slot) { return slots_[static_cast<std::size_t>(slot)]; }
  /// Where a load puts this rank's share of the stored weights.
  Array<std::uint16_t>& stored() { return stored_; }

  /// Where a parameter's share begins in them.
  std::byte* slot_data(Slot slot, std::size_t parameter) const {
    return slots_[static_cast<std::size_t>(slot)].address_of(begin(parameter));
  }
  std::byte* stored_data(std::size_t parameter) const {
    return stored_.address_of(begin(parameter));
  }

  /// Pieces of a parameter's share, of a buffer that begins with it; and, in the same order, of the
  /// compute copy.
  const std::vector<Piece>& packed(std::size_t parameter) const { return packed_[parameter]; }
  const std::vector<Piece>& in_place(std::size_t parameter) const { return in_place_[parameter]; }

  /// Masters from start values, moments zero.
  void initialise(std::span<const LocalParameter> parameters, std::uint64_t seed);
  /// The masters of one parameter alone.
  void start_masters(const ParameterSpec& spec, std::size_t parameter, std::uint64_t seed);
  /// One Adam update of this rank's share, each parameter by the group that names it; gradients
  /// follow from the compute copy. The new weights are put into this rank's share of it.
  void step(std::span<LocalParameter> parameters, const UpdateInputs& inputs);
  GradientStatistics statistics(std::span<const LocalParameter> parameters,
                                const UpdateInputs& inputs) const;
  /// This rank's share of the compute copies into stored(), for a save that cuts the weights alike.
  void pack_stored(std::span<const LocalParameter> parameters);
  /// Masters out of the stored weights, moments zero: after a load without optimizer state.
  void rebuild_slots();
  /// Global index of the first stored weight of a parameter that is not the master rounded to bf16;
  /// nothing if all are.
  std::optional<Dims> first_stale(const ParameterSpec& spec, std::size_t parameter) const;
  /// Puts the stored weights into this rank's share of the compute copies.
  void install_stored(std::span<LocalParameter> parameters);
  /// Collective over the group: everybody's share of the compute copies, in one message.
  void gather_weights(std::span<LocalParameter> parameters, Communicator& group) const;
  /// Collective over the group: takes the slots of `other`, which shares the same parameters
  /// otherwise over the same group.
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
  /// Everybody's share of one slot, parameter by parameter, as whole local arrays.
  std::vector<Array<float>> whole_slot(std::span<const LocalParameter> parameters, Slot which,
                                       Communicator& group) const;

  Processor* processor_;
  ShareRule rule_;
  ShareTable table_;
  GroupRank own_;
  std::vector<std::vector<Piece>> packed_;
  std::vector<std::vector<Piece>> in_place_;
  std::array<Array<float>, 3> slots_;
  Array<std::uint16_t> stored_;
};

}  // namespace reprise::sim
