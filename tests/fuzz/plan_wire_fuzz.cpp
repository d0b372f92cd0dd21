// The input is a rank's plan as it is sent to other ranks. The target decodes the plan and uses it
// to plan a save.

#include <array>
#include <limits>
#include <memory>

#include "core/format/metadata.hpp"
#include "core/plan/save_plan.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

std::optional<LocalPlan> decoded(ByteSpan input) {
  try {
    return decode_local_plan(input);
  } catch (const Error& error) {
    promise(error.code() == Code::kTornFile, std::string("not TORN_FILE: ") + error.what());
    return std::nullopt;
  }
}

std::int32_t further(std::int32_t replica) {
  return replica == std::numeric_limits<std::int32_t>::max() ? replica : replica + 1;
}

/// Plans a save of this rank and a second rank, which offers more copies of the same tensors. The
/// result is a plan or a refusal.
void plan_with(const LocalPlan& plan) {
  std::array plans = {plan, plan};
  plans[1].given = GivenOffers(plan.given.forms());
  for (std::size_t i = 0; i < plan.given.size(); ++i) {
    const TensorOffer offer = plan.given.offer(i);
    plans[1].given.add(plan.given.corners(i), plan.given.boxes(i), further(offer.replica),
                       offer.denied);
  }
  for (auto& object : plans[1].objects) object.replica = further(object.replica);
  try {
    const GlobalPlan all = global_plan(plans);
    for (const auto& tensor : all.tensors) {
      promise(tensor.boxes->size() == tensor.owners.size(), "a box without an owner");
      promise(!prove_cover(tensor.shape, *tensor.boxes), "a plan that leaves a gap");
    }
  } catch (const Error& error) {
    promise(error.code() != Code::kInternal, error.what());
  }
}

Acceptance run(ByteSpan input) {
  const auto plan = decoded(input);
  if (!plan) return Acceptance::kRefused;
  const Bytes once = encode(*plan);
  const LocalPlan again = decode_local_plan(once);
  promise(encode(again) == once, "what is sent is not what came");
  promise(signature(again) == signature(*plan), "another signature");
  plan_with(*plan);
  return Acceptance::kAccepted;
}

/// Returns a plan that a rank might offer when it saves this checkpoint. It offers half of each
/// tensor that is stored in one chunk, by placement, and all chunks of every other tensor.
Seed offers_of(const Seed& metadata) {
  const std::vector<ByteSpan> files = {metadata.bytes};
  const std::vector<std::string> names = {metadata.name};
  const Catalog catalog = read_metadata(files, names).catalog;
  const auto mesh = std::make_shared<Mesh>(std::vector<Axis>{{"tp", 2}});
  PlacedOffers placed{.placements = {{mesh, Placement({{"tp", 0}})}}, .tensors = {}};
  LocalPlan plan;
  std::vector<TensorOffer> given;
  for (const auto& tensor : catalog.tensors) {
    if (tensor.chunks.size() == 1 && !tensor.shape.empty()) {
      placed.tensors.push_back({{tensor.key, tensor.dtype, tensor.shape}, 0});
      continue;
    }
    TensorOffer offer{.form = {tensor.key, tensor.dtype, tensor.shape}};
    for (const auto& chunk : tensor.chunks) offer.boxes.push_back(chunk.box);
    given.push_back(std::move(offer));
  }
  plan.placed = std::make_shared<const PlacedOffers>(std::move(placed));
  plan.given = GivenOffers(given);
  for (const auto& object : catalog.objects) plan.objects.push_back({object.key, 0});
  return {metadata.name, encode(plan)};
}

std::vector<Seed> seeds() {
  std::vector<Seed> plans;
  for (const Seed& metadata : files_below("tests/data", "/.metadata")) {
    plans.push_back(offers_of(metadata));
  }
  return plans;
}

const Target kTarget("plan_wire", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
