#include "sim/job/optimizer_shard.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise::sim {
namespace {

/// A quiet NaN that no arithmetic makes.
constexpr std::uint32_t kPadding = 0x7fdead00;

/// The part of an update that is the same for all elements of a parameter.
struct Adam {
  float lr, weight_decay, beta1, beta2, eps, correction1, correction2;

  explicit Adam(const GroupSettings& group)
      : lr(static_cast<float>(group.lr)),
        weight_decay(static_cast<float>(group.weight_decay)),
        beta1(static_cast<float>(group.beta1)),
        beta2(static_cast<float>(group.beta2)),
        eps(static_cast<float>(group.eps)),
        correction1(static_cast<float>(1 - power(group.beta1, group.step + 1))),
        correction2(static_cast<float>(1 - power(group.beta2, group.step + 1))) {}

  void apply(float& master, float& m, float& v, float g) const {
    m = beta1 * m + (1.0F - beta1) * g;
    v = beta2 * v + (1.0F - beta2) * (g * g);
    const float direction = (m / correction1) / (std::sqrt(v / correction2) + eps);
    master = master - lr * (direction + weight_decay * master);
  }
};

template <class T>
std::byte* bytes_at(std::vector<T>& buffer, std::size_t element) {
  return reinterpret_cast<std::byte*>(buffer.data() + element);
}
template <class T>
const std::byte* bytes_at(const std::vector<T>& buffer, std::size_t element) {
  return reinterpret_cast<const std::byte*>(buffer.data() + element);
}

Stream gradients_of(const LocalParameter& parameter, const UpdateInputs& inputs) {
  const Progress& at = inputs.progress;
  const Batch batch{at.iteration, at.consumed_samples, inputs.loss};
  const Stream gradients = batch.gradients(parameter_stream(at.seed, parameter.spec.full_key));
  return parameter.in_sync ? gradients : gradients.split("alone");
}

/// Takes everybody's message apart: calls take(parameter, rank, bytes) for each share.
template <class Take>
void for_each_share(const ShareTable& table, const std::vector<Bytes>& messages, std::size_t width,
                    const Take& take) {
  for (std::size_t r = 0; r < messages.size(); ++r) {
    std::size_t at = 0;
    for (std::size_t p = 0; p < table.shares.size(); ++p) {
      const auto& boxes = table.shares[p][r].boxes;
      const std::size_t bytes = static_cast<std::size_t>(elements_of(boxes)) * width;
      CHECK(at + bytes <= messages[r].size(), at, bytes, messages[r].size());
      take(p, boxes, messages[r].data() + at);
      at += bytes;
    }
    CHECK(at == messages[r].size(), at, messages[r].size());
  }
}

}  // namespace

OptimizerShard::OptimizerShard(std::span<const LocalParameter> parameters, const Mesh& group,
                               GroupRank own, std::int32_t instances, const ShareRule& rule)
    : rule_(rule), own_(own) {
  std::vector<LocalTensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.tensor);
  table_ = share_out(tensors, group, instances, rule);
  for (std::size_t p = 0; p < tensors.size(); ++p) {
    packed_.push_back(pieces_packed(tensors[p], share(p).boxes));
    in_place_.push_back(pieces_in_place(tensors[p], share(p).boxes));
  }
  const auto elements = static_cast<std::size_t>(table_.arena[static_cast<std::size_t>(own.value)]);
  for (auto& slot : slots_) slot.assign(elements, std::bit_cast<float>(kPadding));
  stored_.assign(elements, 0);
}

const Share& OptimizerShard::share(std::size_t parameter) const {
  return table_.shares[parameter][static_cast<std::size_t>(own_.value)];
}

void OptimizerShard::initialise(std::span<const LocalParameter> parameters, std::uint64_t seed) {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const ParameterSpec& spec = parameters[p].spec;
    const Stream stream = parameter_stream(seed, spec.full_key);
    const std::int64_t live = live_elements(spec);
    for_each_run(spec.shape, packed_[p], packed_[p],
                 [&](std::int64_t global, std::size_t own, std::size_t, std::int64_t count) {
                   own += begin(p);
                   for (std::int64_t i = 0; i < count; ++i, ++own) {
                     slot(Slot::kMaster)[own] =
                         global + i < live ? initial_value(stream, global + i, spec.norm) : 0;
                     slot(Slot::kExpAvg)[own] = 0;
                     slot(Slot::kExpAvgSq)[own] = 0;
                   }
                 });
  }
}

void OptimizerShard::update(LocalParameter& parameter, std::size_t p, const GroupSettings& group,
                            const UpdateInputs& inputs) {
  const Stream gradients = gradients_of(parameter, inputs);
  const double scale = inputs.settings.loss_scale.scale;
  const auto clip = static_cast<float>(inputs.clip);
  const std::int64_t live = live_elements(parameter.spec);
  const Adam adam(group);
  float* master = slot(Slot::kMaster).data() + begin(p);
  float* exp_avg = slot(Slot::kExpAvg).data() + begin(p);
  float* exp_avg_sq = slot(Slot::kExpAvgSq).data() + begin(p);
  for_each_run(parameter.spec.shape, packed_[p], in_place_[p],
               [&](std::int64_t global, std::size_t own, std::size_t place, std::int64_t count) {
                 count = std::min(count, live - global);
                 for (std::int64_t i = 0; i < count; ++i, ++own, ++place) {
                   std::uint16_t& weight = parameter.weight[place];
                   const float g = gradient(gradients, global + i, from_bf16(weight), scale) * clip;
                   adam.apply(master[own], exp_avg[own], exp_avg_sq[own], g);
                   weight = to_bf16(master[own]);
                 }
               });
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
  const double scale = inputs.settings.loss_scale.scale;
  GradientStatistics all;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const LocalParameter& parameter = parameters[p];
    const Stream gradients = gradients_of(parameter, inputs);
    const std::int64_t live = live_elements(parameter.spec);
    for_each_run(parameter.spec.shape, in_place_[p], in_place_[p],
                 [&](std::int64_t global, std::size_t place, std::size_t, std::int64_t count) {
                   count = std::min(count, live - global);
                   for (std::int64_t i = 0; i < count; ++i, ++place) {
                     const float g =
                         gradient(gradients, global + i, from_bf16(parameter.weight[place]), scale);
                     all.squares += static_cast<double>(g) * static_cast<double>(g);
                     if (!parameter.share_copy.counts(global + i, inputs.progress)) continue;
                     all.counted += fixed_point(g * g);
                     all.zeros += g == 0 ? 1 : 0;
                   }
                 });
  }
  return all;
}

void OptimizerShard::rebuild_slots() {
  for (auto& slot : slots_) std::fill(slot.begin(), slot.end(), 0.0F);
  std::transform(stored_.begin(), stored_.end(), slot(Slot::kMaster).begin(), from_bf16);
}

void OptimizerShard::pack_stored(std::span<const LocalParameter> parameters) {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    pack(parameters[p].tensor.shape, share(p).boxes, bytes_at(parameters[p].weight, 0),
         bytes_at(stored_, begin(p)), sizeof(std::uint16_t));
  }
}

void OptimizerShard::install_stored(std::span<LocalParameter> parameters) {
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    unpack(parameters[p].tensor.shape, share(p).boxes, bytes_at(stored_, begin(p)),
           bytes_at(parameters[p].weight, 0), sizeof(std::uint16_t));
  }
}

void OptimizerShard::gather_weights(std::span<LocalParameter> parameters,
                                    Communicator& group) const {
  Bytes mine;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto& boxes = share(p).boxes;
    const std::size_t at = mine.size();
    mine.resize(at + static_cast<std::size_t>(elements_of(boxes)) * sizeof(std::uint16_t));
    pack(parameters[p].tensor.shape, boxes, bytes_at(parameters[p].weight, 0), mine.data() + at,
         sizeof(std::uint16_t));
  }
  for_each_share(table_, group.all_gather(mine), sizeof(std::uint16_t),
                 [&](std::size_t p, std::span<const Box> boxes, const std::byte* share) {
                   unpack(parameters[p].tensor.shape, boxes, share,
                          bytes_at(parameters[p].weight, 0), sizeof(std::uint16_t));
                 });
}

std::vector<std::vector<float>> OptimizerShard::whole_slot(
    std::span<const LocalParameter> parameters, Slot which, Communicator& group) {
  Bytes mine;
  std::vector<std::vector<float>> whole;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    whole.emplace_back(static_cast<std::size_t>(volume(parameters[p].tensor.shape)));
    const auto elements = static_cast<std::size_t>(elements_of(share(p).boxes));
    append(mine, {bytes_at(slot(which), begin(p)), elements * sizeof(float)});
  }
  for_each_share(table_, group.all_gather(mine), sizeof(float),
                 [&](std::size_t p, std::span<const Box> boxes, const std::byte* share) {
                   unpack(parameters[p].tensor.shape, boxes, share, bytes_at(whole[p], 0),
                          sizeof(float));
                 });
  return whole;
}

void OptimizerShard::take_slots(std::span<const LocalParameter> parameters, OptimizerShard& other,
                                Communicator& group) {
  for (const Slot which : kSlots) {
    const auto whole = other.whole_slot(parameters, which, group);
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      pack(parameters[p].tensor.shape, share(p).boxes, bytes_at(whole[p], 0),
           bytes_at(slot(which), begin(p)), sizeof(float));
    }
  }
}

}  // namespace reprise::sim
