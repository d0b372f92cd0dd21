#include "sim/job/model/parameter.hpp"

namespace reprise::sim {

StartValues start_values(const ParameterSpec& spec, std::uint64_t seed) {
  return {parameter_stream(seed, spec.full_key), live_elements(spec), spec.norm};
}

void initialise(LocalParameter& parameter, std::uint64_t seed) {
  const auto maps = element_maps(parameter.spec.shape, parameter.pieces, parameter.pieces);
  parameter.weight.processor().run(
      maps, StartWeights{start_values(parameter.spec, seed), parameter.weight.address()});
}

std::int64_t local_loss(const LocalParameter& parameter, const TrainingProgress& progress) {
  const Batch batch{progress.iteration, progress.consumed_samples, 0};
  const LossTerm term{batch.targets(parameter_stream(progress.seed, parameter.spec.full_key)),
                      live_elements(parameter.spec), parameter.copy, progress.iteration,
                      parameter.weight.address()};
  const auto maps = element_maps(parameter.spec.shape, parameter.pieces, parameter.pieces);
  return parameter.weight.processor().sum(maps, term)[0];
}

}  // namespace reprise::sim
