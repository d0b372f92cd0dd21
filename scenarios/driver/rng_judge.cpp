#include "scenarios/driver/rng_judge.hpp"

#include <array>
#include <optional>

#include "sim/job/host_rng.hpp"

namespace reprise::driver {
namespace {

using sim::HostRng;

struct Stream {
  std::string_view key;
  HostRng (*fresh)(std::uint64_t seed, const Dims& coordinate);
  std::int64_t StreamAges::*age;
};

std::int32_t at(const Dims& coordinate, std::size_t d) {
  return static_cast<std::int32_t>(coordinate[d]);
}

HostRng fresh_host(std::uint64_t seed, const Dims& coordinate) {
  return HostRng::fresh(seed, at(coordinate, 0), at(coordinate, 1));
}

HostRng fresh_expert(std::uint64_t seed, const Dims& coordinate) {
  return HostRng::fresh_expert(seed, at(coordinate, 0), at(coordinate, 1), at(coordinate, 2));
}

constexpr std::array kStreams = {
    Stream{sim::kRngKey, fresh_host, &StreamAges::host},
    Stream{sim::kExpertRngKey, fresh_expert, &StreamAges::expert},
};

const Stream* stream_of(const std::string& key) {
  for (const auto& stream : kStreams) {
    if (stream.key == key) return &stream;
  }
  return nullptr;
}

HostRng advanced(HostRng rng, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) rng.advance();
  return rng;
}

/// The steps, up to some more than expected, after which this stream has that state.
std::optional<std::int64_t> age_of(const Value& state, HostRng rng, std::int64_t expected) {
  constexpr std::int64_t kFurther = 16;
  for (std::int64_t age = 0; age <= expected + kFurther; ++age) {
    if (encode(rng) == state) return age;
    rng.advance();
  }
  return {};
}

std::string steps_text(std::int64_t steps) {
  return std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

/// The ruling on one state that is not what it should be.
Ruling ruling_of(GlobalRank rank, const ObjectLeaf& leaf, const Stream& stream, std::uint64_t seed,
                 std::int64_t expected) {
  const std::string key = object_key(leaf.key, leaf.coordinate, leaf.grid);
  const Box grid = Box::whole(leaf.grid);
  for (std::int64_t i = 0; i < grid.elements(); ++i) {
    const Dims other = index_at(i, leaf.grid);
    if (other == leaf.coordinate) continue;
    if (!age_of(leaf.value, stream.fresh(seed, other), expected)) continue;
    return {Defect::kRngStreamCollapse, key,
            "the stream of " + to_string(leaf.coordinate) + " is that of " + to_string(other) +
                ", from which it should differ",
            rank};
  }
  const auto age = age_of(leaf.value, stream.fresh(seed, leaf.coordinate), expected);
  const std::string should = "should have drawn for " + steps_text(expected);
  if (!age) {
    return {Defect::kRngDrift, key,
            "the stream " + should + " since it began, and is in no state that it comes through: " +
                to_string(leaf.value),
            rank};
  }
  return {Defect::kRngDrift, key,
          "the stream " + should + " since it began, and has drawn for " + steps_text(*age), rank};
}

}  // namespace

bool is_stream(const std::string& key) { return stream_of(key) != nullptr; }

Rulings judge_streams(GlobalRank rank, const StateDict& live, std::uint64_t seed,
                      const StreamAges& ages) {
  Rulings rulings;
  for (const auto& leaf : live.objects) {
    const Stream* stream = stream_of(leaf.key);
    if (stream == nullptr) continue;
    const std::int64_t age = ages.*(stream->age);
    if (encode(advanced(stream->fresh(seed, leaf.coordinate), age)) == leaf.value) continue;
    rulings.push_back(ruling_of(rank, leaf, *stream, seed, age));
  }
  return rulings;
}

}  // namespace reprise::driver
