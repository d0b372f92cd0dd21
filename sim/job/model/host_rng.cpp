#include "sim/job/model/host_rng.hpp"

#include <bit>
#include <string>

#include "core/base/random.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

/// Numbers that a training step draws from each kind of stream.
constexpr int kHostDraws = 3;
constexpr int kDeviceDraws = 5;
constexpr int kTrackerDraws = 2;

constexpr std::string_view kDevice = "device";
constexpr std::string_view kTracker = "rng_tracker_states";
constexpr std::string_view kTracked = "model-parallel-rng";

/// Returns the three streams that begin from one seed.
HostRng streams_of(std::uint64_t seed) {
  const Stream stream(seed);
  return {{seed}, {stream.split("device").at(0)}, {stream.split("tracker").at(0)}};
}

std::uint64_t stream_number(const Value& state, std::string_view key) {
  const Value* found = state.find(key);
  const auto* bits = found == nullptr ? nullptr : found->as<std::int64_t>();
  if (bits == nullptr) {
    throw Error(Code::kNotStored,
                "the random state has no stream_number '" + std::string(key) + "'",
                {.key = std::string(kRngKey)});
  }
  return std::bit_cast<std::uint64_t>(*bits);
}

RandomStream stream_in(const Value& state) {
  return {stream_number(state, "seed"), stream_number(state, "counter"),
          stream_number(state, "tally")};
}

const Value& part(const Value& state, std::string_view key) {
  if (const Value* found = state.find(key)) return *found;
  throw Error(Code::kNotStored, "the random state has no '" + std::string(key) + "'",
              {.key = std::string(kRngKey)});
}

}  // namespace

HostRng HostRng::fresh(std::uint64_t run_seed, std::int32_t pp, std::int32_t tp, std::int32_t dp) {
  Stream stream = Stream(run_seed).split("host").split(static_cast<std::uint64_t>(pp));
  if (dp > 0) stream = stream.split("dp").split(static_cast<std::uint64_t>(dp));
  return streams_of(stream.at(static_cast<std::uint64_t>(tp)));
}

HostRng HostRng::fresh_expert(std::uint64_t run_seed, std::int32_t pp, std::int32_t ep,
                              std::int32_t etp) {
  const Stream stream = Stream(run_seed)
                            .split("expert")
                            .split(static_cast<std::uint64_t>(pp))
                            .split(static_cast<std::uint64_t>(ep));
  return streams_of(stream.at(static_cast<std::uint64_t>(etp)));
}

void RandomStream::draw(int numbers) {
  const Stream stream(seed);
  for (int drawn = 0; drawn < numbers; ++drawn) tally = mix64(tally, stream.at(counter++));
}

void HostRng::advance() {
  host.draw(kHostDraws);
  device.draw(kDeviceDraws);
  tracker.draw(kTrackerDraws);
}

std::uint64_t streams_seed(std::uint64_t run_seed, std::string_view module) {
  return module.empty() ? run_seed : Stream(run_seed).split("module").split(module).at(0);
}

Value encode(std::span<const HostRng> streams) {
  const auto number_of = [](std::uint64_t bits) { return std::bit_cast<std::int64_t>(bits); };
  List list;
  const auto dict_of = [&](const RandomStream& stream) {
    return Dict{{"seed", number_of(stream.seed)},
                {"counter", number_of(stream.counter)},
                {"tally", number_of(stream.tally)}};
  };
  for (const auto& rng : streams) {
    Dict state = dict_of(rng.host);
    state.emplace_back(std::string(kDevice), dict_of(rng.device));
    state.emplace_back(std::string(kTracker), Dict{{std::string(kTracked), dict_of(rng.tracker)}});
    list.push_back(std::move(state));
  }
  return list;
}

Value encode(const HostRng& rng) { return encode(std::span(&rng, 1)); }

std::vector<HostRng> decode_rng(const Value& value) {
  const auto* list = value.as<List>();
  if (list == nullptr || list->empty()) {
    throw Error(Code::kNotStored, "the random state is not a list of dicts",
                {.key = std::string(kRngKey)});
  }
  std::vector<HostRng> streams;
  for (const Value& state : *list) {
    streams.push_back({stream_in(state), stream_in(part(state, kDevice)),
                       stream_in(part(part(state, kTracker), kTracked))});
  }
  return streams;
}

}  // namespace reprise::sim
