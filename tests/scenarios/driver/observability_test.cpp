// Each thing that a checkpoint keeps, made wrong on its way into the job, is seen by a judge or
// refused within two steps. What would not be seen could be lost without anybody knowing.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/scenarios/driver/small_scenario.hpp"
#include "tests/scenarios/driver/value_entries.hpp"

namespace reprise::driver {
namespace {

using reports::Verdict;
using test::Rig;

/// One thing that is made wrong, on one rank or, for what is stored once, on all.
struct Item {
  std::string name;
  Interference interference;
};

struct Seen {
  std::string item;
  bool seen = false;
  std::string code;
  std::string reason;
  bool by_training = false;  ///< loss or schedule alone would have told
};

/// What each rank is given by a load.
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

/// Flips the lowest bit of the element in the middle of the leaf's largest piece.
void flip_one_element(const TensorLeaf& leaf) {
  const auto piece = std::max_element(
      leaf.pieces.begin(), leaf.pieces.end(),
      [](const Piece& a, const Piece& b) { return a.box.elements() < b.box.elements(); });
  Dims index = index_at(piece->box.elements() / 2, piece->box.extent);
  for (std::size_t d = 0; d < index.size(); ++d) index[d] += piece->box.offset[d];
  const auto at = static_cast<std::size_t>(local_offset(*piece, index)) * size_of(leaf.dtype);
  leaf.data[at] ^= std::byte{1};
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
  return {object_key(leaf.key, leaf.coordinate, leaf.grid) + entry.path + " on rank " +
              std::to_string(rank.value),
          interference};
}

Item wrong_common(const test::Entry& entry) {
  Interference interference;
  interference.common = [entry](Value& common) { test::corrupt(common, entry); };
  return {"common" + entry.path, interference};
}

/// Every tensor and object of every rank, every entry of the common state.
std::vector<Item> items_of(const Inventories& all) {
  std::vector<Item> items;
  for (const auto& [rank, state] : all.ranks) {
    for (const auto& leaf : state.tensors) {
      if (has_elements(leaf)) items.push_back(wrong_tensor(rank, leaf.key));
    }
    for (std::size_t i = 0; i < state.objects.size(); ++i) {
      for (const auto& entry : test::entries_of(state.objects[i].value)) {
        items.push_back(wrong_object(rank, i, state.objects[i], entry));
      }
    }
  }
  for (const auto& entry : test::entries_of(all.common)) items.push_back(wrong_common(entry));
  return items;
}

bool seen_by_training(const IncarnationRecord& life) {
  for (const auto& rank : life.ranks) {
    for (const auto& ruling : rank.rulings) {
      if (ruling.code == "TRAJECTORY_DIVERGENCE") return true;
    }
  }
  return false;
}

/// Saves under a layout, then loads under it once for each item with that item made wrong. A
/// verdict that only says that something of ours broke does not count as seeing.
std::vector<Seen> corrupt_each(const std::string& model, const std::string& layout,
                               const std::string& sharding) {
  Rig rig(test::scenario_of({{layout, {TrainAction{2}, SaveAction{}}}, {layout, {TrainAction{2}}}},
                            model, sharding));
  IncarnationRecord first = rig.run(0);
  rig.end(0, first);
  const auto verdict = [&](const IncarnationRecord& second) {
    const IncarnationRecord lives[] = {first, second};
    return judge(rig.scenario(), lives);
  };
  const auto undisturbed = verdict(rig.run(1));
  EXPECT_EQ(undisturbed.verdict, Verdict::kPass) << undisturbed.code << undisturbed.reason;
  std::vector<Seen> all;
  for (const Item& item : items_of(inventories_of(rig))) {
    const IncarnationRecord second = rig.run(1, {}, item.interference);
    const auto result = verdict(second);
    const bool broke = result.code == "INTERNAL" || result.code == "HANG";
    all.push_back({item.name, result.verdict == Verdict::kFail && !broke, result.code,
                   result.reason, seen_by_training(second)});
  }
  return all;
}

void expect_all_seen(const std::vector<Seen>& all) {
  std::map<std::string, std::size_t> codes;
  std::size_t by_training = 0;
  for (const auto& item : all) {
    EXPECT_TRUE(item.seen) << item.item << " was made wrong and nobody saw it: " << item.code << ' '
                           << item.reason;
    ++codes[item.code];
    if (item.by_training) ++by_training;
  }
  std::cout << all.size() << " items made wrong, one at a time; " << by_training
            << " show in the loss or the schedule, too. First seen as:";
  for (const auto& [code, count] : codes) std::cout << ' ' << code << " x " << count;
  std::cout << '\n';
}

TEST(Observability, each_persisted_item_of_gpt_tiny_made_wrong_at_a_load_is_seen__tp2_dp2) {
  const auto all = corrupt_each("gpt-tiny", "tp2 dp2", "fully_reshardable");
  expect_all_seen(all);
  EXPECT_GT(all.size(), 300U);
}

TEST(Observability, and_what_only_buckets_keep__tp2_dp2) {
  expect_all_seen(corrupt_each("gpt-tiny", "tp2 dp2", "dp_reshardable"));
}

}  // namespace
}  // namespace reprise::driver
