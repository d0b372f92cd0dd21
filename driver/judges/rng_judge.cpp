#include "driver/judges/rng_judge.hpp"

#include <array>
#include <optional>

#include "core/format/bytes_item.hpp"
#include "core/megatron/module_key.hpp"
#include "properties/finding_code.hpp"
#include "sim/job/model/host_rng.hpp"

namespace reprise::driver {
namespace {

using sim::HostRng;

/// A kind of random stream. `key` is the end of the stream's key, `fresh` creates the stream from a
/// module's seed, and `age` is the member of StreamAges that has the stream's age.
struct Stream {
  std::string_view key;
  HostRng (*fresh)(std::uint64_t seed, const Dims& coordinate, std::int32_t dp);
  std::int64_t StreamAges::*age;
};

std::int32_t at(const Dims& coordinate, std::size_t d) {
  return static_cast<std::int32_t>(coordinate[d]);
}

HostRng fresh_host(std::uint64_t seed, const Dims& coordinate, std::int32_t dp) {
  return HostRng::fresh(seed, at(coordinate, 0), at(coordinate, 1), dp);
}

HostRng fresh_expert(std::uint64_t seed, const Dims& coordinate, std::int32_t /*dp*/) {
  return HostRng::fresh_expert(seed, at(coordinate, 0), at(coordinate, 1), at(coordinate, 2));
}

constexpr std::array kStreams = {
    // the longer key must come first, because it ends in the shorter one
    Stream{sim::kExpertRngKey, fresh_expert, &StreamAges::expert},
    Stream{sim::kRngKey, fresh_host, &StreamAges::host},
};

const Stream* stream_of(const std::string& key) {
  for (const auto& stream : kStreams) {
    if (key.ends_with(stream.key)) return &stream;
  }
  return nullptr;
}

/// Returns "vision" for "mimo.vision.rng_state".
std::string module_of(const std::string& key, const Stream& stream) {
  constexpr std::string_view kMimo = "mimo.";
  const auto prefix = std::string_view(key).substr(0, key.size() - stream.key.size());
  if (!prefix.starts_with(kMimo) || prefix.size() <= kMimo.size()) return {};
  return std::string(prefix.substr(kMimo.size(), prefix.size() - kMimo.size() - 1));
}

/// A stored random state, and what the judge knows about its stream.
struct Judged {
  const ObjectLeaf& leaf;
  const Stream& stream;
  std::uint64_t seed = 0;
  std::int32_t dp = 0;
  std::int64_t age = 0;

  HostRng fresh(const Dims& coordinate) const { return stream.fresh(seed, coordinate, dp); }
};

HostRng advanced(HostRng rng, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) rng.advance();
  return rng;
}

/// Returns the age of `state`: the number of steps after which a stream that starts as `rng` has
/// this state. Tries all ages up to slightly more than `expected`. Returns nothing if none fits.
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

/// Returns the finding on a wrong state. Either the stream belongs to another coordinate, or it was
/// advanced by a wrong number of steps.
judged::Finding finding_of(GlobalRank rank, const Judged& judged) {
  const ObjectLeaf& leaf = judged.leaf;
  const std::string key = stored_key(leaf);
  const Box grid = Box::whole(leaf.grid);
  for (std::int64_t i = 0; i < grid.elements(); ++i) {
    const Dims other = index_at(i, leaf.grid);
    if (other == leaf.coordinate) continue;
    if (!age_of(leaf.value, judged.fresh(other), judged.age)) continue;
    return {judged::kRngStreamCollapse, key,
            "the stream of " + to_string(leaf.coordinate) + " is that of " + to_string(other) +
                ", but should differ from it",
            rank};
  }
  const auto age = age_of(leaf.value, judged.fresh(leaf.coordinate), judged.age);
  const std::string should = "should have drawn for " + steps_text(judged.age);
  if (!age) {
    return {judged::kRngDrift, key,
            "the stream " + should +
                " since it began, but is in a state that it never passes through: " +
                to_string(leaf.value),
            rank};
  }
  return {judged::kRngDrift, key,
          "the stream " + should + " since it began, but has drawn for " + steps_text(*age), rank};
}

/// Returns a finding if the stream at this coordinate belongs to another module or to another
/// data-parallel rank.
std::optional<judged::Finding> taken_from_others(GlobalRank rank, const Judged& judged,
                                                 const StreamSource& source, const Ages& ages) {
  constexpr std::int32_t kOthers = 16;
  const ObjectLeaf& leaf = judged.leaf;
  const std::string key = stored_key(leaf);
  const auto is = [&](std::uint64_t seed, std::int32_t dp) {
    const HostRng fresh = judged.stream.fresh(seed, leaf.coordinate, dp);
    return age_of(leaf.value, fresh, judged.age).has_value();
  };
  for (const auto& [module, age] : ages) {
    const std::uint64_t seed = sim::streams_seed(source.seed, module);
    if (seed == judged.seed || !is(seed, judged.dp)) continue;
    return judged::Finding{judged::kRngStreamCollapse, key,
                           "the stream is that of module " + module + ", but should differ from it",
                           rank};
  }
  for (std::int32_t dp = 0; source.by_dp && dp < kOthers; ++dp) {
    if (dp == judged.dp || !is(judged.seed, dp)) continue;
    return judged::Finding{judged::kRngStreamCollapse, key,
                           "the stream of data-parallel rank " + std::to_string(judged.dp) +
                               " is that of " + std::to_string(dp) + ", but should differ from it",
                           rank};
  }
  return {};
}

}  // namespace

bool is_stream(const std::string& key) { return stream_of(key) != nullptr; }

judged::Findings judge_streams(GlobalRank rank, const StateDict& live, const StreamSource& source,
                               const Ages& ages) {
  judged::Findings findings;
  for (const auto& leaf : live.objects) {
    const Stream* stream = stream_of(leaf.key);
    if (stream == nullptr) continue;
    const std::string module = module_of(leaf.key, *stream);
    const auto age = ages.find(module);
    const Judged judged{leaf, *stream, sim::streams_seed(source.seed, module),
                        source.by_dp ? leaf.replica : 0,
                        age == ages.end() ? 0 : age->second.*(stream->age)};
    if (encode(advanced(judged.fresh(leaf.coordinate), judged.age)) == leaf.value) continue;
    const auto others = taken_from_others(rank, judged, source, ages);
    findings.push_back(others ? *others : finding_of(rank, judged));
  }
  return findings;
}

Ages ages_told_by(Checkpoint& checkpoint) {
  HostRng once;
  once.advance();
  Ages ages;
  for (const auto& object : checkpoint.catalog().objects) {
    const auto parsed = parse_object_key(object.key);
    const Stream* stream = parsed ? stream_of(parsed->key) : nullptr;
    if (stream == nullptr) continue;
    const Value stored = read_bytes_item(checkpoint.object_bytes(object)).value.value_or(Value());
    const List* wrapper = stored.as<List>();
    const bool wrapped = wrapper != nullptr && wrapper->size() == 1;
    const auto told = sim::decode_rng(wrapped ? wrapper->front() : stored).front();
    const auto key = parse_module_key(parsed->key);
    ages[key ? key->module : ""].*(stream->age) =
        static_cast<std::int64_t>(told.host.counter / once.host.counter);
  }
  return ages;
}

}  // namespace reprise::driver
