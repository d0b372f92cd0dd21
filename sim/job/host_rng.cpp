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

HostRng HostRng::fresh(std::uint64_t run_seed, std::int32_t pp, std::int32_t tp, std::int32_t dp) {
  Stream stream = Stream(run_seed).split("host").split(static_cast<std::uint64_t>(pp));
  if (dp > 0) stream = stream.split("dp").split(static_cast<std::uint64_t>(dp));
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

std::uint64_t streams_seed(std::uint64_t run_seed, std::string_view module) {
  return module.empty() ? run_seed : Stream(run_seed).split("module").split(module).at(0);
}

Value encode(std::span<const HostRng> streams) {
  const auto number_of = [](std::uint64_t bits) { return std::bit_cast<std::int64_t>(bits); };
  List list;
  for (const auto& rng : streams) {
    list.push_back(Dict{{"seed", number_of(rng.seed)},
                        {"counter", number_of(rng.counter)},
                        {"tally", number_of(rng.tally)}});
  }
  return list;
}

Value encode(const HostRng& rng) { return encode(std::span(&rng, 1)); }

std::vector<HostRng> decode_rng(const Value& value) {
  const auto* list = value.as<List>();
  if (list == nullptr || list->empty()) {
    throw Error(Code::kMissingKey, "the random state is not a list of dicts",
                {.key = std::string(kRngKey)});
  }
  std::vector<HostRng> streams;
  for (const Value& state : *list) {
    streams.push_back({number(state, "seed"), number(state, "counter"), number(state, "tally")});
  }
  return streams;
}

}  // namespace reprise::sim
