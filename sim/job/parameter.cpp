#include "sim/job/parameter.hpp"

namespace reprise::sim {

void initialise(LocalParameter& parameter, std::uint64_t seed) {
  const ParameterSpec& spec = parameter.spec;
  const Stream stream = parameter_stream(seed, spec.key);
  parameter.weight.resize(static_cast<std::size_t>(volume(parameter.tensor.shape)));
  for_each_run(spec.shape, parameter.pieces, parameter.pieces,
               [&](std::int64_t global, std::size_t local, std::size_t, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i) {
                   parameter.weight[local++] = to_bf16(initial_value(stream, global++, spec.norm));
                 }
               });
}

std::int64_t local_loss(const LocalParameter& parameter, const Progress& progress) {
  const Batch batch{progress.iteration, progress.consumed_samples, 0};
  const Stream targets = batch.targets(parameter_stream(progress.seed, parameter.spec.key));
  std::int64_t sum = 0;
  for_each_run(parameter.spec.shape, parameter.pieces, parameter.pieces,
               [&](std::int64_t global, std::size_t local, std::size_t, std::int64_t count) {
                 for (std::int64_t i = 0; i < count; ++i, ++global, ++local) {
                   if ((global + progress.iteration) % parameter.copies != parameter.copy) continue;
                   sum += loss_of(targets, global, from_bf16(parameter.weight[local]));
                 }
               });
  return sum;
}

}  // namespace reprise::sim
