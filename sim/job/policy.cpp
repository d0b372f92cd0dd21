#include "sim/job/policy.hpp"

#include "core/base/error.hpp"
#include "core/engine/agreement.hpp"

namespace reprise::sim {
namespace {

void check_masters(std::span<const LocalParameter> parameters) {
  for (const auto& parameter : parameters) {
    for (std::size_t i = 0; i < parameter.master.size(); ++i) {
      if (to_bf16(parameter.master[i]) == parameter.stored[i]) continue;
      const Box& box = parameter.own_box;
      Dims at = index_at(static_cast<std::int64_t>(i), box.extent);
      for (std::size_t d = 0; d < at.size(); ++d) at[d] += box.offset[d];
      throw Error(Code::kStaleDerived,
                  "the stored weight at " + to_string(at) +
                      " is not the stored fp32 master rounded to bf16; one of the two is of "
                      "another step or place",
                  {.key = parameter.spec.key});
    }
  }
}

void install_own(std::span<LocalParameter> parameters) {
  for (auto& parameter : parameters) install(parameter, parameter.own_box, parameter.stored);
}

}  // namespace

std::vector<RefreshStep> refresh_protocol(const Loaded& loaded) {
  return {
      {"check_masters",
       [loaded] {
         agree_on(loaded.world, [loaded] {
           check_masters(loaded.parameters);
           return Bytes{};
         });
       }},
      {"install_own", [loaded] { install_own(loaded.parameters); }},
      {"gather", [loaded] { gather_weights(loaded.parameters, loaded.dp); }},
  };
}

StateDict whole_state(StateDict state) { return state; }

std::int32_t replica_of(const Placement& placement, const Mesh& mesh, GroupRank member) {
  return placement.replica(mesh, member);
}

}  // namespace reprise::sim
