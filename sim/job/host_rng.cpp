#include "sim/job/host_rng.hpp"

#include <bit>
#include <string>

#include "core/base/error.hpp"
#include "core/base/random.hpp"

namespace reprise::sim {
namespace {

constexpr int kDrawsPerStep = 3;

std::uint64_t number(const Value& state, std::string_view key) {
  const Value* found = state.find(key);
  const auto* bits = found == nullptr ? nullptr : found->as<std::int64_t>();
  if (bits == nullptr) {
    throw Error(Code::kMissingKey, "the random state has no number '" + std::string(key) + "'",
                {.key = std::string(kRngKey)});
  }
  return std::bit_cast<std::uint64_t>(*bits);
}

}  // namespace

HostRng HostRng::fresh(std::uint64_t run_seed, std::int32_t pp, std::int32_t tp) {
  const Stream stream = Stream(run_seed).split("host").split(static_cast<std::uint64_t>(pp));
  return {stream.at(static_cast<std::uint64_t>(tp)), 0, 0};
}

HostRng HostRng::fresh_expert(std::uint64_t run_seed, std::int32_t pp, std::int32_t ep,
                              std::int32_t etp) {
  const Stream stream = Stream(run_seed)
                            .split("expert")
                            .split(static_cast<std::uint64_t>(pp))
                            .split(static_cast<std::uint64_t>(ep));
  return {stream.at(static_cast<std::uint64_t>(etp)), 0, 0};
}

void HostRng::advance() {
  const Stream stream(seed);
  for (int draw = 0; draw < kDrawsPerStep; ++draw) tally = mix64(tally, stream.at(counter++));
}

Value encode(const HostRng& rng) {
  const auto number_of = [](std::uint64_t bits) { return std::bit_cast<std::int64_t>(bits); };
  return List{Dict{{"seed", number_of(rng.seed)},
                   {"counter", number_of(rng.counter)},
                   {"tally", number_of(rng.tally)}}};
}

HostRng decode_rng(const Value& value) {
  const auto* list = value.as<List>();
  if (list == nullptr || list->size() != 1) {
    throw Error(Code::kMissingKey, "the random state is not a list of one dict",
                {.key = std::string(kRngKey)});
  }
  const Value& state = list->front();
  return {number(state, "seed"), number(state, "counter"), number(state, "tally")};
}

}  // namespace reprise::sim
