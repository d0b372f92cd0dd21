#include "sim/job/optimizer/optimizer_shard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

namespace reprise::sim {
namespace {

/// A quiet NaN that no arithmetic produces.
constexpr std::uint32_t kPadding = 0x7fdead00;

Gradients gradients_of(const LocalParameter& parameter, const UpdateInputs& inputs) {
  const TrainingProgress& at = inputs.progress;
  const Batch batch{at.iteration, at.consumed_samples, inputs.loss};
  const Stream gradients = batch.gradients(parameter_stream(at.seed, parameter.spec.full_key));
  return {.stream = parameter.in_sync ? gradients : gradients.split("alone"),
          .loss_scale = static_cast<float>(inputs.settings.loss_scale.scale),
          .live = live_elements(parameter.spec)};
}

void append(std::vector<BoxCopy>& all, std::vector<BoxCopy> some) {
  std::move(some.begin(), some.end(), std::back_inserter(all));
}

/// Packs the shares of all parameters into one array and gathers the ranks' arrays over the group.
/// `copies`(parameter, elements, begin of the share) returns the copies that pack one share.
template <class T, class Copies>
std::vector<Bytes> exchanged(const ShareTable& table, GroupRank own, Processor& processor,
                             Communicator& group, const Copies& copies) {
  std::vector<std::size_t> begins = {0};
  for (const auto& shares : table.shares) {
    const auto& boxes = shares[static_cast<std::size_t>(own.value)].boxes;
    begins.push_back(begins.back() + static_cast<std::size_t>(elements_of(boxes)));
  }
  const Array<T> mine(processor, begins.back());
  std::vector<BoxCopy> all;
  for (std::size_t p = 0; p < table.shares.size(); ++p) {
    append(all, copies(p, begins[p + 1] - begins[p], mine.address_of(begins[p])));
  }
  processor.copy(all);
  return group.all_gather(mine.bytes());
}

/// Unpacks the messages of all ranks. `copies`(parameter, boxes, begin of the share) returns the
/// copies that unpack one share.
template <class T, class Copies>
void take_apart(const ShareTable& table, const std::vector<Bytes>& messages, Processor& processor,
                const Copies& copies) {
  for (std::size_t r = 0; r < messages.size(); ++r) {
    const Array<T> theirs(processor, messages[r].size() / sizeof(T));
    CHECK(theirs.size_bytes() == messages[r].size(), theirs.size_bytes(), messages[r].size());
    processor.copy_in(messages[r], theirs.address_of(0));
    std::vector<BoxCopy> all;
    std::size_t at = 0;
    for (std::size_t p = 0; p < table.shares.size(); ++p) {
      const auto& boxes = table.shares[p][r].boxes;
      const auto end = at + static_cast<std::size_t>(elements_of(boxes));
      CHECK(end <= theirs.size(), end, theirs.size());
      append(all, copies(p, boxes, theirs.address_of(at)));
      at = end;
    }
    CHECK(at == theirs.size(), at, theirs.size());
    processor.copy(all);
  }
}

}  // namespace

GradientStatistics& GradientStatistics::operator+=(const GradientStatistics& other) {
  squares += other.squares;
  counted += other.counted;
  zeros += other.zeros;
  infinite += other.infinite;
  nans += other.nans;
  return *this;
}

double GradientStatistics::norm() const {
  constexpr double kUnit = 1048576;  // 2^20
  if (nans > 0) return std::numeric_limits<double>::quiet_NaN();
  if (infinite > 0) return std::numeric_limits<double>::infinity();
  return std::sqrt(static_cast<double>(squares) / kUnit);
}

OptimizerShard::OptimizerShard(std::span<const LocalParameter> parameters, const Mesh& group,
                               GroupRank own, std::int32_t instances, const ShareRule& rule,
                               Processor& processor)
    : processor_(&processor), rule_(rule), own_(own) {
  std::vector<LocalTensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  table_ = share_out(tensors, group, instances, rule);
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    packed_.push_back(pieces_packed(tensors[p], share(p).boxes));
    in_place_.push_back(pieces_in_place(tensors[p], share(p).boxes));
  }
  const auto elements = static_cast<std::size_t>(table_.arena[static_cast<std::size_t>(own.value)]);
  for (auto& slot : slots_) {
    slot = Array<float>(processor, elements);
    slot.fill(std::bit_cast<float>(kPadding));
  }
  stored_ = Array<std::uint16_t>(processor, elements);
  stored_.fill(0);
}

const Share& OptimizerShard::share(std::size_t parameter) const {
  return table_.shares[parameter][static_cast<std::size_t>(own_.value)];
}

void OptimizerShard::start_masters(const ParameterSpec& spec, std::size_t p, std::uint64_t seed) {
  const auto maps = element_maps(spec.shape, packed_[p], packed_[p]);
  processor_->run(maps, StartMasters{start_values(spec, seed), slot_of(Slot::kMaster, p)});
}

void OptimizerShard::initialise(std::span<const LocalParameter> parameters, std::uint64_t seed) {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const ParameterSpec& spec = parameters[p].spec;
    start_masters(spec, p, seed);
    const auto maps = element_maps(spec.shape, packed_[p], packed_[p]);
    for (const Slot moment : {Slot::kExpAvg, Slot::kExpAvgSq}) {
      processor_->run(maps, Fill<float>{slot_of(moment, p), 0});
    }
  }
}

void OptimizerShard::update(LocalParameter& parameter, std::size_t p, const GroupSettings& group,
                            const UpdateInputs& inputs) {
  const auto maps = element_maps(parameter.spec.shape, packed_[p], in_place_[p]);
  processor_->run(maps, AdamUpdate{.adam = Adam(group),
                                   .gradients = gradients_of(parameter, inputs),
                                   .clip = static_cast<float>(inputs.clip),
                                   .master = slot_of(Slot::kMaster, p),
                                   .exp_avg = slot_of(Slot::kExpAvg, p),
                                   .exp_avg_sq = slot_of(Slot::kExpAvgSq, p),
                                   .weight = parameter.weight.address()});
}

void OptimizerShard::step(std::span<LocalParameter> parameters, const UpdateInputs& inputs) {
  for (const auto& group : inputs.settings.groups) {
    for (const auto place : group.params) {
      const auto p = static_cast<std::size_t>(place);
      CHECK(p < parameters.size(), p, parameters.size());
      update(parameters[p], p, group, inputs);
    }
  }
}

GradientStatistics OptimizerShard::statistics(std::span<const LocalParameter> parameters,
                                              const UpdateInputs& inputs) const {
  Sums all;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const LocalParameter& parameter = parameters[p];
    const auto maps = element_maps(parameter.spec.shape, in_place_[p], in_place_[p]);
    all +=
        processor_->sum(maps, GradientTerm{gradients_of(parameter, inputs), parameter.share_copy,
                                           inputs.progress.iteration, parameter.weight.address()});
  }
  return {
      .squares = all[0], .counted = all[1], .zeros = all[2], .infinite = all[3], .nans = all[4]};
}

std::optional<Dims> OptimizerShard::first_stale(const ParameterSpec& spec, std::size_t p) const {
  const auto maps = element_maps(spec.shape, packed_[p], packed_[p]);
  auto before =
      processor_->first(maps, StaleWeight{slot_of(Slot::kMaster, p), stored_.address() + begin(p)});
  if (!before) return std::nullopt;
  auto map = maps.begin();
  for (; *before >= map->elements; ++map) *before -= map->elements;
  return index_at(map->at(*before).global, spec.shape);
}

void OptimizerShard::rebuild_slots() {
  for (const Slot moment : {Slot::kExpAvg, Slot::kExpAvgSq}) slot(moment).fill(0);
  const ElementMap all = line_map(static_cast<std::int64_t>(stored_.size()));
  processor_->run({&all, 1}, Widen{stored_.address(), slot(Slot::kMaster).address()});
}

void OptimizerShard::pack_stored(std::span<const LocalParameter> parameters) {
  std::vector<BoxCopy> copies;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    append(copies,
           packing(parameters[p].tensor.shape, share(p).boxes, parameters[p].weight.address_of(0),
                   stored_data(p), sizeof(std::uint16_t)));
  }
  processor_->copy(copies);
}

void OptimizerShard::install_stored(std::span<LocalParameter> parameters) {
  std::vector<BoxCopy> copies;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    append(copies, unpacking(parameters[p].tensor.shape, share(p).boxes, stored_data(p),
                             parameters[p].weight.address_of(0), sizeof(std::uint16_t)));
  }
  processor_->copy(copies);
}

void OptimizerShard::gather_weights(std::span<LocalParameter> parameters,
                                    Communicator& group) const {
  using Weight = std::uint16_t;
  const auto messages =
      exchanged<Weight>(table_, own_, *processor_, group,
                        [&](std::size_t p, std::size_t /*elements*/, std::byte* to) {
                          return packing(parameters[p].tensor.shape, share(p).boxes,
                                         parameters[p].weight.address_of(0), to, sizeof(Weight));
                        });
  take_apart<Weight>(table_, messages, *processor_,
                     [&](std::size_t p, std::span<const Box> boxes, const std::byte* share) {
                       return unpacking(parameters[p].tensor.shape, boxes, share,
                                        parameters[p].weight.address_of(0), sizeof(Weight));
                     });
}

std::vector<Array<float>> OptimizerShard::whole_slot(std::span<const LocalParameter> parameters,
                                                     Slot which, Communicator& group) const {
  const auto messages = exchanged<float>(
      table_, own_, *processor_, group, [&](std::size_t p, std::size_t elements, std::byte* to) {
        return std::vector<BoxCopy>{{{slot_data(which, p), {1}},
                                     {to, {1}},
                                     {static_cast<std::int64_t>(elements)},
                                     sizeof(float)}};
      });
  std::vector<Array<float>> whole;
  for (const auto& parameter : parameters) {
    whole.emplace_back(*processor_, static_cast<std::size_t>(volume(parameter.tensor.shape)));
  }
  take_apart<float>(table_, messages, *processor_,
                    [&](std::size_t p, std::span<const Box> boxes, const std::byte* share) {
                      return unpacking(parameters[p].tensor.shape, boxes, share,
                                       whole[p].address_of(0), sizeof(float));
                    });
  return whole;
}

void OptimizerShard::take_slots(std::span<const LocalParameter> parameters, OptimizerShard& other,
                                Communicator& group) {
  for (const Slot which : kSlots) {
    const auto whole = other.whole_slot(parameters, which, group);
    std::vector<BoxCopy> copies;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      append(copies, packing(parameters[p].tensor.shape, share(p).boxes, whole[p].address_of(0),
                             slot_data(which, p), sizeof(float)));
    }
    processor_->copy(copies);
  }
}

}  // namespace reprise::sim
