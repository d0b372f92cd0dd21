#include "sim/job/parameter.hpp"

namespace reprise::sim {

void initialise(LocalParameter& parameter, std::uint64_t seed) {
  const ParameterSpec& spec = parameter.spec;
  const Stream stream = parameter_stream(seed, spec.full_key);
  const std::int64_t live = live_elements(spec);
  parameter.weight.resize(static_cast<std::size_t>(volume(parameter.tensor.shape)));
  for_each_run(spec.shape, parameter.pieces, parameter.pieces,
               [&](std::int64_t global, std::size_t local, std::size_t, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i, ++global) {
                   parameter.weight[local++] =
                       global < live ? to_bf16(initial_value(stream, global, spec.norm)) : 0;
                 }
               });
}

std::int64_t local_loss(const LocalParameter& parameter, const Progress& progress) {
  const Batch batch{progress.iteration, progress.consumed_samples, 0};
  const Stream targets = batch.targets(parameter_stream(progress.seed, parameter.spec.full_key));
  const std::int64_t live = live_elements(parameter.spec);
  std::int64_t sum = 0;
  for_each_run(parameter.spec.shape, parameter.pieces, parameter.pieces,
               [&](std::int64_t global, std::size_t local, std::size_t, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i, ++global, ++local) {
                   if (global >= live || !parameter.copy.counts(global, progress)) continue;
                   sum += loss_of(targets, global, from_bf16(parameter.weight[local]));
                 }
               });
  return sum;
}

}  // namespace reprise::sim
