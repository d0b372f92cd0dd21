#pragma once
// Defines the layout of a job over its ranks: a size for each kind of parallelism, and the order in
// which ranks are assigned. As in Megatron's --rank-order, the first name varies fastest.
//
//   tp2 dp2 in the order tp-cp-ep-dp-pp        the same in the order dp-tp
//     rank 0: tp 0 dp 0   rank 1: tp 1 dp 0      rank 0: tp 0 dp 0   rank 1: tp 0 dp 1
//     rank 2: tp 0 dp 1   rank 3: tp 1 dp 1      rank 2: tp 1 dp 0   rank 3: tp 1 dp 1
//
// Experts use the ranks of tp x cp x dp, assigned as etp x ep x edp. With HSDP, dp is split into
// dp_replicate groups that hold copies of the same state. Within a group, the ranks share the
// state. Experts have as many copies if edp can be split in the same way, and fewer
// otherwise: see expert_copies().

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/megatron/layout_sizes.hpp"
#include "reprise/mesh.hpp"

namespace reprise::sim {

/// Returns the names in kLayoutSizes that are axes of an order, or the other names if `ordered` is
/// false.
template <bool ordered>
constexpr auto size_names() {
  constexpr auto count = static_cast<std::size_t>(
      std::count_if(kLayoutSizes.begin(), kLayoutSizes.end(),
                    [](const LayoutSize& size) { return size.ordered == ordered; }));
  std::array<std::string_view, count> names;
  std::size_t n = 0;
  for (const auto& size : kLayoutSizes) {
    if (size.ordered == ordered) names[n++] = size.name;
  }
  return names;
}

/// Names of the axes in the default order.
inline constexpr auto kAxisNames = size_names<true>();

/// Names of the sizes that are not axes of an order.
inline constexpr auto kFurtherSizes = size_names<false>();

/// Upper bound on the ranks of a job; a larger layout is assumed to be a typing error.
inline constexpr std::int64_t kRanksMax = std::int64_t{1} << 20U;

struct Layout {
  /// Names of axes, joined by '-', the fastest first. Each occurs at most once, and every axis
  /// larger than 1 must occur.
  std::string order = default_order();
  std::int32_t tp = 1;
  std::int32_t cp = 1;
  std::int32_t ep = 1;
  std::int32_t dp = 1;
  std::int32_t pp = 1;
  std::int32_t etp = 0;           ///< tensor parallelism of experts; 0 if the same as tp
  std::int32_t dp_replicate = 1;  ///< number of copies that dp is split into; must divide dp
  std::int32_t vpp = 1;           ///< virtual stages per pipeline stage
  /// Numbers of layers in the pp x vpp chunks, in model order. If empty, layers are distributed
  /// evenly.
  std::vector<std::int64_t> stage_layers;

  /// Returns kAxisNames joined by '-'.
  static std::string default_order();

  std::int32_t world_size() const;
  std::int32_t expert_tp() const { return etp == 0 ? tp : etp; }
  /// Returns the number of ranks that share the experts of a pipeline stage.
  std::int32_t expert_ranks() const;
  /// Returns the number of ranks that hold the same part of the experts, as full copies or as
  /// shards of one copy.
  std::int32_t expert_dp() const { return expert_ranks() / (expert_tp() * ep); }
  /// Returns the number of copies that edp is split into: dp_replicate if it divides edp, otherwise
  /// the greatest number that divides both. Megatron-Core refuses the layouts of the second kind.
  ///
  ///   dp4 dp_replicate2, ep 1: edp 4 in 2 copies   ep 2: edp 2 in 2 copies   ep 4: edp 1, one copy
  std::int32_t expert_copies() const { return std::gcd(expert_dp(), dp_replicate); }
  /// Returns the size of the axis. Throws USAGE with a suggestion if there is no such axis.
  std::int32_t size_of(std::string_view axis) const;
  void set_size(std::string_view axis, std::int32_t size);

  friend bool operator==(const Layout&, const Layout&) = default;
  /// Prints the sizes, such as "tp2 dp2", or "tp1" for a single rank. Appends the order (" order
  /// dp-tp") if it is not the default, and the layers (" layers 1-3") if they are set explicitly.
  friend std::ostream& operator<<(std::ostream& out, const Layout& layout);
};

std::string to_string(const Layout& layout);

/// Says how a size affects the number of ranks.
enum class Spread : std::uint8_t {
  kOwnRanks,     ///< multiplies the number of ranks by the size
  kSharedRanks,  ///< adds no ranks: divides the ranks of other axes
  kWithinRank,   ///< neither adds nor divides ranks: each rank has all parts
};

/// Says which tensors an axis splits into parts. If an axis splits none, the ranks along it hold
/// copies of the same weights and share one optimizer state.
enum class Cuts : std::uint8_t { kNothing, kDense, kExperts, kAll };

using LayoutMember = std::int32_t Layout::*;

struct LayoutField {
  std::string_view name;
  LayoutMember size;
  Spread spread;
  Cuts cuts;

  /// No parameter has a default value, so that a new row can't omit one.
  constexpr LayoutField(std::string_view name_, LayoutMember size_, Spread spread_, Cuts cuts_)
      : name(name_), size(size_), spread(spread_), cuts(cuts_) {}

  constexpr bool takes_ranks() const { return spread == Spread::kOwnRanks; }
  constexpr bool cuts_dense() const { return cuts == Cuts::kDense || cuts == Cuts::kAll; }
  constexpr bool cuts_experts() const { return cuts == Cuts::kExperts || cuts == Cuts::kAll; }
  /// True if the ranks along this axis hold copies of the same part.
  constexpr bool copies() const { return takes_ranks() && cuts == Cuts::kNothing; }
};

/// Fields in the order of kLayoutSizes.
inline constexpr std::array kLayoutFields = {
    LayoutField{"tp", &Layout::tp, Spread::kOwnRanks, Cuts::kDense},
    LayoutField{"cp", &Layout::cp, Spread::kOwnRanks, Cuts::kNothing},
    LayoutField{"ep", &Layout::ep, Spread::kSharedRanks, Cuts::kExperts},
    LayoutField{"dp", &Layout::dp, Spread::kOwnRanks, Cuts::kNothing},
    LayoutField{"pp", &Layout::pp, Spread::kOwnRanks, Cuts::kAll},
    LayoutField{"etp", &Layout::etp, Spread::kSharedRanks, Cuts::kExperts},
    LayoutField{"dp_replicate", &Layout::dp_replicate, Spread::kSharedRanks, Cuts::kNothing},
    LayoutField{"vpp", &Layout::vpp, Spread::kWithinRank, Cuts::kAll},
};
static_assert(std::equal(kLayoutFields.begin(), kLayoutFields.end(), kLayoutSizes.begin(),
                         kLayoutSizes.end(), [](const LayoutField& field, const LayoutSize& size) {
                           return field.name == size.name;
                         }));

/// Returns the effective value of a size: if etp is 0, the value of tp.
std::int32_t size_in_effect(const Layout& layout, const LayoutField& field);

/// True if `a` and `b` split the model into the same parts: each model-parallel rank has the same
/// elements under both.
bool same_parts(const Layout& a, const Layout& b);
/// True if each rank finds its own random stream under both layouts. This requires that the ranks
/// with different parts are arranged in the same way. With `by_copy`, streams also differ by copy,
/// so the numbers of copies must be equal, too.
bool same_dense_streams(const Layout& a, const Layout& b, bool by_copy);
bool same_expert_streams(const Layout& a, const Layout& b);
/// Returns the number of ranks that hold the same part of the dense tensors, as full copies or as
/// shards of one copy.
std::int32_t copies_of_parts(const Layout& layout);

/// Throws LAYOUT_MISMATCH if a size is below 1, the order names an axis twice or omits an axis
/// larger than 1, the ranks can't be divided into etp x ep x edp, dp_replicate does not divide
/// dp, or vpp and stage_layers don't fit pp. Throws USAGE for an unknown name in the order.
void check(const Layout& layout);

/// Parses "tp2 dp2", "tp2dp2", "tp=2, dp=2 order=dp-tp layers=1-3": sizes by name, in any order.
/// Sizes that are not given are 1. Checks the result. Throws USAGE with a suggestion for malformed
/// text and unknown names.
Layout parse_layout(std::string_view text);

/// Returns the ranks of a job in the layout's order. They may be permuted, start anywhere and have
/// gaps; if `ranks` is empty, they are 0 .. n-1. Throws LAYOUT_MISMATCH if their number differs
/// from the layout's, or if one occurs twice.
Group members_of(const Layout& layout, const std::vector<GlobalRank>& ranks = {});

/// Returns the mesh of the dense tensors: all axes but ep in the layout's order. dp is replaced by
/// dp_shard and dp_replicate, of which dp_shard varies faster. Axes that the order omits have size
/// 1 and come last. Checks the layout; `ranks` is as in members_of.
Mesh dense_mesh(const Layout& layout, const std::vector<GlobalRank>& ranks = {});
/// part_axes() returns the axes of the dense mesh along which ranks hold different parts of the
/// model. copy_axes() returns the axes along which ranks hold the same part. The fastest axis is
/// first; dp appears as dp_shard and dp_replicate.
const std::vector<std::string_view>& part_axes();
const std::vector<std::string_view>& copy_axes();
/// Returns the axes of the expert mesh along which ranks hold different parts of the experts,
/// fastest first.
const std::vector<std::string_view>& expert_part_axes();
/// Returns the mesh of the experts. It has the same ranks as the dense mesh, and the axes etp, ep,
/// edp_shard, edp_replicate and pp in the layout's order.
Mesh expert_mesh(const Layout& layout, const std::vector<GlobalRank>& ranks = {});

/// Returns the pipeline stage of a layer among `layers` layers. The layers are split into pp x vpp
/// chunks, which are assigned to the stages in turn. Throws LAYOUT_MISMATCH if stage_layers do not
/// add up.
///
///   8 layers   pp2: 0 0 0 0 1 1 1 1   pp2 vpp2: 0 0 1 1 0 0 1 1   pp2 layers 3-5: 0 0 0 1 1 1 1 1
std::int32_t stage_of(std::int64_t layer, std::int64_t layers, const Layout& layout);

}  // namespace reprise::sim
