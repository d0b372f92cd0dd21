// Corrupts each part of a checkpoint on its way into the job, one at a time. Within two steps, a
// judge must notice the corruption, or the job must refuse the part. If neither happens, the loss
// of that part would go unnoticed, too.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "properties/finding_code.hpp"
#include "tests/driver/small_scenario.hpp"
#include "tests/driver/value_entries.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;
using test::Rig;

/// A part of the loaded state, and a function that corrupts it. If every rank has its own part,
/// only one rank's part is corrupted. If the part is stored once for all ranks, it is corrupted on
/// all of them.
struct Item {
  std::string name;
  Interference interference;
};

struct Seen {
  std::string item;
  bool seen = false;
  std::string code;
  std::string reason;
  bool by_training = false;  ///< true if only the loss or the schedule reveals the corruption
};

/// Everything that a load gives to the ranks.
struct Inventories {
  std::map<GlobalRank, StateDict> ranks;
  Value common;
};

Inventories inventories_of(Rig& rig) {
  Inventories all;
  Interference listener;
  listener.state = [&all](GlobalRank rank, StateDict& loaded) {
    all.ranks[rank] = loaded;
    all.common = loaded.common;
  };
  rig.run(1, {}, listener);
  return all;
}

TensorLeaf& tensor_of(StateDict& state, const std::string& key) {
  const auto found = std::find_if(state.tensors.begin(), state.tensors.end(),
                                  [&key](const TensorLeaf& leaf) { return leaf.key == key; });
  CHECK(found != state.tensors.end(), key);
  return *found;
}

/// Returns false for the padding of buckets, which has no meaning and is filled with NaN.
bool is_content(const TensorLeaf& leaf, std::size_t at) {
  if (leaf.dtype != DType::kFloat32) return true;
  float value = 0;
  std::memcpy(&value, leaf.data + at, sizeof(value));
  return !std::isnan(value);
}

/// Flips the lowest bit of one element of the leaf's largest piece. This is the middle element or,
/// if that is padding, the nearest element before it that is not.
void flip_one_element(const TensorLeaf& leaf) {
  const auto piece = std::max_element(
      leaf.pieces.begin(), leaf.pieces.end(),
      [](const Piece& a, const Piece& b) { return a.box.elements() < b.box.elements(); });
  for (std::int64_t i = piece->box.elements() / 2; i >= 0; --i) {
    Dims index = index_at(i, piece->box.extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece->box.offset[d];
    const auto at = static_cast<std::size_t>(local_offset(*piece, index)) * size_of(leaf.dtype);
    if (!is_content(leaf, at)) continue;
    leaf.data[at] ^= std::byte{1};
    return;
  }
}

bool has_elements(const TensorLeaf& leaf) {
  return std::any_of(leaf.pieces.begin(), leaf.pieces.end(),
                     [](const Piece& piece) { return !piece.box.empty(); });
}

Item wrong_tensor(GlobalRank rank, const std::string& key) {
  Interference interference;
  interference.state = [rank, key](GlobalRank here, StateDict& loaded) {
    if (here == rank) flip_one_element(tensor_of(loaded, key));
  };
  return {key + " on rank " + std::to_string(rank.value), interference};
}

Item wrong_object(GlobalRank rank, std::size_t number, const ObjectLeaf& leaf,
                  const test::Entry& entry) {
  Interference interference;
  interference.state = [rank, number, entry](GlobalRank here, StateDict& loaded) {
    if (here == rank) test::corrupt(loaded.objects[number].value, entry);
  };
  return {stored_key(leaf) + entry.path + " on rank " + std::to_string(rank.value), interference};
}

Item wrong_common(const test::Entry& entry) {
  Interference interference;
  interference.common = [entry](Value& common) { test::corrupt(common, entry); };
  return {"common" + entry.path, interference};
}

/// Selects the parts to corrupt.
enum class What : std::uint8_t { kAll, kObjects };

/// Returns one item for every object of every rank and, with kAll, also for every tensor and every
/// entry of the common state.
std::vector<Item> items_of(const Inventories& all, What what) {
  std::vector<Item> items;
  for (const auto& [rank, state] : all.ranks) {
    for (const auto& leaf : state.tensors) {
      if (what == What::kObjects || !has_elements(leaf)) continue;
      items.push_back(wrong_tensor(rank, leaf.key));
    }
    for (std::size_t i = 0; i < state.objects.size(); ++i) {
      for (const auto& entry : test::entries_of(state.objects[i].value)) {
        items.push_back(wrong_object(rank, i, state.objects[i], entry));
      }
    }
  }
  if (what == What::kObjects) return items;
  for (const auto& entry : test::entries_of(all.common)) items.push_back(wrong_common(entry));
  return items;
}

bool seen_by_training(const LifeRecord& life) {
  for (const auto& rank : life.ranks) {
    for (const auto& finding : rank.findings) {
      if (finding.code == judged::kTrajectoryDivergence) return true;
    }
  }
  return false;
}

/// Saves under a layout. Then loads under the same layout many times, each time with another item
/// corrupted. A corruption is not considered noticed if the verdict only reports an error in our
/// own code.
std::vector<Seen> corrupt_each(const Scenario& scenario, What what = What::kAll) {
  Rig rig(scenario);
  LifeRecord first = rig.run(0);
  rig.end(0, first);
  const auto verdict = [&](const LifeRecord& second) {
    const LifeRecord lives[] = {first, second};
    return judge(rig.scenario(), lives);
  };
  const auto undisturbed = verdict(rig.run(1));
  EXPECT_EQ(undisturbed.verdict, Verdict::kPass) << undisturbed.code << undisturbed.reason;
  std::vector<Seen> all;
  for (const Item& item : items_of(inventories_of(rig), what)) {
    const LifeRecord second = rig.run(1, {}, item.interference);
    const auto result = verdict(second);
    const bool broke = result.code == "INTERNAL" || result.code == "HANG";
    all.push_back({item.name, result.verdict == Verdict::kFail && !broke, result.code,
                   result.reason, seen_by_training(second)});
  }
  return all;
}

std::vector<Seen> corrupt_each(const std::string& model, const std::string& layout,
                               const std::string& sharding) {
  return corrupt_each(test::scenario_of(
      {{layout, {TrainAction{2}, SaveAction{}}}, {layout, {TrainAction{2}}}}, model, sharding));
}

/// Returns a scenario with the same actions for a job of several modules.
Scenario of_modules(const std::vector<sim::ModuleConfig>& modules) {
  Scenario scenario =
      test::scenario_of({{"tp1", {TrainAction{2}, SaveAction{}}}, {"tp1", {TrainAction{2}}}});
  scenario.model.clear();
  for (auto& plan : scenario.lives) plan.modules = sim::side_by_side(modules);
  return scenario;
}

sim::ModuleConfig module(const std::string& name, const std::string& model, const char* layout,
                         const std::string& sharding) {
  return {.name = name,
          .model = model,
          .layout = sim::parse_layout(layout),
          .optimizer_sharding = sim::sharding_named(sharding)};
}

/// Requires that one of the corrupted items has all of these words in its name.
void expect_tried(const std::vector<Seen>& all, const std::vector<std::string>& words) {
  const bool tried = std::any_of(all.begin(), all.end(), [&](const Seen& seen) {
    return std::all_of(words.begin(), words.end(), [&](const std::string& word) {
      return seen.item.find(word) != std::string::npos;
    });
  });
  EXPECT_TRUE(tried) << words.front() << " ... " << words.back();
}

void expect_all_seen(const std::vector<Seen>& all) {
  std::map<std::string, std::size_t> codes;
  std::size_t by_training = 0;
  for (const auto& item : all) {
    EXPECT_TRUE(item.seen) << item.item << " was corrupted and nothing noticed: " << item.code
                           << ' ' << item.reason;
    ++codes[item.code];
    if (item.by_training) ++by_training;
  }
  std::cout << all.size() << " items made wrong, one at a time; " << by_training
            << " show in the loss or the schedule, too. First seen as:";
  for (const auto& [code, count] : codes) std::cout << ' ' << code << " x " << count;
  std::cout << '\n';
}

TEST(Observability, each_wrong_stored_item_of_gpt_tiny_is_seen__tp2_dp2) {
  const auto all = corrupt_each("gpt-tiny", "tp2 dp2", "fully_reshardable");
  expect_all_seen(all);
  EXPECT_GT(all.size(), 300U);
}

TEST(Observability, and_what_only_buckets_keep__tp2_dp2) {
  expect_all_seen(corrupt_each("gpt-tiny", "tp2 dp2", "dp_reshardable"));
}

TEST(Observability, each_wrong_stored_item_of_two_modules_is_seen__tp2_beside_1) {
  const auto all =
      corrupt_each(of_modules({module("a", "audio-tiny", "tp2", "fully_reshardable"),
                               module("b", "audio-tiny", "tp1", "fully_reshardable")}));
  expect_all_seen(all);
  EXPECT_GT(all.size(), 300U);
  for (const std::string name : {"a", "b"}) {
    const std::string optimizer = "mimo." + name + ".optimizer.mimo." + name + ".";
    for (const auto* entry : {"params", "lr", "weight_decay", "betas", "eps", "lr_mult", "wd_mult",
                              "is_expert_parallel", "step"}) {
      expect_tried(all, {optimizer + "param_groups", "[0]['" + std::string(entry) + "']"});
      expect_tried(all, {optimizer + "param_groups", "[1]['" + std::string(entry) + "']"});
    }
    for (const auto* entry : {"scale", "growth_tracker", "growth_interval"}) {
      expect_tried(all, {optimizer + "grad_scaler", "['" + std::string(entry) + "']"});
    }
    expect_tried(all, {optimizer + "param_state_sharding_type"});
    expect_tried(all, {"mimo." + name + ".rng_state", "['tally']"});
    expect_tried(all, {"mimo." + name + ".optimizer.state.exp_avg.", "on rank"});
    for (const auto* entry : {"model", "tensor_model_parallel_size", "distrib_optim_sharding_type",
                              "ranks", "rank_order"}) {
      expect_tried(all,
                   {"common['args']['modules']['" + name + "']['" + std::string(entry) + "']"});
    }
  }
}

TEST(Observability, and_what_only_buckets_of_modules_keep__tp2_beside_dp2) {
  const auto all = corrupt_each(of_modules({module("a", "audio-tiny", "tp2", "dp_reshardable"),
                                            module("b", "audio-tiny", "dp2", "dp_reshardable")}));
  expect_all_seen(all);
  expect_tried(all, {"mimo.a.optimizer.distributed.dp_group_idx_1.optimizer", "['betas'][1]"});
  expect_tried(all, {"mimo.b.optimizer.distributed.dp_group_idx_0.grad_scaler", "['scale']"});
  expect_tried(all, {"mimo.b.optimizer.mimo.b.param_state_sharding_type"});
  expect_tried(all, {"mimo.b.optimizer.distributed.dp_group_idx_0.per_bucket_numel"});
}

TEST(Observability, wrong_settings_of_a_chain_beside_an_encoder_are_seen) {
  for (const auto* sharding : {"fully_reshardable", "dp_reshardable"}) {
    const auto all = corrupt_each(of_modules({module("v", "audio-tiny", "tp1", sharding),
                                              module("lm", "moe-tiny", "ep2 dp2", sharding)}),
                                  What::kObjects);
    expect_all_seen(all);
    expect_tried(all, {"mimo.lm.optimizer.mimo.lm.1.param_state_sharding_type"});
    expect_tried(all, {"mimo.lm.expert_rng_state", "['seed']"});
  }
}

}  // namespace
}  // namespace reprise::driver
