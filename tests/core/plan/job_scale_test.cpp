// Tests plans of jobs with a thousand ranks. The expected plans are computed element by element and
// rank by rank.

#include <gtest/gtest.h>

#include <map>

#include "core/plan/job_load_plan.hpp"
#include "core/plan/load_plan.hpp"
#include "core/plan/save_plan.hpp"
#include "tests/contracts/brute.hpp"
#include "tests/core/geometry/small_worlds.hpp"

namespace reprise {
namespace {

struct Subject {
  std::string key;
  DType dtype;
  Dims shape;
  brute::Splits splits;
  bool placed = true;  ///< false: the tensor's boxes are given without the placement
};

std::vector<Subject> subjects() {
  return {{"a.rows", DType::kFloat32, {70, 13}, {{"tp", 0}, {"dp", 0}}},
          {"b.columns", DType::kBFloat16, {9, 64}, {{"tp", 1}}},
          {"c.grid", DType::kBFloat16, {64, 24}, {{"tp", 0}, {"dp", 1}}},
          {"d.given", DType::kFloat64, {40, 9}, {{"dp", 0}, {"tp", 1}}, false},
          {"e.long", DType::kFloat32, {1200}, {{"dp", 0}}},
          {"f.copies", DType::kFloat32, {33}, {}},
          {"g.scalar", DType::kFloat32, {}, {}},
          {"h.three", DType::kUInt8, {5, 7, 11}, {{"dp", 0}, {"tp", 2}}},
          {"i.given_copies", DType::kFloat32, {16, 3}, {{"tp", 0}}, false},
          {"j.rows", DType::kBFloat16, {70, 13}, {{"tp", 0}, {"dp", 0}}}};
}

test::World world_of(std::vector<std::pair<std::string, int>> axes) {
  std::vector<Axis> typed;
  brute::Grid grid;
  int size = 1;
  for (const auto& [name, count] : axes) {
    typed.push_back({name, count});
    size *= count;
  }
  grid.axes = std::move(axes);
  for (int i = 0; i < size; ++i) grid.members.push_back(i);
  return {Mesh(typed), std::move(grid)};
}

StateDict state_of(const std::shared_ptr<const Mesh>& mesh, GroupRank rank) {
  StateDict state;
  for (const Subject& subject : subjects()) {
    std::vector<Split> splits;
    for (const auto& [axis, dim] : subject.splits) {
      splits.push_back({axis, static_cast<std::size_t>(dim)});
    }
    const Placement placement(splits);
    TensorLeaf leaf{.key = subject.key, .dtype = subject.dtype, .shape = subject.shape};
    const Box box = placement.box(subject.shape, *mesh, rank);
    if (!box.empty()) leaf.pieces = {contiguous_piece(box)};
    leaf.replica = placement.replica(*mesh, rank);
    if (subject.placed) leaf.placed = Placed{mesh, placement};
    state.tensors.push_back(std::move(leaf));
  }
  return state;
}

/// Encodes plans and decodes them, as ranks send and receive them.
std::vector<LocalPlan> plans_of(const std::shared_ptr<const Mesh>& mesh) {
  std::vector<Bytes> wires;
  for (std::int32_t r = 0; r < mesh->size(); ++r) {
    wires.push_back(encode(local_plan(state_of(mesh, {r}), {r})));
  }
  return decode_local_plans(wires);
}

/// A set of elements that are held by exactly the same ranks.
struct Part {
  std::vector<std::size_t> elements;  ///< row-major indices in ascending order
  std::vector<std::int32_t> holders;
  std::int32_t owner = -1;
};

/// Returns the parts in the order of their first elements, which is also the order of their boxes.
std::vector<Part> parts_of(const Subject& subject, const brute::Grid& grid) {
  const auto held = brute::holders(test::numbers(subject.shape), grid, subject.splits);
  std::map<std::vector<std::size_t>, std::vector<std::int32_t>> ranks;
  for (std::size_t m = 0; m < held.size(); ++m) {
    std::vector<std::size_t> elements;
    for (std::size_t e = 0; e < held[m].size(); ++e) {
      if (held[m][e]) elements.push_back(e);
    }
    if (!elements.empty()) ranks[elements].push_back(grid.members[m]);
  }
  std::vector<Part> parts;
  for (const auto& [elements, holders] : ranks) parts.push_back({elements, holders});
  return parts;
}

struct SlowPlan {
  std::vector<std::vector<Part>> parts;  ///< for each tensor
  std::vector<std::uint64_t> bytes;
};

/// Assigns the parts one at a time, first the parts with the fewest holders. Among parts with
/// equally many holders, larger parts come first; among equally large ones, the order of the plan
/// decides. Each part goes to the holder that has the fewest bytes so far. If several holders have
/// the fewest, the part goes to the one with the lowest rank.
SlowPlan slow_plan(const brute::Grid& grid) {
  SlowPlan plan;
  plan.bytes.assign(grid.members.size(), 0);
  struct Turn {
    std::size_t holders;
    std::uint64_t bytes;
    std::size_t tensor;
    std::size_t part;
  };
  std::vector<Turn> turns;
  const auto all = subjects();
  for (std::size_t t = 0; t < all.size(); ++t) {
    plan.parts.push_back(parts_of(all[t], grid));
    for (std::size_t p = 0; p < plan.parts[t].size(); ++p) {
      const Part& part = plan.parts[t][p];
      turns.push_back({part.holders.size(), part.elements.size() * size_of(all[t].dtype), t, p});
    }
  }
  std::stable_sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    return a.holders != b.holders ? a.holders < b.holders : a.bytes > b.bytes;
  });
  for (const Turn& turn : turns) {
    Part& part = plan.parts[turn.tensor][turn.part];
    for (const std::int32_t rank : part.holders) {
      const auto load = [&](std::int32_t r) { return plan.bytes[static_cast<std::size_t>(r)]; };
      if (part.owner < 0 || load(rank) < load(part.owner)) part.owner = rank;
    }
    plan.bytes[static_cast<std::size_t>(part.owner)] += turn.bytes;
  }
  return plan;
}

std::vector<std::size_t> elements_of(const Box& box, const Dims& shape) {
  std::vector<std::size_t> elements;
  for (std::int64_t i = 0; i < box.elements(); ++i) {
    Dims index = index_at(i, box.extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
    elements.push_back(static_cast<std::size_t>(linear_index(index, shape)));
  }
  return elements;
}

TEST(JobScale, a_save_by_1024_ranks_is_planned_as_the_enumerator_plans_it) {
  const test::World world = world_of({{"tp", 4}, {"dp", 64}, {"copy", 4}});
  const auto mesh = std::make_shared<const Mesh>(world.mesh);
  const GlobalPlan plan = global_plan(plans_of(mesh));
  const SlowPlan slow = slow_plan(world.grid);
  ASSERT_EQ(plan.tensors.size(), slow.parts.size());
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const PlannedTensor& tensor = plan.tensors[t];
    SCOPED_TRACE(tensor.key);
    ASSERT_EQ(tensor.owners.size(), slow.parts[t].size());
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      ASSERT_EQ(elements_of((*tensor.boxes)[c], tensor.shape), slow.parts[t][c].elements);
      ASSERT_EQ(tensor.owners[c].value, slow.parts[t][c].owner) << (*tensor.boxes)[c];
    }
  }
  EXPECT_EQ(plan.bytes, slow.bytes);
}

/// Lists the plan's entries as a checkpoint's catalog does.
Catalog catalog_of(const GlobalPlan& plan) {
  Catalog catalog{.files = {"__0_0.distcp"}};
  std::uint64_t end = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    StoredTensor stored{.key = tensor.key, .dtype = tensor.dtype, .shape = tensor.shape};
    for (const Box& box : *tensor.boxes) stored.chunks.push_back({box, 0, {end++, 1}});
    catalog.tensors.push_back(std::move(stored));
  }
  return catalog;
}

TEST(JobScale, 768_ranks_loading_from_1024_read_what_the_enumerator_reads) {
  const test::World saving = world_of({{"tp", 4}, {"dp", 64}, {"copy", 4}});
  const test::World loading = world_of({{"dp", 48}, {"copy", 2}, {"tp", 8}});
  const auto loaders = std::make_shared<const Mesh>(loading.mesh);
  const GlobalPlan stored = global_plan(plans_of(std::make_shared<const Mesh>(saving.mesh)));
  const auto wanted = plans_of(loaders);
  const JobLoadPlan plan(stored, wanted, loading.mesh.members());
  const Catalog catalog = catalog_of(stored);
  const auto all = subjects();
  std::vector<std::vector<std::vector<bool>>> held;  // indexed by tensor, rank, element
  for (const Subject& subject : all) {
    held.push_back(brute::holders(test::numbers(subject.shape), loading.grid, subject.splits));
  }
  using Reads = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;
  for (std::int32_t r = 0; r < loading.mesh.size(); ++r) {
    Reads expected;
    for (std::uint32_t t = 0; t < all.size(); ++t) {
      const PlannedTensor& tensor = stored.tensors[t];
      for (std::uint32_t c = 0; c < tensor.boxes->size(); ++c) {
        std::uint64_t common = 0;
        for (const std::size_t e : elements_of((*tensor.boxes)[c], tensor.shape)) {
          common += held[t][static_cast<std::size_t>(r)][e] ? 1 : 0;
        }
        if (common > 0) expected[{t, c}] = common * size_of(tensor.dtype);
      }
    }
    Reads reads;
    std::uint64_t bytes = 0;
    plan.for_each_read({r}, [&](std::uint32_t t, std::uint32_t c, std::uint64_t part) {
      EXPECT_TRUE(reads.emplace(std::pair{t, c}, part).second) << "read twice";
      bytes += part;
    });
    ASSERT_EQ(reads, expected) << "rank " << r;
    if (r % 16 != 0) continue;
    const LoadPlan engine = load_plan(state_of(loaders, {r}).tensors, {}, catalog);
    ASSERT_EQ(engine.reads.size(), expected.size()) << "rank " << r;
    ASSERT_EQ(engine.bytes_needed, bytes) << "rank " << r;
  }
}

TEST(JobScale, of_10240_ranks_each_row_is_written_by_the_rank_that_has_it) {
  constexpr std::int64_t kRows = 40961;
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 8}, {"dp", 1280}});
  const Placement placement({{"tp", 0}, {"dp", 0}});
  const auto offers = [&](std::int32_t r) {
    StateDict state;
    TensorLeaf leaf{.key = "w", .shape = {kRows, 3}};
    leaf.pieces = {contiguous_piece(placement.box(leaf.shape, *mesh, {r}))};
    leaf.placed = Placed{mesh, placement};
    state.tensors.push_back(std::move(leaf));
    return encode(local_plan(state, {r}));
  };
  std::vector<Bytes> wires;
  for (std::int32_t r = 0; r < mesh->size(); ++r) wires.push_back(offers(r));
  const GlobalPlan plan = global_plan(decode_local_plans(wires));
  const PlannedTensor& tensor = plan.tensors.front();
  std::size_t chunk = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    while (row >= (*tensor.boxes)[chunk].interval(0).end) ++chunk;
    ASSERT_GE(row, (*tensor.boxes)[chunk].offset[0]);
    constexpr std::int64_t kRowsOfTp = (kRows + 7) / 8;
    const std::int64_t tp = row / kRowsOfTp;
    const std::int64_t left = std::min(kRows - tp * kRowsOfTp, kRowsOfTp);
    const std::int64_t dp = row % kRowsOfTp / ((left + 1279) / 1280);
    ASSERT_EQ(tensor.owners[chunk].value, tp + 8 * dp) << "row " << row;
  }
}

TEST(JobScale, a_rank_that_wants_by_a_mesh_that_it_is_not_in_is_refused) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 1}, {"dp", 2}});
  const GlobalPlan stored = global_plan(plans_of(mesh));
  auto wanted = plans_of(mesh);
  wanted.push_back(wanted.front());
  try {
    const JobLoadPlan plan(stored, wanted, Group::world(3));
    ADD_FAILURE() << "planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kLayoutMismatch);
    EXPECT_EQ(error.place().rank, GlobalRank{2});
  }
}

TEST(JobScale, what_is_not_stored_so_is_refused_by_key) {
  const auto mesh = std::make_shared<const Mesh>(std::vector<Axis>{{"tp", 1}, {"dp", 2}});
  const GlobalPlan stored = global_plan(plans_of(mesh));
  const auto refusal = [&](const std::function<void(StateDict&)>& change) {
    StateDict state = state_of(mesh, {0});
    change(state);
    const std::vector<LocalPlan> wanted = {local_plan(state, {0})};
    try {
      const JobLoadPlan plan(stored, wanted, Group::world(1));
    } catch (const Error& error) {
      return std::string(name_of(error.code())) + " " + error.place().key;
    }
    return std::string("planned");
  };
  const auto given = [](StateDict& state) {
    for (auto& leaf : state.tensors) leaf.placed.reset();
  };
  EXPECT_EQ(refusal(given), "planned");
  EXPECT_EQ(refusal([&](StateDict& s) { given(s), s.tensors[0].key = "a.cols"; }),
            "NOT_STORED a.cols");
  EXPECT_EQ(refusal([&](StateDict& s) { given(s), s.tensors[4].shape = {1201}; }),
            "SHAPE_DRIFT e.long");
  EXPECT_EQ(refusal([&](StateDict& s) { given(s), s.tensors[4].dtype = DType::kInt32; }),
            "DTYPE_DRIFT e.long");
}

}  // namespace
}  // namespace reprise
