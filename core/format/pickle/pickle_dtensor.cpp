#include "core/format/pickle/pickle_dtensor.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/pickle/pickle_tensor.hpp"
#include "core/geometry/folded_shape.hpp"

namespace reprise::pickle {
namespace {

constexpr std::size_t kMeshDimsMax = 16;

class DTensorReader {
 public:
  DTensorReader(const Graph& graph, const PickleSource& where) : graph_(graph), where_(where) {}

  DTensorPart read(NodeId state) {
    // A class with slots has them in the second of two parts of its state.
    if (graph_.kind(state) == Kind::kTuple && graph_.tuple(state).size() == 2) {
      state = graph_.tuple(state)[1];
    }
    const NodeId spec = entry(state, "_spec");
    MeshSharding sharding;
    sharding.shape = shape_of(entry(spec, "tensor_meta"));
    const NodeId mesh = entry(spec, "mesh");
    sharding.mesh = mesh_of(mesh);
    for (const NodeId placement : items(entry(spec, "placements"))) {
      sharding.placements.push_back(placement_of(placement));
    }
    const std::vector<std::int64_t> coordinates = numbers(entry(mesh, "_coordinate_on_dim"));
    const ShardPlace place = place_of_member(sharding, coordinates);
    return {entry(state, "_local_tensor"), place, saver_of(mesh, sharding.mesh, coordinates)};
  }

 private:
  [[noreturn]] void fail(Code code, const std::string& message) const {
    throw error_at(where_, 0, code, "a DTensor " + message);
  }

  /// Returns an entry of a dict, or of an object's state; kNoNode if there is none.
  NodeId find(NodeId node, std::string_view name) const {
    if (graph_.kind(node) == Kind::kInstance) node = graph_.instance(node).state;
    if (node == kNoNode || graph_.kind(node) != Kind::kDict) return kNoNode;
    NodeId found = kNoNode;
    std::size_t seen = 0;
    graph_.each_pair(graph_.chain(node), [&](NodeId key, NodeId value) {
      if (++seen > kEntriesMax) fail(Code::kUnsupported, "with a state of many entries");
      if (graph_.kind(key) == Kind::kText && graph_.text(key) == name) found = value;
    });
    return found;
  }
  NodeId entry(NodeId node, std::string_view name) const {
    const NodeId found = find(node, name);
    if (found == kNoNode) fail(Code::kUnsupported, "without " + std::string(name));
    return found;
  }

  std::vector<NodeId> items(NodeId node) const {
    std::vector<NodeId> found;
    if (graph_.kind(node) == Kind::kTuple) {
      const auto tuple = graph_.tuple(node);
      found.assign(tuple.begin(), tuple.end());
    } else if (graph_.kind(node) == Kind::kList &&
               graph_.count(graph_.chain(node)) <= kEntriesMax) {
      graph_.each(graph_.chain(node), [&](NodeId item) { found.push_back(item); });
    } else {
      fail(Code::kUnsupported, "whose rank is not in its mesh, or with a list of another form");
    }
    if (found.size() > kTorchNdimMax) fail(Code::kTornFile, "of very many dimensions");
    return found;
  }

  std::int64_t number(NodeId node) const {
    if (graph_.kind(node) != Kind::kInteger) fail(Code::kTornFile, "with a number that is none");
    return graph_.integer(node);
  }
  std::vector<std::int64_t> numbers(NodeId node) const {
    std::vector<std::int64_t> found;
    for (const NodeId item : items(node)) found.push_back(number(item));
    return found;
  }

  /// TensorMeta is a named tuple: (torch.Size(shape), stride, dtype).
  std::vector<std::int64_t> shape_of(NodeId meta) const {
    if (graph_.kind(meta) != Kind::kInstance) fail(Code::kUnsupported, "without its shape");
    const auto fields = graph_.tuple(graph_.instance(meta).args);
    if (fields.empty() || graph_.kind(fields[0]) != Kind::kInstance) {
      fail(Code::kUnsupported, "without its shape");
    }
    const auto size = graph_.tuple(graph_.instance(fields[0]).args);
    if (size.size() != 1) fail(Code::kUnsupported, "without its shape");
    return numbers(size[0]);
  }

  std::vector<std::int64_t> mesh_of(NodeId mesh) const {
    if (const NodeId tensor = find(mesh, "mesh"); tensor != kNoNode) {
      const Dims shape = describe_tensor(graph_, tensor, where_).shape;
      return {shape.begin(), shape.end()};
    }
    const NodeId layout = entry(mesh, "_layout");
    const NodeId axes = find(layout, "axes");
    std::vector<std::int64_t> extents;
    if (axes != kNoNode) {
      for (const NodeId axis : items(axes)) extents.push_back(product(entry(axis, "shape"), 0));
    } else if (const NodeId shape = entry(layout, "shape"); graph_.kind(shape) == Kind::kInteger) {
      extents.push_back(number(shape));
    } else {
      for (const NodeId axis : items(shape)) extents.push_back(product(axis, 0));
    }
    if (extents.size() > kMeshDimsMax) fail(Code::kUnsupported, "of a mesh of many dimensions");
    return extents;
  }

  /// Returns the rank that had this mesh. Newer torch stores it, and before, the mesh is the list
  /// of its ranks: the coordinates say which of these it is.
  std::optional<std::int64_t> saver_of(NodeId mesh, const std::vector<std::int64_t>& extents,
                                       const std::vector<std::int64_t>& coordinates) const {
    const NodeId rank = find(mesh, "_rank");
    if (rank != kNoNode && graph_.kind(rank) == Kind::kInteger) return number(rank);
    const NodeId list = find(mesh, "_flatten_mesh_list");
    if (list == kNoNode || graph_.kind(list) != Kind::kTuple) return std::nullopt;
    const auto ranks = graph_.tuple(list);
    std::uint64_t at = 0;  // the coordinates lie within the extents, as was checked
    for (std::size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] > 0 && at > ranks.size() / static_cast<std::uint64_t>(extents[d])) return {};
      at = at * static_cast<std::uint64_t>(extents[d]) + static_cast<std::uint64_t>(coordinates[d]);
    }
    if (at >= ranks.size() || graph_.kind(ranks[at]) != Kind::kInteger) return std::nullopt;
    return number(ranks[at]);
  }

  /// The size of a mesh dimension that several were flattened into.
  std::int64_t product(NodeId node, int level) const {
    if (graph_.kind(node) == Kind::kInteger) return number(node);
    if (level > 2) fail(Code::kUnsupported, "of a mesh in mesh in mesh");
    std::int64_t size = 1;
    for (const NodeId item : items(node)) {
      if (__builtin_mul_overflow(size, product(item, level + 1), &size)) {
        fail(Code::kLimit, "of a mesh of more than 2^63 ranks");
      }
    }
    return size;
  }

  MeshPlacement placement_of(NodeId node) const {
    if (graph_.kind(node) != Kind::kInstance ||
        graph_.kind(graph_.instance(node).type) != Kind::kName) {
      fail(Code::kUnsupported, "with a placement of another form");
    }
    const std::string_view type = graph_.global(graph_.instance(node).type).name;
    if (type == "Replicate") return {};
    if (type != "Shard" && type != "_StridedShard") {
      fail(Code::kUnsupported, "with the placement " + std::string(type) + ", which has no boxes");
    }
    const bool strided = type != "Shard";
    return {.kind = strided ? MeshPlacement::Kind::kStridedShard : MeshPlacement::Kind::kShard,
            .dim = number(entry(node, "dim")),
            .split_factor = strided ? number(entry(node, "split_factor")) : 1};
  }

  static constexpr std::size_t kEntriesMax = 256;

  const Graph& graph_;
  const PickleSource& where_;
};

}  // namespace

std::optional<DTensorPart> dtensor_part(const Graph& graph, NodeId node,
                                        const PickleSource& where) {
  if (tensor_call(graph, node) != "_rebuild_from_type_v2") return std::nullopt;
  const auto args = graph.tuple(graph.instance(node).args);
  if (args.size() != 4 || graph.kind(args[1]) != Kind::kName) return std::nullopt;
  const GlobalName& type = graph.global(args[1]);
  if (type.name != "DTensor" || !type.module.starts_with("torch.distributed.")) return std::nullopt;
  return DTensorReader(graph, where).read(args[3]);
}

}  // namespace reprise::pickle
